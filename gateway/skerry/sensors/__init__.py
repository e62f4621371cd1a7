"""Tables of sensors that are no motes: what they are, which tuples they have, and what queries ask of them."""
