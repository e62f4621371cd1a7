"""The motes behind the roots: their lines, clocks, sessions, and what is sent to them."""
