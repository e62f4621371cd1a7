"""Detectors at conveyor belts: TCP servers that send a line of JSON for each spectrum, as boxes pass."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import numpy as np

from examples.materials import detector_response as response
from examples.materials.boxes import STEP_S, Box


class Detector:
    """Sends all that was counted of a box so far after each step of exposure, until the belt moves on."""

    def __init__(self, boxes: Iterator[Box], seed: int, speed: float) -> None:
        self._boxes, self._random, self._speed = boxes, np.random.default_rng(seed), speed
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._server.getsockname()[1]}?format=json"
        self._ended, self._move = threading.Event(), threading.Event()
        #: The box before it; None: there are no more.
        self.box = next(boxes, None)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        self._server.settimeout(0.2)
        while not self._ended.is_set():
            try:
                client, _ = self._server.accept()
            except TimeoutError:
                continue
            with client:
                try:
                    self._send(client)
                except OSError:
                    # Whoever listened has gone.
                    continue

    def _send(self, client: socket.socket) -> None:
        counts, steps = np.zeros(response.CHANNELS + response.NEUTRON_CHANNELS, np.int64), 0
        while not self._ended.wait(STEP_S / self._speed):
            if self._move.is_set():
                self._move.clear()
                self.box, steps = next(self._boxes, None), 0
                counts[:] = 0
            if self.box is None:
                continue
            counts, steps = counts + self._random.poisson(self.box.rates * STEP_S), steps + 1
            row = {
                "box": self.box.number, "exposure": steps * STEP_S, "gamma": counts[: response.CHANNELS].tolist(),
                "neutron": counts[response.CHANNELS :].tolist(),
            }  # fmt: skip
            client.sendall(json.dumps(row).encode() + b"\n")

    def move_on(self) -> None:
        """The next box comes."""
        self._move.set()

    def close(self) -> None:
        """It sends no more."""
        self._ended.set()
        self._thread.join(5)
        self._server.close()
