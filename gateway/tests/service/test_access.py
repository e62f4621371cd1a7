"""Access to a running gateway: where it listens, tokens, what users see of each other, limits, https."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import skerry
from gateway.tests.peer import RootPeer
from gateway.tests.ports import free_port
from gateway.tests.process import COMMAND, Daemon, queue_rows, wait_for
from skerry.api.tokens import new_token
from skerry.client.operator import Operator
from skerry.storage import operator_key

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SQL = "SELECT nodeid, temp FROM sensors SAMPLE PERIOD 1 s"


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A gateway that asks for tokens."""
    root, directory = RootPeer(), tmp_path_factory.mktemp("guarded")
    gateway = Daemon(root.url, directory / "data", users=("ada", "grace"))
    gateway.start("--tokens", "--user-queries", "3", "--user-rate", "50", "-v")
    yield gateway
    gateway.kill()
    root.close()


@pytest.fixture
def guarded(begun: Daemon) -> Iterator[Daemon]:
    """The same for one test after the other: both users are known, and have asked nothing."""
    yield begun
    operator = begun.operator()
    for user in operator.users():
        operator.remove(user["name"])
    begun.tokens.update(operator.add_users("ada", "grace")["tokens"])


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["env", *(f"{name}={value}" for name, value in environment.items()), COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_elsewhere_tokens_are_asked_for_and_a_newcomer_is_told_how_to_come_by_one(
    peer: RootPeer, tmp_path: Path
) -> None:
    options = ("gateway", "--link", peer.url, "--data", str(tmp_path / "data"))
    assert "give both" in run(*options, "--tls-cert", str(tmp_path)).stderr
    assert "expected HOST:PORT" in run(*options, "--listen", "8642").stderr
    daemon = Daemon(peer.url, tmp_path / "data")
    daemon.launch("--listen", f"0.0.0.0:{daemon.port}")
    wait_for(lambda: "nobody may ask yet" in daemon.log.read_text())
    [told] = [line for line in daemon.log.read_text().splitlines() if "nobody may ask yet" in line]
    command = told.partition("'skerry ")[2].partition("'")[0].replace("NAME", "ada").split()
    url = ("--data", str(daemon.data), "--url", daemon.url)
    added = run(*command, "--url", daemon.url)
    assert (added.returncode, added.stderr) == (0, "")
    [(name, token)] = [line.split() for line in added.stdout.splitlines()]
    assert name == "ada"
    assert run("user", "list", *url).stdout.splitlines()[1].startswith("ada ")
    renewed = run("user", "renew", "ada", *url).stdout.split()[1]
    ada = skerry.connect(daemon.url, token=renewed)
    assert ada.queries() == []
    removed = run("user", "remove", "ada", *url)
    assert (removed.stdout, removed.stderr) == ("", "skerry: ada is removed\n")
    for client in (ada, skerry.connect(daemon.url, token=token), skerry.connect(daemon.url)):
        with pytest.raises(skerry.GatewayError, match="token"):
            client.queries()
    daemon.kill()


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    certificate, key, sealed, missing = (tmp_path / name for name in ("cert", "key", "sealed", "missing"))
    for command in (
        f"req -x509 -newkey rsa:2048 -nodes -keyout {key} -out {certificate} -subj /CN=localhost",
        f"rsa -aes256 -passout pass:secret -in {key} -out {sealed}",
    ):
        subprocess.run(["openssl", *command.split()], check=True, capture_output=True)
    for cert, private, said in (
        (certificate, sealed, f"--tls-key {sealed}: it is encrypted: give one without a pass phrase"),
        (certificate, missing, f"--tls-key {missing}: No such file"),
        (missing, key, f"--tls-cert {missing}: No such file"),
        (key, certificate, "expected a certificate and a private key, both in PEM"),
    ):
        refused = run(
            "gateway", "--link", "socket://127.0.0.1:1", "--data", str(tmp_path / "data"), "--listen",
            f"127.0.0.1:{free_port()}", "--tls-cert", str(cert), "--tls-key", str(private),
        )  # fmt: skip
        assert (refused.returncode, len(refused.stderr.splitlines())) == (1, 1), refused.stderr
        assert said in refused.stderr


def test_users_see_and_stop_only_their_own(guarded: Daemon) -> None:
    ada, grace = (guarded.client(user) for user in ("ada", "grace"))
    hers = ada.query("CREATE STORAGE POINT recent SIZE 4 AS SELECT temp FROM sensors SAMPLE PERIOD 2 s")
    his = grace.query("SELECT r.temp FROM sensors s, recent r WHERE s.temp > r.temp SAMPLE PERIOD 2 s")
    assert [entry["id"] for entry in ada.queries()] == [hers.id]
    assert [entry["id"] for entry in grace.queries()] == [his.id]
    assert {entry["user"] for entry in grace.queries()} == {"grace"}
    [seen] = grace.points()
    assert (seen["name"], seen["query"], seen["user"], seen["used_by"]) == ("recent", None, None, [his.id])
    for attempt in (
        lambda: grace.stop(hers.id),
        lambda: grace.stop_by(f"STOP QUERY {hers.id}"),
        lambda: list(grace.resume(hers.id)),
        lambda: list(skerry.Rows(grace, {"id": hers.id, "columns": [], "into": None, "srt": None})),
    ):
        with pytest.raises(skerry.GatewayError, match=f"no query {hers.id}"):
            attempt()
    with pytest.raises(skerry.GatewayError, match="'recent' is another user's"):
        grace.stop_by("DROP STORAGE POINT recent")
    assert grace.stop_by("DROP ALL") == [his.id]
    assert [entry["id"] for entry in ada.queries()] == [hers.id]
    with pytest.raises(skerry.GatewayError, match="the request is ada's"):
        skerry.connect(guarded.url, user="grace", token=guarded.tokens["ada"]).queries()
    listed = run("list", "--url", guarded.url, SKERRY_TOKEN=guarded.tokens["ada"])
    assert "recent" in listed.stdout
    refused = run("stop", hers.id, "--url", guarded.url, SKERRY_TOKEN=guarded.tokens["grace"])
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"skerry: no query {hers.id}: 'skerry list' shows those there are\n"
    assert run("stop", hers.id, "--url", guarded.url, SKERRY_TOKEN=guarded.tokens["ada"]).returncode == 0


def test_nothing_without_a_token_and_no_token_in_the_log(guarded: Daemon) -> None:
    stranger = new_token()
    with httpx.Client(base_url=guarded.url, timeout=600) as http:
        requests = [
            ("POST", "/queries"), ("GET", "/queries"), ("DELETE", "/queries/1"), ("GET", "/queries/1/rows"), ("GET", "/motes"),
            ("GET", "/catalog"), ("GET", "/points"), ("GET", "/status"), ("GET", f"/explain?sql={SQL}"), ("POST", "/events/e"),
        ]  # fmt: skip
        for method, path in requests:
            body = {"json": {"sql": SQL}} if path == "/queries" and method == "POST" else {}
            for headers in ({}, {"Authorization": f"Bearer {stranger}"}, {"Authorization": "Basic eA=="}):
                answer = http.request(method, path, headers=headers, **body)
                assert answer.status_code == 401, (method, path)
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
                assert "token" in answer.json()["message"]
        assert http.get("/openapi.json").status_code == 404
    refused = run("list", "--url", guarded.url)
    assert refused.stderr == "skerry: no token: set SKERRY_TOKEN, or send 'Authorization: Bearer …'\n"
    log = guarded.log.read_text()
    assert not any(token in log for token in (*guarded.tokens.values(), stranger))


def test_who_is_removed_is_read_to_no_more_and_told_why(guarded: Daemon) -> None:
    grace = guarded.client("grace")
    asked = grace.query(SQL)
    refused: list[str] = []

    def read(how: Callable[[skerry.Rows], object]) -> None:
        try:
            how(grace.resume(asked.id))
        except skerry.GatewayError as error:
            refused.append(str(error))

    async def asynchronously(rows: skerry.Rows) -> None:
        async for _ in rows:
            pass

    ways: list[Callable[[skerry.Rows], object]] = [
        list,
        skerry.Rows.to_arrow,
        lambda rows: asyncio.run(asynchronously(rows)),
    ]
    readers = [threading.Thread(target=read, args=[way]) for way in ways]
    for reader in readers:
        reader.start()
    with grace.http.stream("GET", f"/queries/{asked.id}/rows") as raw:
        wait_for(lambda: guarded.client().status()["feeds"] == 4)
        # What stops with him is his alone.
        hers = guarded.client().query(SQL)
        assert guarded.operator().remove("grace") == {"stopped": [asked.id], "kept": []}
        for reader in readers:
            reader.join(240)
        *_, kind, data, _ = raw.iter_lines()
    why = "the gateway does not know this token any more: grace was removed, or has a new one"
    assert refused == [why] * 3, "at once, not when they come back"
    assert (kind, data) == ("event: refused", f"data: {why}")
    assert guarded.client().status()["feeds"] == 0
    assert [entry["id"] for entry in guarded.client().queries()] == [hers.id]


def test_limits_are_each_users(guarded: Daemon) -> None:
    ada, grace = (guarded.client(user) for user in ("ada", "grace"))
    for _ in range(3):
        last = ada.query(SQL)
    with pytest.raises(
        skerry.GatewayError, match="ada has 3 queries, and 3 is the most for a user: stop one"
    ):
        ada.query(SQL)
    assert len(ada.queries()) == 3
    with contextlib.ExitStack() as feeds:
        path = f"/queries/{last.id}/rows"
        for _ in range(6):
            answer = feeds.enter_context(ada.http.stream("GET", path))
            assert answer.status_code == 200
        wait_for(lambda: grace.status()["feeds"] == 6)
        refused = ada.http.get(path)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
        assert "ada reads 6 feeds at once, and 6 is the most" in refused.json()["message"]
    wait_for(lambda: grace.status()["feeds"] == 0)
    grace.query(SQL)
    ada.stop(last.id)
    ada.query(SQL)
    answers = [ada.http.get("/motes") for _ in range(400)]
    too_many = [answer for answer in answers if answer.status_code == 429]
    if too_many:  # A machine that does fewer than 50 a second meets no limit.
        assert int(too_many[0].headers["Retry-After"]) >= 1
        assert "ada may do 50 requests a second" in too_many[0].json()["message"]
    assert grace.status()["link"]["state"] == "connected"


def test_without_tokens_names_keep_users_apart(daemon: Daemon) -> None:
    daemon.start()
    ada, grace, anybody = daemon.client("ada"), daemon.client("grace"), skerry.connect(daemon.url)
    hers, his = ada.query(SQL), grace.query(SQL)
    assert [entry["id"] for entry in ada.queries()] == [hers.id]
    with pytest.raises(skerry.GatewayError, match=f"no query {hers.id}"):
        grace.stop(hers.id)
    assert [entry["user"] for entry in anybody.queries()] == ["ada", "grace"]
    anybody.stop(hers.id)
    assert [entry["id"] for entry in anybody.queries()] == [his.id]
    answer = httpx.get(daemon.url + "/motes", headers={"Host": "attacker.example"})
    assert answer.status_code == 421
    assert "loopback names only" in answer.json()["message"]


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate that nobody vouches for, and its key."""
    key, file = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(file)],
        capture_output=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return file, key


def shakes_hands(port: int) -> bool:
    """Whether a server is behind the socket, which listens before it."""
    try:
        httpx.get(f"https://127.0.0.1:{port}/", verify=False)
    except httpx.TransportError:
        return False
    return True


@contextlib.contextmanager
def listening(*arguments: str) -> Iterator[str]:
    """A process that listens for https; its URL."""
    port = free_port()
    process = subprocess.Popen(
        [COMMAND, *arguments, "--listen", f"127.0.0.1:{port}"], stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: shakes_hands(port))
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.parametrize("workers", [(), ("--api-workers", "2")], ids=["alone", "workers"])
def test_https(
    peer: RootPeer,
    tmp_path: Path,
    certificate: tuple[Path, Path],
    workers: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = str(tmp_path / "data")
    secured = ("--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]), "--data", data)
    with listening("gateway", "--link", peer.url, "--tokens", *secured, *workers) as url:
        wait_for((tmp_path / "data" / operator_key.FILE).exists)
        untrusted = run("user", "list", "--data", data, "--url", url)
        assert "certificate" in untrusted.stderr.lower(), "a certificate that nobody vouches for"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        operator = Operator(url, operator_key.read(tmp_path / "data"))
        token = operator.add_users("ada")["tokens"]["ada"]
        found = run("status", "--url", url, SKERRY_TOKEN=token)
        assert found.returncode == 0, found.stderr
        ada = skerry.connect(url, token=token)
        wait_for(lambda: ada.status()["link"]["state"] == "connected")
        asked = ada.query(SQL)
        wait_for(peer.programs)
        [(query, program)] = peer.programs().items()
        queue_rows(peer, query, range(60, 70), program)
        expected = [(2000 + 10 * epoch + node) / 100 for epoch in range(60, 70) for node in range(1, 4)]
        assert asked.to_arrow(rows=30).column("temp").to_pylist() == expected
        # One that serves beside it trusts its certificate as clients do.
        with listening("serve", "--gateway", url, *secured) as beside:
            at = skerry.connect(beside, token=token)
            assert at.resume(asked.id).to_arrow(rows=30).column("temp").to_pylist() == expected
            wait_for(lambda: len(at.status()["api_workers"]) == len(workers) + 1)
