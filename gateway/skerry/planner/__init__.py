"""From text to a plan: what the user sees, what motes run, and what it costs."""
