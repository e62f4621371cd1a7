"""A gateway without motes for an example: started in a folder of its own, and ended with its ``with``, also by SIGTERM."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import skerry
from skerry.client.errors import GatewayError

_STARTS_S = 120.0


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port: int = opened.getsockname()[1]
        return port


def wait_for_spark(client: skerry.Client) -> None:
    """What sources send while Spark starts would come all at once, and nobody would see how it goes on."""
    while client.status()["spark"]["state"] != "running":
        time.sleep(0.5)


@contextmanager
def gateway(folder: Path) -> Iterator[skerry.Client]:
    """A gateway without motes, in a folder of its own. Raises GatewayError where it does not start."""
    # Python ends at SIGTERM without leaving any ``with``, and the gateway would go on: it is to be as Ctrl-C is.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield from _running(folder)
    finally:
        signal.signal(signal.SIGTERM, before)


def _running(folder: Path) -> Iterator[skerry.Client]:
    port, log = _free_port(), folder / "gateway.log"
    command = [str(Path(sys.executable).parent / "skerry"), "gateway", "--data", str(folder / "data")]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, "--listen", f"127.0.0.1:{port}"], stderr=errors, start_new_session=True
        )
    try:
        client, began = skerry.connect(f"http://127.0.0.1:{port}", user="inspector"), time.monotonic()
        while True:
            try:
                client.status()
                break
            except GatewayError as error:
                if process.poll() is not None or time.monotonic() - began > _STARTS_S:
                    raise GatewayError(f"the gateway did not start: {log.read_text()[-500:]}") from error
                time.sleep(0.3)
        yield client
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
