"""Debian's mosquitto on a port of its own, with a password, and who sends to it."""

from __future__ import annotations

import getpass
import shutil
import socket
import subprocess
from pathlib import Path

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from gateway.tests.ports import free_port
from gateway.tests.process import wait_for

USER, PASSWORD = "plant", "pass/word:% 1"
_PATH = "/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin:/opt/homebrew/sbin"


class Broker:
    """It keeps what it has over :meth:`kill` and :meth:`start`."""

    def __init__(self, folder: Path, certified: Path | None = None) -> None:
        """``certified``: a folder with ``cert.pem`` and ``key.pem``, with which it speaks TLS."""
        folder.mkdir()
        self.port, self._config = free_port(), folder / "mosquitto.conf"
        passwords = folder / "passwords"
        passwords.touch()
        subprocess.run(
            [_found("mosquitto_passwd"), "-b", str(passwords), USER, PASSWORD],
            check=True,
            capture_output=True,
        )
        self._config.write_text(
            f"user {getpass.getuser()}\nlistener {self.port} 127.0.0.1\npassword_file {passwords}\npersistence true\n"
            f"persistence_location {folder}/\nmax_queued_messages 0\n"
            + (
                f"certfile {certified}/cert.pem\nkeyfile {certified}/key.pem\n"
                if certified is not None
                else ""
            )
        )
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        self._process = subprocess.Popen(
            [_found("mosquitto"), "-c", str(self._config)], stderr=subprocess.DEVNULL
        )
        wait_for(self._answers)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "mosquitto has ended"
        return socket.socket().connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        """In order: it writes what it has."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(30)

    def publish(self, topic: str, *payloads: str) -> None:
        """With QoS 1; returns when the broker has them."""
        client = mqtt.Client(CallbackAPIVersion.VERSION2)
        client.username_pw_set(USER, PASSWORD)
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        for payload in payloads:
            client.publish(topic, payload, qos=1).wait_for_publish(60)
        client.disconnect()
        client.loop_stop()


def _found(name: str) -> str:
    path = shutil.which(name, path=_PATH)
    assert path is not None, f"{name} is not installed: make setup does it"
    return path
