"""``python -m bench``: see :mod:`bench.runner.command`."""

import sys

from bench.runner.command import main

sys.exit(main(sys.argv[1:]))
