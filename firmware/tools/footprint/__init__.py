"""What a mote image takes: flash and RAM by module, and the deepest that its stack can get.

``image`` reads what the linker and the compiler say, ``calls`` who goes where, ``pointers`` what calls through pointers may reach,
``stack`` adds up, ``table`` prints and compares. ``python -m footprint`` is what `make firmware` runs.
"""
