"""What the network is: its motes, and the attributes that they can acquire."""
