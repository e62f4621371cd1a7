"""GDB at emulated motes: see ``README.md``."""
