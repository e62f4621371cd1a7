"""Tables of a database over JDBC: a real one in a process of its own, which changes, vanishes and comes back."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.tests.peer import RootPeer
from gateway.tests.ports import free_port
from gateway.tests.process import Daemon, queue_rows, wait_for
from skerry.tables.columns import TableError
from skerry.tables.jdbc import Connection, Database, connection_of
from skerry_protocol import codec

#: H2, of Debian's libh2-java: database, server and driver in one.
JAR = Path("/usr/share/java/h2.jar")
needs_h2 = pytest.mark.skipif(not JAR.exists(), reason=f"no {JAR}: install libh2-java")
PASSWORD = "kept to 'ourselves"


class Server:
    """An H2 server with one database."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.port = directory, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"jdbc:h2:tcp://127.0.0.1:{self.port}/./site"

    def start(self) -> None:
        options = ["-tcp", "-tcpPort", str(self.port), "-ifNotExists", "-baseDir", str(self.directory)]
        self.process = subprocess.Popen(
            ["java", "-cp", str(JAR), "org.h2.tools.Server", *options], stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        assert b"running" in self.process.stdout.readline()

    def stop(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)
        self.process = None

    def run(self, sql: str) -> None:
        """Also while it is stopped: then on its files."""
        url = f"jdbc:h2:{self.directory}/site" if self.process is None else self.url
        account = ["-url", url, "-user", "skerry", "-password", PASSWORD]
        done = subprocess.run(
            ["java", "-cp", str(JAR), "org.h2.tools.Shell", *account, "-sql", sql],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "Exception" not in done.stdout + done.stderr, done.stdout + done.stderr


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    yield found
    if found.process is not None:
        found.stop()


def described(directory: Path, url: str, *more: str) -> Path:
    """The file that tells the gateway of a database."""
    directory.mkdir(parents=True, exist_ok=True)
    secret = directory / "site.password"
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o600)
    path = directory / "site.jdbc"
    lines = [
        f'url = "{url}"', 'user = "skerry"', 'password_file = "site.password"', 'driver = "org.h2.Driver"',
        f'jar = "{JAR}"', 'tables = ["places", "PUBLIC.GATES"]', "every = 1", *more,
    ]  # fmt: skip
    path.write_text("\n".join(lines))
    return path


@needs_h2
@pytest.mark.spark
@pytest.mark.slow
def test_a_database_pauses_those_who_use_it_while_it_is_away(
    peer: RootPeer, daemon: Daemon, server: Server
) -> None:
    server.run(
        "CREATE TABLE places (node INT, name VARCHAR(20), height DECIMAL(10, 2), built TIMESTAMP);"
        "INSERT INTO places VALUES (1, 'lab', 2.5, TIMESTAMP '2026-01-01 00:00:00'), (2, 'hall', NULL, NULL);"
        "CREATE TABLE gates (node INT)"
    )
    described(daemon.data / "tables", server.url)
    daemon.start()
    ada, grace = daemon.client("ada"), daemon.client("grace")
    wait_for(lambda: [t["rows"] for t in ada.tables()] == [2, 0])
    assert [[column["name"] for column in t["columns"]] for t in ada.tables()] == [
        ["node", "name", "height", "built"],
        ["node"],
    ]
    columns = "s.nodeid, p.name, p.height, p.built"
    asked = ada.query(
        f"SELECT {columns} FROM sensors s, places p WHERE p.node = s.nodeid AND s.temp > 0 SAMPLE PERIOD 1 s"
    )
    plain = grace.query("SELECT nodeid FROM sensors WHERE temp > 0 SAMPLE PERIOD 1 s")
    wait_for(peer.programs)
    wait_for(lambda: len(ada.status()["streams"]) == 1)
    got: list[tuple[object, ...]] = []

    def read() -> None:
        got.extend(tuple(row.values()) for row in asked)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    [(query, program)] = peer.programs().items()
    first = codec.decode_program(program).start + 1
    queue_rows(peer, query, range(first, first + 1), program)
    before = [(1, "lab", 2.5, datetime(2026, 1, 1, tzinfo=UTC)), (2, "hall", None, None)]
    wait_for(lambda: got == before)

    server.stop()
    wait_for(lambda: ada.status()["paused"].keys() == {asked.id})
    queue_rows(peer, query, range(first + 1, first + 2), program)
    assert [row["nodeid"] for _, row in zip(range(6), plain, strict=False)] == [1, 2, 3] * 2
    assert got == before
    # Spark does not say why a reading ended that was under way; the next one cannot begin.
    wait_for(lambda: "onnection" in ada.status()["paused"][asked.id])

    server.run("UPDATE places SET name = 'den' WHERE node = 1")
    server.start()
    after = [(1, "den", *before[0][2:]), before[1]]
    wait_for(lambda: got == before + after)
    assert ada.status()["paused"] == {}
    server.run("UPDATE places SET name = 'cave' WHERE node = 1")

    def renamed() -> bool:
        queue_rows(peer, query, range(first + 2 + len(got), first + 3 + len(got)), program)
        wait_for(lambda: not peer.waiting)
        return any(row[1] == "cave" for row in got)

    wait_for(renamed)
    asked.stop()
    reader.join(20)
    assert not reader.is_alive()
    shown = f"{ada.status()} {ada.tables()} {daemon.log.read_text()}"
    assert PASSWORD not in shown
    assert "ourselves" not in shown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('url = "jdbc:', 'url = "odbc:'), "url does not begin with jdbc:"),
        (("/site", "/site;PASSWORD=1"), "the url holds a password"),
        (("every = 1", "every = 0.5"), "every is 0.5: write 1 to 86400 s"),
        (("tables = [", "table = ["), "unknown entry table: there are url, user"),
        (
            ('"PUBLIC.GATES"', "'old.\"Places\"'"),
            'tables has places and old."Places", which queries would both call places',
        ),
        (('["places", "PUBLIC.GATES"]', "[]"), 'as in tables = ["places"]'),
        ((".jar", ".jars"), "there is no driver"),
        (('driver = "org.h2.Driver"', ""), "driver is missing: the driver's class"),
        (("every = 1", 'password = "x"'), "write password or password_file"),
        (("every = 1", "every = 'secret"), "it is no TOML"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    jar = tmp_path / "driver.jar"
    jar.touch()
    path = described(tmp_path, "jdbc:h2:tcp://127.0.0.1/site")
    path.write_text(path.read_text().replace(str(JAR), str(jar)).replace(*change))
    with pytest.raises(TableError, match=message.replace("[", r"\[")) as raised:
        connection_of(path)
    assert "secret" not in str(raised.value)


def test_whatever_goes_wrong_is_not_the_last_look(tmp_path: Path) -> None:
    """A fault of the gateway's own is said as those of databases are, and it is tried again."""
    jar = tmp_path / "driver.jar"
    jar.touch()
    path = described(tmp_path, "jdbc:h2:tcp://127.0.0.1/site")
    path.write_text(path.read_text().replace(str(JAR), str(jar)))
    looks: list[int] = []

    def no_session(jar: Path, options: dict[str, str], most: int) -> None:
        del jar, options, most
        looks.append(1)
        raise LookupError(f"no {PASSWORD}")

    database = Database(connection_of(path), no_session, 10)
    database.start()
    try:
        wait_for(lambda: len(looks) > 1)
        assert database.latest()[:2] == ({}, "LookupError: no …")
    finally:
        database.close()


def test_a_password_that_others_can_read_is_refused(tmp_path: Path) -> None:
    jar = tmp_path / "driver.jar"
    jar.touch()
    path = described(tmp_path, "jdbc:h2:tcp://127.0.0.1/site")
    path.write_text(path.read_text().replace(str(JAR), str(jar)))
    # As some editors begin a file.
    path.write_text(f"\ufeff{path.read_text()}")
    connection = connection_of(path)
    assert isinstance(connection, Connection)
    assert connection.password == PASSWORD
    assert PASSWORD not in repr(connection)
    assert connection.redacted(f"no {PASSWORD}!") == "no …!"
    os.chmod(tmp_path / "site.password", 0o644)
    with pytest.raises(TableError, match="others can read the password: chmod 600"):
        connection_of(path)
