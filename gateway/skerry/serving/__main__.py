"""A worker as the gateway starts it: ``python -m skerry.serving DESCRIPTOR JSON``, of the socket that it is to listen at, and its settings.

It ends with the gateway, in whatever way that ends: its standard input does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from skerry.api.listening import Listening
from skerry.serving.gateway_link import LinkError
from skerry.serving.process import ApiWorkerProcess, Settings, log_to_stderr

#: So long a gateway that starts may take to answer, in s.
_ANSWER_S = 60.0


def _end_with_gateway() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


def main(descriptor: int, settings: Settings) -> None:
    """Serve."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_end_with_gateway, daemon=True).start()
    log_to_stderr(verbose=settings.verbose)
    bound = Listening(fileno=descriptor)
    try:
        worker = ApiWorkerProcess(settings)
        worker.link.start()
        worker.link.wait(_ANSWER_S)
    except (LinkError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    worker.serve(bound)


if __name__ == "__main__":
    main(int(sys.argv[1]), Settings.of(sys.argv[2]))
