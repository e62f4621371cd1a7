"""Who may ask: the token file, limits, names. Against a running gateway: service/test_access.py."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from skerry.api.access import (
    BURST_S,
    REREAD_S,
    Access,
    AccessError,
    Limits,
    RateLimit,
    TokenFileError,
    Tokens,
    is_loopback,
    new_token,
    split_address,
)


def token_file(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_a_token_is_its_users(tmp_path: Path) -> None:
    ada, ada_too, grace = new_token(), new_token(), new_token()
    file = token_file(tmp_path / "tokens", f"# who may ask\nada: {ada}\n\n  ada : {ada_too}\ngrace:{grace}\n")
    tokens = Tokens(file)
    assert [tokens.user(token) for token in (ada, ada_too, grace)] == ["ada", "ada", "grace"]
    assert [tokens.user(token) for token in (ada[:-1], ada + "x", "", "ada", new_token())] == [None] * 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line 'user: token' in it"),
        ("# nobody\n", "no line 'user: token' in it"),
        ("ada\n", "line 1: expected 'user: token'"),
        ("ada: " + "x" * 19, "line 1: ada's token is not 20 or more"),
        ("ada: " + "x" * 10 + " " + "y" * 10, "line 1: ada's token is not 20 or more"),
        ("\na b: " + "x" * 20, "line 2: expected 'user: token'"),
        ("ada: " + "x" * 20 + "\ngrace: " + "x" * 20, "line 2: the token is ada's already"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TokenFileError) as refused:
        Tokens(token_file(tmp_path / "tokens", text))
    assert message in str(refused.value)
    assert "xxx" not in str(refused.value), "no message shows a token"


def test_a_file_that_cannot_be_trusted_is_refused(tmp_path: Path) -> None:
    file = token_file(tmp_path / "tokens", f"ada: {new_token()}\n")
    file.chmod(0o644)
    with pytest.raises(TokenFileError, match="everybody may read it: chmod o-rwx"):
        Tokens(file)
    with pytest.raises(TokenFileError, match="No such file"):
        Tokens(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "binary").chmod(0o600)
    with pytest.raises(TokenFileError, match="not UTF-8"):
        Tokens(tmp_path / "binary")


def test_who_is_taken_out_of_the_file_is_out(tmp_path: Path) -> None:
    ada, grace = new_token(), new_token()
    file = token_file(tmp_path / "tokens", f"ada: {ada}\ngrace: {grace}\n")
    tokens = Tokens(file)
    assert tokens.user(ada) == "ada"
    token_file(file, f"grace: {grace}\n")
    tokens._looked -= REREAD_S
    assert (tokens.user(ada), tokens.user(grace)) == (None, "grace")
    # A file that cannot be used changes nothing, and one that can be again does.
    token_file(file, "grace")
    tokens._looked -= REREAD_S
    assert tokens.user(grace) == "grace"
    token_file(file, f"ada: {ada}\n")
    tokens._looked -= REREAD_S
    assert (tokens.user(ada), tokens.user(grace)) == ("ada", None)


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


def test_with_tokens_nobody_else(tmp_path: Path) -> None:
    ada = new_token()
    access = Access(Tokens(token_file(tmp_path / "tokens", f"ada: {ada}\n")), Limits(queries=2))
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


def test_the_file_is_reread_by_what_the_system_says_of_it(tmp_path: Path) -> None:
    """Another file of the same size under the same name is another file."""
    ada, grace = new_token(), new_token()
    file = token_file(tmp_path / "tokens", f"ada: {ada}\n")
    tokens = Tokens(file)
    other = token_file(tmp_path / "other", f"eve: {grace}\n")
    os.utime(other, ns=(file.stat().st_mtime_ns, file.stat().st_mtime_ns))
    other.replace(file)
    tokens._looked -= REREAD_S
    assert (tokens.user(ada), tokens.user(grace)) == (None, "eve")


def test_a_file_that_cannot_be_read_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each feed looks after it each second."""
    ada = new_token()
    file = token_file(tmp_path / "tokens", f"ada: {ada}\n")
    tokens = Tokens(file)

    def look(times: int) -> list[str]:
        caplog.clear()
        for _ in range(times):
            tokens._looked -= REREAD_S
            assert tokens.user(ada) == "ada"
        return caplog.messages

    file.unlink()
    assert look(3) == [f"token file {file}: No such file or directory; the tokens read before stay"]
    token_file(file, "ada\n")
    assert len(look(3)) == 1
    token_file(file, f"ada: {ada}\n")
    assert look(3) == [f"token file {file} read again"]
    file.unlink()
    assert len(look(3)) == 1
