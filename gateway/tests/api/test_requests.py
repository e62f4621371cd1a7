"""Requests that are wrong in themselves: what they are answered, and that nothing of them stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest

from gateway.tests.process import SQL
from skerry.api.access import Access
from skerry.api.app import create_app
from skerry.api.body_limit import BODY_MAXIMUM
from skerry.sql.errors import QueryError
from skerry.sql.surrogates import escaped, is_whole

JSON = {"Content-Type": "application/json"}
HALF = r"\ud800"


class NoGateway:
    """Whatever it is asked is refused; what that was is in ``asked``."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def ask(self, *arguments: Any) -> None:
        self.asked.append(arguments)
        raise QueryError("no \ud800", text="no \ud800")

    run = tag = ask


@pytest.fixture
def gateway() -> NoGateway:
    return NoGateway()


def request(gateway: NoGateway, method: str, path: str, **arguments: Any) -> httpx.Response:
    """The API's answer, without a server."""
    transport = httpx.ASGITransport(
        create_app(cast(Any, gateway), cast(Any, gateway), cast(Any, gateway), Access()),
        raise_app_exceptions=False,
    )

    async def answer() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.request(method, path, **arguments)

    return asyncio.run(answer())


@pytest.mark.parametrize(
    ("method", "path", "body", "message"),
    [
        ("POST", "/queries", f'{{"sql": "{SQL} -- {HALF}"}}', f"body.sql: {HALF} at column 55 is half a character"),
        ("POST", "/queries", f'{{"sql": "{SQL}", "user": "a{HALF}"}}', f"body.user: {HALF} at column 2 is half"),
        ("POST", "/queries", f'{{"sql": "{SQL}", "linger_s": 1e999}}', "body.linger_s: Input should be a finite"),
        ("POST", "/queries", "{}", "body.sql: Field required"),
        ("POST", "/queries", "{", "the body is no JSON: Expecting property name"),
        ("POST", "/queries", '{"sql": "SELECT temp ONCE", "lnger_s": 5}', "body.lnger_s: there is no such field"),
        ("POST", "/commands/leds", '{"arg": 1}', "body.arg: there is no such field"),
        ("PUT", "/motes/3/tags", f'{{"a": "{HALF}"}}', f"body.a: {HALF} at column 1 is half a character"),
        ("PUT", "/motes/3/tags", f'{{"{HALF}": "12"}}', f"{HALF} at column 1 is half a character"),
        ("PUT", "/motes/3/tags", f'{{"{HALF}": 12}}', "Input should be a valid string"),
        ("PUT", "/motes/x/tags", "{}", "path.mote: Input should be a valid integer"),
        ("POST", "/commands/leds", '{"mote": "x"}', "body.mote: Input should be a valid integer"),
        ("POST", "/commands/power_on", '{"mote": true}', "body.mote: Input should be a valid integer"),
        ("POST", "/commands/set_room", '{"argument": true}', "body.argument: Input should be a valid integer"),
        ("POST", "/pings", '{"mote": 1, "to": "x"}', "body.to: Input should be a valid integer"),
        ("POST", "/pings", '{"mote": 1, "place": [1, 1e999]}', "body.place.1: Input should be a finite number"),
        ("POST", "/queries", f'{{"sql": "{SQL}", "linger_s": true}}', "body.linger_s: Input should be a valid number"),
    ],
)  # fmt: skip
def test_a_request_that_is_wrong_is_told_so_and_does_nothing(
    gateway: NoGateway, method: str, path: str, body: str, message: str
) -> None:
    answer = request(gateway, method, path, content=body, headers=JSON)
    assert answer.status_code == 400, answer.text
    assert message in escaped(answer.json()["message"])
    assert gateway.asked == []


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("PUT", "/queries", "GET, POST"), ("GET", "/queries/3", "DELETE"), ("HEAD", "/queries/3/rows", "GET")],
)
def test_another_method_is_told_all_that_there_are(
    gateway: NoGateway, method: str, path: str, allowed: str
) -> None:
    answer = request(gateway, method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    if method != "HEAD":
        assert answer.json() == {"message": f"{method} {path}: there is {allowed}"}


def test_a_path_that_is_none_is_named(gateway: NoGateway) -> None:
    answer = request(gateway, "POST", "/events/a%2Fb")
    assert answer.status_code == 404
    assert answer.json() == {"message": "POST /events/a/b: there is nothing there"}


def test_text_that_no_encoding_has_is_answered_all_the_same(gateway: NoGateway) -> None:
    answer = request(gateway, "POST", "/queries", json={"sql": SQL})
    assert (answer.status_code, answer.json()["message"]) == (400, "no \ud800")


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/queries"), ("POST", "/commands/leds"), ("PUT", "/motes/3/tags")]
)
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", None])
def test_a_body_that_does_not_say_that_it_is_json_is_told_how(
    gateway: NoGateway, method: str, path: str, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    answer = request(gateway, method, path, content='{"sql": "SELECT temp ONCE"}', headers=headers)
    assert answer.status_code == 415
    said = f"Content-Type {kind}" if kind else "no Content-Type"
    assert answer.json() == {"message": f"{said}: send the body as JSON, with Content-Type: application/json"}
    assert gateway.asked == []


@pytest.mark.parametrize("path", ["/queries", "/commands/leds"])
def test_a_body_that_nobody_needs_is_not_read(gateway: NoGateway, path: str) -> None:
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 4096
            yield b" " * 4096

    answer = request(gateway, "POST", path, content=body(), headers=JSON)
    assert answer.status_code == 413, answer.text
    assert answer.json()["message"].startswith(f"the body has more than {BODY_MAXIMUM} bytes")
    assert sent == BODY_MAXIMUM + 4096
    assert gateway.asked == []
    whole = f'{{"sql": "{SQL}"}}'
    request(gateway, "POST", "/queries", content=whole.ljust(BODY_MAXIMUM), headers=JSON)
    assert [sql for sql, *_ in gateway.asked] == [SQL]


def test_the_description_names_no_other_status_for_what_is_wrong(gateway: NoGateway) -> None:
    paths = request(gateway, "GET", "/openapi.json").json()["paths"].values()
    found = {status for path in paths for how in path.values() for status in how["responses"]}
    assert found == {"200", "201", "202", "4XX"}


def test_halves_of_characters() -> None:
    assert [is_whole(text) for text in ("aü😀", "a\ud83d", "\ude00")] == [True, False, False]
    assert escaped("a\ud800ü") == f"a{HALF}ü"
