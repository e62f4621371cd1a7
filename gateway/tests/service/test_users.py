"""Users come and go, over HTTP and through the gateway's state: whoever is killed, refused or many."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import pytest

import skerry
from gateway.tests.opened import opened
from gateway.tests.peer import RootPeer
from gateway.tests.process import SQL
from gateway.tests.served import served
from skerry.api.tokens import digest
from skerry.client.operator import KEY_HEADER, Operator
from skerry.service.gateway import Gateway
from skerry.service.users import UserError
from skerry.storage.state import StorageError
from skerry.storage.state.published_users import PublishedUsers

KEY = "k" * 64


def holding(directory: Path, text: str) -> list[Path]:
    """Files that have this text in them."""
    return [file for file in directory.rglob("*") if file.is_file() and text.encode() in file.read_bytes()]


def test_users_and_their_tokens_outlive_the_gateway_that_keeps_no_token(
    peer: RootPeer, tmp_path: Path
) -> None:
    with opened(peer, tmp_path) as gateway, served(gateway, KEY, tokens=True) as url:
        operator = Operator(url, KEY)
        assert operator.users() == []
        told = operator.add_users("ada", "grace", "eve")
        assert (set(told["tokens"]), told["asked"]) == ({"ada", "grace", "eve"}, True)
        tokens = told["tokens"]
        new = operator.renew("eve")["tokens"]["eve"]
        asked = skerry.connect(url, token=tokens["ada"]).query(SQL, linger_s=None)
        assert operator.remove("grace") == {"stopped": [], "kept": []}
        for wrong in (tokens["grace"], tokens["eve"], ""):
            with pytest.raises(skerry.GatewayError, match="token"):
                skerry.connect(url, token=wrong).queries()
    with opened(peer, tmp_path) as gateway, served(gateway, KEY, tokens=True) as url:
        assert [user["name"] for user in Operator(url, KEY).users()] == ["ada", "eve"]
        assert [entry["id"] for entry in skerry.connect(url, token=tokens["ada"]).queries()] == [asked.id]
        assert skerry.connect(url, token=new).queries() == []
        found = PublishedUsers(tmp_path)
        assert [found.of(digest(token)) for token in (tokens["ada"], new, tokens["grace"], tokens["eve"])] == [
            "ada", "eve", None, None,
        ]  # fmt: skip
    for token in (*tokens.values(), new):
        assert holding(tmp_path, token) == []


def test_with_a_user_goes_what_he_asked_but_for_what_others_use(peer: RootPeer, tmp_path: Path) -> None:
    with opened(peer, tmp_path) as gateway, served(gateway, KEY, tokens=True) as url:
        operator = Operator(url, KEY)
        tokens = operator.add_users("ada", "grace")["tokens"]
        ada, grace = (skerry.connect(url, token=tokens[name]) for name in ("ada", "grace"))
        point = ada.query("CREATE STORAGE POINT recent SIZE 4 AS SELECT temp FROM sensors SAMPLE PERIOD 2 s")
        asked = ada.query(SQL, linger_s=None)
        his = grace.query(
            "SELECT r.temp FROM sensors s, recent r WHERE s.temp > r.temp SAMPLE PERIOD 2 s", linger_s=None
        )
        removed = operator.remove("ada")
        assert removed["stopped"] == [asked.id]
        assert removed["kept"] == [f"query {his.id} uses storage point recent"]
        assert [entry["id"] for entry in grace.queries()] == [his.id]
        # He who has the name has what is left.
        again = skerry.connect(url, token=operator.add_users("ada")["tokens"]["ada"])
        assert [entry["id"] for entry in again.queries()] == [point.id]
        assert operator.remove("grace")["stopped"] == [his.id]
        assert operator.remove("ada")["stopped"] == [point.id]
        assert gateway.queries.all() == []
        assert gateway.site.status()["streams"] == [], "and motes are asked nothing"


def test_what_cannot_be_is_said_and_changes_nothing(tmp_path: Path) -> None:
    gateway = Gateway([], tmp_path)
    try:
        with served(gateway, KEY) as url:
            operator = Operator(url, KEY)
            assert operator.add_users("ada")["asked"] is False
            for name in ("a:b", "a b", "", "#a", "-a ", "ü", "a\n", "a" * 65):
                with pytest.raises(skerry.GatewayError, match="expected 1 to 64 letters, digits and _"):
                    operator.add_users("grace", name)
            with pytest.raises(skerry.GatewayError, match="ada is a user already: 'skerry user renew ada'"):
                operator.add_users("grace", "ada")
            with pytest.raises(skerry.GatewayError, match="one of them is there twice"):
                operator.add_users("grace", "grace")
            for attempt in (operator.remove, operator.renew):
                with pytest.raises(skerry.GatewayError, match="no user eve: 'skerry user list' shows"):
                    attempt("eve")
            requests = (("GET", "/users"), ("POST", "/users/ada/token"), ("DELETE", "/users/ada"))
            for key in ({}, {KEY_HEADER: "x" * 64}):
                answers = [httpx.request(method, url + path, headers=key) for method, path in requests]
                answers.append(httpx.post(f"{url}/users", headers=key, json={"names": ["eve"]}))
                assert [answer.status_code for answer in answers] == [403] * 4
            assert [user["name"] for user in operator.users()] == ["ada"]
        # What cannot be remembered is not done.
        before = gateway.users.all()
        for attempt in (
            lambda: gateway.users.add({"grace": b"g" * 32, "eve": b"e" * 32}),
            lambda: gateway.users.renew("ada", b"n" * 32),
        ):
            (tmp_path / "state.sqlite").unlink()
            with pytest.raises(StorageError, match="it was taken away while the gateway ran"):
                attempt()
            assert gateway.users.all() == before
            gateway.persistence.save()
        found = PublishedUsers(tmp_path)
        assert [found.of(key * 32) for key in (b"g", b"e", b"n")] == [None] * 3
        assert found.of(before[0].digest) == "ada"
    finally:
        gateway.close()


def test_many_come_at_once_and_each_is_who_he_is(tmp_path: Path) -> None:
    gateway = Gateway([], tmp_path)
    tokens: dict[str, str] = {}
    try:
        with served(gateway, KEY, tokens=True) as url:
            tokens |= Operator(url, KEY).add_users(*(f"crowd{i}" for i in range(2000)))["tokens"]

            def come(number: int) -> None:
                operator = Operator(url, KEY)
                for i in range(6):
                    name = f"user{number}.{i}"
                    tokens.update(operator.add_users(name)["tokens"])
                    client = skerry.connect(url, token=tokens[name])
                    client.execute(f"CREATE SENSORS t{number}_{i} (a DOUBLE)")
                    assert client.execute(f"DESCRIBE t{number}_{i}")["rows"]
                    if i % 2:
                        operator.remove(name)
                        tokens.pop(name)

            threads = [threading.Thread(target=come, args=[number]) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert [user["name"] for user in Operator(url, KEY).users()] == sorted(tokens)
    finally:
        gateway.close()
    again = Gateway([], tmp_path)
    try:
        assert {name: again.users.of(digest(token)) for name, token in tokens.items()} == {name: name for name in tokens}  # fmt: skip
        assert len(tokens) == 2012
    finally:
        again.close()


def come_and_go(directory: Path, seed: int, told: Connection) -> None:
    """Says before and after each change which users there are to be."""
    chance, gateway = random.Random(seed), Gateway([], directory)
    there = {user.name: user.digest for user in gateway.users.all()}
    while True:
        name, new = f"user{chance.randrange(6)}", chance.randbytes(32)
        if name not in there:
            there[name] = new
        elif chance.random() < 0.5:
            del there[name]
        else:
            there[name] = new
        told.send(("next", dict(there)))
        try:
            gateway.users.add({name: new})
        except UserError:
            if name in there:
                gateway.users.renew(name, new)
            else:
                gateway.users.remove(name)
        told.send(("done", dict(there)))


def test_whoever_is_killed_has_left_users_as_before_or_after(tmp_path: Path, drawn_seed: int) -> None:
    chance = random.Random(drawn_seed)
    processes = multiprocessing.get_context("forkserver")
    done: dict[str, bytes] = {}
    for _ in range(3):
        listening, told = processes.Pipe(duplex=False)
        child = processes.Process(target=come_and_go, args=(tmp_path, chance.randrange(1 << 30), told))
        child.start()
        told.close()
        following, left = done, chance.randrange(6, 40)
        try:
            while True:
                what, users = listening.recv()
                if what == "next":
                    following = users
                else:
                    done = users
                left -= 1
                if left == 0:
                    assert child.pid is not None
                    os.kill(child.pid, signal.SIGKILL)
        except EOFError:
            child.join()
        assert left <= 0, "it ended by itself"
        gateway = Gateway([], tmp_path)
        found = {user.name: user.digest for user in gateway.users.all()}
        gateway.close()
        assert found in (done, following)
        published = PublishedUsers(tmp_path)
        assert {published.of(found[name]) for name in found} == set(found)
        done = found
