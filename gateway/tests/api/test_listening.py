"""The socket that the API listens on."""

from __future__ import annotations

import asyncio
import resource
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from skerry.api.listening import FILES, FIRST, bind, reaches_others


def test_connections_answer_at_once_and_leave_the_first_files_to_others() -> None:
    async def accepted() -> tuple[int, int]:
        found: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()

        def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            file, at_once = (
                connection.fileno(),
                connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
            )
            found.set_result((file, at_once))
            writer.close()

        listening = bind("127.0.0.1:0")
        async with await asyncio.start_server(take, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            try:
                return await found
            finally:
                writer.close()

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    for most in (FIRST, 2 * FIRST):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, before[1]))
            file, at_once = asyncio.run(accepted())
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert at_once
        assert (file >= FIRST) == (most > FIRST)


@pytest.mark.parametrize("listen", ["8642", ":8642", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:http"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        bind(listen)


def test_a_port_is_taken_before_the_server_has_started() -> None:
    with closing(bind("127.0.0.1:0")) as first:
        address = f"127.0.0.1:{first.getsockname()[1]}"
        with pytest.raises(OSError, match=f"^--listen {address}: Address already in use$"):
            bind(address)


def test_where_others_come_is_known_before_anybody_listens() -> None:
    """They are asked for tokens there."""
    assert [reaches_others(f"{host}:0") for host in ("0.0.0.0", "[::]")] == [True, True]
    assert [reaches_others(f"{host}:0") for host in ("127.0.0.1", "[::1]", "localhost")] == [False] * 3


@pytest.mark.parametrize(
    ("soft", "hard", "files", "connections"),
    [(256, 1000, 1000, 500), (256, 4096, 4096, 3072), (3000, 3000, 3000, 1976)],
)
def test_as_many_may_read_as_the_system_allows(soft: int, hard: int, files: int, connections: int) -> None:
    said = subprocess.run(
        [
            sys.executable,
            "-c",
            "import resource\n"
            "from skerry.api.listening import connections\n"
            f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
            "print(connections(), *resource.getrlimit(resource.RLIMIT_NOFILE))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == [str(connections), str(files), str(hard)]
    assert files <= FILES
