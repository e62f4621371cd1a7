"""What the planner hands to everybody else: plans, mote queries, feeds."""
