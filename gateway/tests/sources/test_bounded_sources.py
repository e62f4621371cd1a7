"""What a source may send at most, and how what it says is told: lines and pages without an end, feeds without numbers, other hosts."""

from __future__ import annotations

import asyncio
import http.server
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.tests.sources.line_server import LineServer
from gateway.tests.sources.one_source import SHORT
from skerry.sensors.definitions import SensorTable, define
from skerry.sources import http_request, server_sent_events
from skerry.sources import reading as reading_of_sources
from skerry.sources.growing_file import GrowingFile
from skerry.sources.http_polling import HttpPolling
from skerry.sources.lines import LINE_BYTES
from skerry.sources.opening import Opener
from skerry.sources.reading import Reading
from skerry.sources.server_sent_events import ServerSentEvents
from skerry.sources.stream_type import Read, Sensor, Signal, StreamType, Unfit, Value, types
from skerry.sql import sensor_statements
from skerry.sql.sensor_statements import CreateSensors

Answer = Callable[[http.server.BaseHTTPRequestHandler], None]


class Server(http.server.ThreadingHTTPServer):
    """Answers as it is told; ``asked``: what the last event was of each who has asked, as bytes."""

    daemon_threads = True

    def __init__(self) -> None:
        owner = self
        self.answers: list[Answer] = []
        self.asked: list[bytes] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append(self.headers.get("Last-Event-ID", "").encode("latin-1"))
                answer = owner.answers.pop(0) if len(owner.answers) > 1 else owner.answers[0]
                try:
                    answer(self)
                except ConnectionError:
                    return

            def log_message(self, *_: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.shutdown()
    made.server_close()


def says(text: bytes, kind: str = "application/json", status: int = 200, **headers: str) -> Answer:
    """An answer, after which the server hangs up."""

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(text)

    return answer


def without_end(kind: str) -> Answer:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        says(b"", kind)(handler)
        while True:
            handler.wfile.write(b"data: x" * 10_000)

    return answer


def first(stream: StreamType, address: str) -> Read:
    """What a type that waits reads first."""

    async def read() -> Read:
        try:
            await stream.init(Sensor(address, {}, ()))  # type: ignore[misc]
            return await stream.read()  # type: ignore[misc]
        finally:
            await stream.close()  # type: ignore[misc]

    return asyncio.run(read())


def weather() -> SensorTable:
    statement = sensor_statements.parse(SHORT)
    assert isinstance(statement, CreateSensors)
    return define(statement, "ada", 1)


def read_all(address: str, folder: Path, count: int, then: Callable[[], object] = lambda: None) -> Reading:
    """A source once it has brought so many rows; ``then``: what is done when it is open. They are those that wait."""

    async def read() -> Reading:
        reading = Reading(weather(), 1, (1, address), Opener(types(), folder, None, folder), lambda: None)
        while reading.state.state == "opening":
            await asyncio.sleep(0.01)
        await asyncio.to_thread(then)
        async with asyncio.timeout(60):
            while len(reading.waiting) < count:
                await asyncio.sleep(0.01)
        await reading.stop()
        return reading

    return asyncio.run(read())


def rains(reading: Reading) -> list[float]:
    return [row.fields[0] for row in reading.waiting]


def test_a_line_without_end_is_one_that_does_not_fit(tmp_path: Path) -> None:
    lines = LineServer()
    long = b"x" * (3 * LINE_BYTES) + b"\n"
    reading = read_all(lines.address, tmp_path, 2, lambda: lines.send({"rain": 1}, long, {"rain": 2}))
    lines.close()
    assert rains(reading) == [1.0, 2.0]
    assert reading.state.misfits == 1
    assert reading.state.sample == [f"it is a line of more than 1 MB: {'x' * 120}"]
    assert lines.calls == 1


def test_a_file_goes_on_behind_a_line_that_is_too_long_and_where_it_was_in_one(tmp_path: Path) -> None:
    file = tmp_path / "rain.csv"
    # What is left of it would be a row by itself.
    file.write_bytes(b"1,a,\n" + b"2" * (2 * LINE_BYTES) + b",b,\n3,c,\n")
    reading = read_all("file:rain.csv?format=csv&from=start", tmp_path, 2)
    assert rains(reading) == [1.0, 3.0]
    assert reading.state.misfits == 1
    begun = GrowingFile()
    begun.init(Sensor("file:rain.csv?from=start", {}, (), folder=tmp_path))
    # The long one is told before its end has come.
    while begun.read() is Signal.NO_VALUE or not begun._lines.unended:
        pass
    begun.close()
    again, found = GrowingFile(), list[Value]()
    again.init(Sensor("file:rain.csv?from=start", {}, (), folder=tmp_path, position=begun.position))
    while not found or found[-1] != b"3,c,":
        lines = again.read()
        found += lines if isinstance(lines, list) else []
    again.close()
    assert [isinstance(line, Unfit) for line in found] == [True, False]


def test_what_is_appended_to_a_file_as_another_takes_its_place_is_read(tmp_path: Path) -> None:
    file = tmp_path / "rain.csv"
    file.write_text("1,a,\n")

    class Rotated(GrowingFile):
        def _is_other(self) -> bool:
            if not (tmp_path / "rain.csv.1").exists():
                with file.open("a") as old:
                    old.write("2,b,\n")
                file.rename(tmp_path / "rain.csv.1")
                file.write_text("3,c,\n")
            return super()._is_other()

    stream = Rotated()
    stream.init(Sensor("file:rain.csv?from=start", {}, (), folder=tmp_path))
    found = [stream.read() for _ in range(4)]
    stream.close()
    assert [lines for lines in found if lines is not Signal.NO_VALUE] == [[b"1,a,"], [b"2,b,"], [b"3,c,"]]


def test_what_waits_for_who_writes_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for address in ("file:pipe.csv", "replay:pipe.csv?speed=max"):
        with pytest.raises(ConnectionError, match=r"pipe\.csv is no file"):
            types()[address.partition(":")[0]]().init(Sensor(address, {}, (), folder=tmp_path))


def test_what_waits_is_bounded_however_long_rows_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_of_sources, "WAITING_BYTES", 1 << 20)
    lines, count, size = LineServer(), 300, 32 << 10

    def send() -> None:
        lines.send(*({"rain": number, "place": "x" * size} for number in range(count)))

    async def read() -> list[float]:
        reading = Reading(
            weather(), 1, (1, lines.address), Opener(types(), tmp_path, None, tmp_path), lambda: None
        )
        sender, found = asyncio.create_task(asyncio.to_thread(send)), list[float]()
        async with asyncio.timeout(120):
            while len(found) < count:
                await asyncio.sleep(0.02)
                # What one read has brought may be beyond.
                assert len(reading.waiting) * size <= (1 << 20) + (1 << 19)
                if len(reading.waiting) * size >= 1 << 20 or sender.done():
                    assert len(reading.waiting) == 0 or size <= reading.row_bytes <= size + 100
                    found += [row.fields[0] for row in reading.take(7)]
        await sender
        await reading.stop()
        return found

    assert asyncio.run(read()) == [*range(count)]
    lines.close()


