"""Descriptions of small networks, as files have them."""

#: A root by itself.
ROOT = """
[radio]
model = "disc"
range_m = 15
[[mote]]
id = 0
x = 0
y = 0
root = true
"""
