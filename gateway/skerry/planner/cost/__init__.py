"""What a plan takes of batteries and of the air."""