def test_rows_of_the_future_are_shown_with_their_time(tmp_path: Path) -> None:
    (tmp_path / "rain.csv").write_text("1,\033[2J,2999-01-01T00:00:00Z\n2,b,2002-11-06T12:00:00Z\n")
    reading = read_all("file:rain.csv?format=csv&from=start", tmp_path, 1)
    assert rains(reading) == [2.0]
    assert reading.state.ahead == 1
    assert reading.state.sample == [
        r"its time, 2999-01-01T00:00:00.000Z, is more than a minute ahead of the clock: 1,\x1b[2J,2999-01-01T00:00:00Z"
    ]


def test_a_process_may_have_as_many_sources_as_the_system_has_files() -> None:
    limit, most = 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    asked = "from skerry.sources.intake import more_files, resource as r; more_files(); print(r.getrlimit(r.RLIMIT_NOFILE)[0])"
    found = subprocess.run(
        [sys.executable, "-c", asked],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most)),
        capture_output=True,
        check=True,
    )
    assert int(found.stdout) == (65_536 if most == resource.RLIM_INFINITY else min(most, 65_536)) > limit


def test_a_page_that_is_no_object_does_not_fit(server: Server, tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{server.server_port}/now?every=50ms"
    server.answers = [says(b"5"), says(b'["wet"]'), says(b"[]"), says(b'{"rain": 1}')]
    reading = read_all(address, tmp_path, 1)
    assert reading.state.misfits == 2
    assert reading.state.sample == ["it is a number, and no object: 5", 'it is a text, and no object: "wet"']


def test_a_page_without_end_and_one_that_is_elsewhere_are_told(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_request, "_MOST_BYTES", 1 << 20)
    monkeypatch.setattr(server_sent_events, "_MOST_BYTES", 1 << 20)
    page, feed = f"http://127.0.0.1:{server.server_port}/", f"sse+http://127.0.0.1:{server.server_port}/"
    server.answers = [without_end("application/json")]
    with pytest.raises(ConnectionError, match="its answer has more than 1 MB"):
        first(HttpPolling(), page)
    server.answers = [without_end("text/event-stream")]
    with pytest.raises(ConnectionError, match="it sends an event of more than 1 MB"):
        first(ServerSentEvents(), feed)
    server.answers = [says(b"", status=302, Location="http://192.0.2.1/now")]
    for stream, address in ((HttpPolling(), page), (ServerSentEvents(), feed)):
        with pytest.raises(
            ConnectionError,
            match=r"it answers 302 Found and names http://192\.0\.2\.1/now, which is not asked",
        ):
            first(stream, address)


def test_who_hangs_up_on_tls_is_told() -> None:
    lines = LineServer()

    def hang_up() -> None:
        while not lines.listeners:
            time.sleep(0.01)
        lines.hang_up()

    threading.Thread(target=hang_up, daemon=True).start()
    with pytest.raises(ConnectionError) as away:
        first(HttpPolling(), f"https://127.0.0.1:{lines.port}/")
    lines.close()
    assert str(away.value) not in ("", "ConnectError")


def test_events_without_numbers_among_those_with_cost_none_of_what_comes_next(
    server: Server, tmp_path: Path
) -> None:
    server.answers = [
        says(b'id: \xc3\xbc1\ndata: {"rain": 1}\n\ndata: {"rain": 2}\n\n', "text/event-stream"),
        says(b'id: 2\ndata: {"rain": 3}\n\ndata: {"rain": 4}\n\n', "text/event-stream"),
        says(b'data: {"rain": 5}\n\n', "text/event-stream"),
    ]
    reading = read_all(f"sse+http://127.0.0.1:{server.server_port}/", tmp_path, 6)
    assert rains(reading)[:6] == [1.0, 2.0, 3.0, 4.0, 5.0, 5.0]
    assert server.asked[:3] == [b"", b"\xc3\xbc1", b"2"]
