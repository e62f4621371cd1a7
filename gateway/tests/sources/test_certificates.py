"""Sources over TLS: what a trusted certificate vouches for is read, and of any other one it is told what is wrong, by name."""

from __future__ import annotations

import http.server
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.process import wait_for
from gateway.tests.sources.broker import Broker
from gateway.tests.sources.one_source import SHORT, come, one_source, state


def openssl(*words: str) -> None:
    made = subprocess.run(["openssl", *words], capture_output=True, check=False, text=True)
    assert made.returncode == 0, made.stderr


def certificate(folder: Path, authority: Path | None, name: str) -> Path:
    """A folder with a certificate for this name, and its key; without an authority nobody but itself vouches for it."""
    folder.mkdir()
    vouched = (
        ["-CA", f"{authority}/cert.pem", "-CAkey", f"{authority}/key.pem"] if authority is not None else []
    )
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={folder.name}",
        "-addext", f"subjectAltName={name}", *vouched, "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem",
    )  # fmt: skip
    return folder


class Page(http.server.BaseHTTPRequestHandler):
    """Rain, as a page and as events."""

    def do_GET(self) -> None:
        row = json.dumps({"rain": 0.5, "place": self.path})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if "events" in self.path else "application/json")
        self.end_headers()
        self.wfile.write((f"data: {row}\n\n" if "events" in self.path else row).encode())

    def log_message(self, *_: object) -> None: ...


@contextmanager
def server(certified: Path) -> Iterator[int]:
    """Its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certified / "cert.pem", certified / "key.pem")
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    made.daemon_threads = True
    made.socket = context.wrap_socket(made.socket, server_side=True)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made.server_port
    made.shutdown()
    made.server_close()


def test_certificates_are_checked_and_a_wrong_one_is_told_by_name(
    peer: RootPeer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = certificate(tmp_path / "authority", None, "DNS:authority")
    right, unknown, other = (
        certificate(tmp_path / "right", authority, "IP:127.0.0.1"),
        certificate(tmp_path / "unknown", None, "IP:127.0.0.1"),
        certificate(tmp_path / "other", authority, "DNS:elsewhere"),
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(authority / "cert.pem"))
    trusted, untrusted = Broker(tmp_path / "broker", right), Broker(tmp_path / "stranger", unknown)
    with server(right) as good, server(unknown) as self_made, server(other) as elsewhere:
        addresses = [
            f"https://127.0.0.1:{good}/now?every=1h",
            f"sse+https://127.0.0.1:{good}/events",
            f"https://127.0.0.1:{self_made}/now",
            f"sse+https://127.0.0.1:{self_made}/events",
            f"https://127.0.0.1:{elsewhere}/now",
            f"mqtts://plant:x@127.0.0.1:{untrusted.port}/rain",
            f"skerry+https://127.0.0.1:{self_made}/1",
            # It is nobody's certificate that is wrong there, but its password.
            f"mqtts://plant:x@127.0.0.1:{trusted.port}/rain",
        ]
        with one_source(peer, tmp_path / "data", addresses, SHORT) as (gateway, query):
            wait_for(lambda: {row[2] for row in come(gateway, query, 2)} == {"/now", "/events"})

            def why(number: int) -> str:
                wait_for(lambda: state(gateway, number)["state"] == "away")
                return str(state(gateway, number)["why"])

            said = "the certificate of 127.0.0.1 is not to be trusted: self-signed certificate; SSL_CERT_FILE names"
            for number in (2, 3, 5):
                assert said in why(number)
            assert (
                "is not to be trusted: IP address mismatch, certificate is not valid for '127.0.0.1'"
                in why(4)
            )
            assert "self-signed certificate" in why(6)
            assert "SSL_CERT_FILE names certificates to trust" in why(6)
            assert "certificate" not in why(7)
    for one in (trusted, untrusted):
        one.stop()
