"""Proxies and certificates that the environment names: this machine is asked directly, and what is wrong is named."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import skerry
from gateway.tests.ports import free_port
from gateway.tests.process import COMMAND
from skerry.client import surroundings

VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"]


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


class Answers(BaseHTTPRequestHandler):
    """Has no queries, as a gateway; asked for another host, it is a proxy that reaches none."""

    def do_GET(self) -> None:
        far = self.path.startswith("http://")
        body = b"no such host" if far else json.dumps([]).encode()
        self.send_response(502 if far else 200)
        self.send_header("Content-Type", "text/plain" if far else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_this_machine_is_asked_past_proxies(
    server: str, monkeypatch: pytest.MonkeyPatch, name: str, host: str
) -> None:
    monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    assert skerry.connect(f"http://{host}:{server.partition(':')[2]}").queries() == []


def test_a_gateway_behind_a_proxy_is_not_said_to_be_away_without_it(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://me:secret@{server}")
    with pytest.raises(skerry.GatewayError) as refused:
        skerry.connect("http://gateway.example:8642").queries()
    assert str(refused.value) == (
        f"HTTP 502 Bad Gateway (asked through the proxy http://…@{server} of the environment; NO_PROXY names hosts to ask directly)"
    )
    monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{free_port()}")
    with pytest.raises(
        skerry.GatewayError,
        match=r"^no gateway at http://gateway.example:8642: .*through the proxy http://127",
    ):
        skerry.connect("http://gateway.example:8642").queries()
    monkeypatch.setenv("NO_PROXY", "other.example,gateway.example")
    assert surroundings.proxy("http://gateway.example:8642") is None


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "ftp://proxy.example", "http://[::1"])
def test_a_proxy_that_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(skerry.GatewayError) as refused:
        skerry.connect("http://gateway.example:8642")
    assert str(refused.value).startswith(f"the environment's proxy is {proxy}: expected http://HOST:PORT")


def test_certificates_that_are_not_there_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://gateway.example"
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    with pytest.raises(
        skerry.GatewayError,
        match=r"^SSL_CERT_FILE is '/nowhere/certificates\.pem', and there is no such file",
    ):
        skerry.connect(url)
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(nothing))
    with pytest.raises(
        skerry.GatewayError, match=f"^SSL_CERT_FILE is '{nothing}': .*name a file of certificates"
    ):
        skerry.connect(url)
    monkeypatch.setenv("SSL_CERT_FILE", "")
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "gone"))
    with pytest.raises(
        skerry.GatewayError, match=r"^SSL_CERT_DIR is '.*gone', and there is no such directory"
    ):
        skerry.connect(url)


def test_the_command_says_it_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/certificates.pem")
    done = subprocess.run(
        [COMMAND, "list", "--url", "https://gateway.example"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "skerry: SSL_CERT_FILE is '/nowhere/certificates.pem', and there is no such file: name one of certificates (PEM), or unset it"
    ]
