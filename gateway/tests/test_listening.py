"""The socket that the API listens on."""

from __future__ import annotations

import asyncio
import socket

import pytest

from skerry.api.listening import bind


def test_answers_do_not_wait_for_acknowledgements() -> None:
    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = bind("127.0.0.1:0", guarded=False)
        async with await asyncio.start_server(take, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            try:
                return await found
            finally:
                writer.close()

    assert asyncio.run(accepted())


@pytest.mark.parametrize("listen", ["8642", ":8642", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:http"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match="expected HOST:PORT"):
        bind(listen, guarded=True)


def test_others_are_kept_out_without_tokens() -> None:
    with pytest.raises(ValueError, match="others could reach the gateway there"):
        bind("0.0.0.0:0", guarded=False)
    bind("0.0.0.0:0", guarded=True).close()
