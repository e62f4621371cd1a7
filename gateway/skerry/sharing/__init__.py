"""One mote stream serves many users: which mote queries run, and from when on."""
