"""Who may ask: tokens, limits, names. Against a running gateway: service/test_access.py."""

from __future__ import annotations

import contextlib

import pytest

from skerry.api.access import (
    BURST_S,
    Access,
    AccessError,
    Limits,
    RateLimit,
    is_loopback,
    split_address,
)
from skerry.api.tokens import digest, new_token
from skerry.service.users import User, Users


def users(**tokens: str) -> Users:
    """As the gateway has them."""
    known = Users()
    for name, token in tokens.items():
        known.put(User(name, digest(token), 0.0))
    return known


def test_a_token_is_its_users_alone() -> None:
    ada, grace = new_token(), new_token()
    known = users(ada=ada, grace=grace)
    assert [known.of(digest(token)) for token in (ada, grace)] == ["ada", "grace"]
    assert [known.of(digest(token)) for token in (ada[:-1], ada + "x", "", "ada", new_token())] == [None] * 5
    known.put(User("ada", digest(new := new_token()), 0.0))
    known.drop("grace")
    assert [known.of(digest(token)) for token in (ada, new, grace)] == [None, "ada", None]


def test_no_more_than_the_rate_over_any_stretch() -> None:
    rate, admitted = 5.0, []
    limit = RateLimit(rate)
    for step in range(1000):
        now = step * 0.01
        with contextlib.suppress(AccessError):
            limit.take("ada", now)
            admitted.append(now)
        with contextlib.suppress(AccessError):
            limit.take("grace", now)
    for i, begin in enumerate(admitted):
        for j in range(i, len(admitted)):
            assert j - i + 1 <= rate * (admitted[j] - begin + BURST_S) + 1e-6
    assert len(admitted) >= rate * 10


def test_who_waits_as_he_is_told_is_admitted() -> None:
    limit, now = RateLimit(0.3), 0.0
    limit.take("ada", now)
    for _ in range(10):
        with pytest.raises(
            AccessError, match=r"ada may do 0\.3 requests a second: try again in \d s"
        ) as refused:
            limit.take("ada", now)
        assert refused.value.status == 429
        now += int(refused.value.headers["Retry-After"])
        limit.take("ada", now)


def test_who_has_been_silent_is_forgotten() -> None:
    """Without tokens anybody may go by ever new names."""
    limit = RateLimit(5.0)
    for i in range(10_000):
        limit.take(f"made up {i}", i * 0.01)
        assert len(limit._buckets) <= 2 * BURST_S / 0.01
    for _ in range(int(5 * BURST_S)):
        limit.take("ada", 200.0)
    with pytest.raises(AccessError):
        limit.take("ada", 200.0)
    limit.take("grace", 200.0 + BURST_S / 2)
    for _ in range(int(5 * BURST_S / 2)):
        limit.take("ada", 200.0 + BURST_S / 2)
    with pytest.raises(AccessError):
        limit.take("ada", 200.0 + BURST_S / 2)


def test_without_tokens_everybody_is_who_he_says() -> None:
    access = Access()
    assert access.admit(None, "ada", "127.0.0.1:8642").user == "ada"
    assert access.admit(None, None, "[::1]:8642").user is None
    assert access.named(access.admit(None, None, "localhost"), "ada").user == "ada"
    with pytest.raises(AccessError) as refused:
        access.admit(None, None, "attacker.example:8642")
    assert refused.value.status == 421
    with pytest.raises(AccessError):
        access.named(access.admit(None, "ada", None), "grace")


def test_with_tokens_nobody_else() -> None:
    ada = new_token()
    access = Access(known := users(ada=ada), Limits(queries=2), open=False)
    caller = access.admit(f"Bearer {ada}", None, "gateway.example")
    assert caller.user == "ada"
    assert access.admit(f"bearer  {ada} ", "ada", None).user == "ada"
    cases = {None: 401, "": 401, "Bearer": 401, f"Basic {ada}": 401, f"Bearer {new_token()}": 401}
    for header, status in cases.items():
        with pytest.raises(AccessError) as refused:
            access.admit(header, None, None)
        assert refused.value.status == status
        assert refused.value.headers["WWW-Authenticate"].startswith("Bearer")
    with pytest.raises(AccessError) as refused:
        access.admit(f"Bearer {ada}", "grace", None)
    assert refused.value.status == 403
    assert access.refusal(caller, f"Bearer {ada}") is None
    known.drop("ada")
    assert access.refusal(caller, f"Bearer {ada}") == (
        "the gateway does not know this token any more: ada was removed, or has a new one"
    )
    access.check_queries(caller, 1)
    with pytest.raises(AccessError, match="ada has 2 queries, and 2 is the most") as refused:
        access.check_queries(caller, 2)
    assert refused.value.status == 429
    assert int(refused.value.headers["Retry-After"]) > 0
    access.check_feeds(caller, lambda: 3)
    with pytest.raises(AccessError, match="ada reads 4 feeds at once, and 4 is the most"):
        access.check_feeds(caller, lambda: 4)


def test_addresses() -> None:
    assert split_address("127.0.0.1:8642") == ("127.0.0.1", "8642")
    assert split_address("[::1]:8642") == ("::1", "8642")
    assert split_address("[::1]") == ("::1", "")
    assert split_address("gateway") == ("gateway", "")
    assert all(map(is_loopback, ("127.0.0.1", "127.8.9.1", "::1", "localhost", "LOCALHOST")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example", "")))
