"""What stands for secrets in addresses: whose they are, and that they are told to nobody."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from skerry.sensors.definitions import Field
from skerry.sources.decoding import Decoder, MisfitError
from skerry.sources.opening import Opener
from skerry.sources.secrets import filled
from skerry.sources.stream_type import AddressError, Sensor, types


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    secrets = tmp_path / "secrets"
    (secrets / "127.0.0.1:1883").mkdir(parents=True)
    (secrets / "example.org").mkdir()
    for path, text in (
        ("127.0.0.1:1883/pass", "a b/:@?&#%\n"),
        ("example.org/pass", "other"),
        ("example.org/two", "1\n2\n"),
    ):
        (secrets / path).write_text(text)
        (secrets / path).chmod(0o600)
    return secrets


def test_a_secret_goes_to_its_host_alone(folder: Path) -> None:
    found = filled("mqtt://u:{secret:pass}@127.0.0.1/t?x={secret:pass}", folder)
    assert found.address == "mqtt://u:a%20b%2F%3A%40%3F%26%23%25@127.0.0.1/t?x=a%20b%2F%3A%40%3F%26%23%25"
    assert found.hide(f"no a b/:@?&#% at {found.address}") == (
        "no {secret:pass} at mqtt://u:{secret:pass}@127.0.0.1/t?x={secret:pass}"
    )
    assert filled("http://example.org:81/{secret:pass}", folder).address == "http://example.org:81/other"
    assert filled("mqtt://127.0.0.1/t", folder).address == "mqtt://127.0.0.1/t"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        (
            "mqtt://u:{secret:pass}@127.0.0.1:1884/t",
            "there is no secret 'pass' for 127.0.0.1:1884: the operator keeps it in",
        ),
        ("mqtt://u:{secret:../../etc/shadow}@127.0.0.1/t", "names no secret"),
        ("mqtt://u:{secret:..}@127.0.0.1/t", "names no secret"),
        ("mqtt://{secret:pass}:1883/t", "but no host"),
        ("http://../{secret:state}", "a secret is told to a host, and 'http://../{secret:state}' names none"),
        ("file:{secret:state}", "names none"),
        ("http://example.org/{secret:two}", "expected one line of text"),
    ],
)
def test_what_is_wrong_is_told(folder: Path, address: str, why: str) -> None:
    with pytest.raises(AddressError) as refused:
        filled(address, folder)
    assert why in str(refused.value)


def test_what_others_may_reach_is_not_used(folder: Path) -> None:
    file = folder / "example.org/pass"
    for path, mode, right in ((file, 0o644, "go="), (file.parent, 0o777, "go-w"), (folder, 0o775, "go-w")):
        before = path.stat().st_mode
        path.chmod(mode)
        with pytest.raises(AddressError, match=f"others may reach {path}: chmod {right} {path}"):
            filled("http://example.org/{secret:pass}", folder)
        path.chmod(before)
    assert filled("http://example.org/{secret:pass}", folder).address == "http://example.org/other"


def test_none_is_told_in_part_or_in_other_words(folder: Path) -> None:
    for name, text in (("short", "open"), ("long", 'open sesame é"/' + "y" * 80)):
        (folder / "127.0.0.1:1883" / name).write_text(text)
        (folder / "127.0.0.1:1883" / name).chmod(0o600)
    found = filled("mqtt://{secret:short}:{secret:long}@127.0.0.1/t", folder)
    long = dict(found.secrets)["{secret:long}"]
    for written in (
        long, quote(long), quote_plus(long), quote(long).lower(), json.dumps(long), json.dumps(long, ensure_ascii=False), repr(long)
    ):  # fmt: skip
        assert "{secret:long}" in (shown := found.hide(f"it says {written}."))
        assert "sesame" not in shown, written
    whole = base64.b64encode(f"open:{long}".encode()).decode()
    assert found.hide(f"Basic {whole}") == "Basic {secret:short}:{secret:long}"
    [field] = [Field("rain", "double")]
    with pytest.raises(MisfitError) as misfit:
        Decoder([field]).line(json.dumps({"rain": long}).encode())
    assert misfit.value.told(found.hide) == "field rain is DOUBLE, which '{secret:long}' is not"
    assert str(misfit.value).startswith("field rain is DOUBLE, which 'open sesame")


def test_refusals_tell_no_secret(folder: Path) -> None:
    opener = Opener(types(), folder, ("loopback",), folder)
    with pytest.raises(AddressError) as refused:
        opener.made(
            Sensor("mqtt://u:{secret:pass}@127.0.0.1?a%20b%2F%3A%40%3F%26%23%25{secret:pass}=", {}, ())
        )
    assert "a b/" not in str(refused.value)
    assert "a%20b" not in str(refused.value)
