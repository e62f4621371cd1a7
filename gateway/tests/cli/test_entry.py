"""The ``skerry`` command as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest
import typer

from gateway.tests.process import COMMAND
from skerry.cli.gateway import default_data
from skerry.cli.main import main
from skerry.cli.options import asker
from skerry.sql.parser import _tables
from skerry_protocol.limits import PROTOCOL_VERSION

EARLY = """
import sys

class Pressed:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
from skerry.cli.entry import main
main()
"""


@pytest.mark.parametrize("module", ["skerry.cli.main", "typer", "skerry.cli.show"])
def test_ctrl_c_before_anything_has_begun_is_no_traceback(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", EARLY, module], check=False, capture_output=True, text=True, timeout=600
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_a_full_disk_under_standard_output_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [COMMAND, *arguments], check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=600
        )
    assert ended.returncode == 1
    assert ended.stderr == "skerry: standard output: No space left on device\n"


CLOSED = """
import sys
from skerry.cli import main
from skerry.cli.output import table

def shown():
    {output}

main.app.command("shown")(shown)
sys.argv = ["skerry", "shown"]
main.main()
"""


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("table([{'nodeid': 3}], ('nodeid',))", 0),
        ("print('{}')", 0),
        ("print('{}', flush=True)", 0),
        ("print('{}' * 100_000)", 0),
        ("print('mote 3: refused'); raise main.typer.Exit(1)", 1),
    ],
)
def test_who_reads_no_further_has_what_he_wanted(output: str, code: int) -> None:
    reader, closed = os.pipe()
    os.close(reader)
    with os.fdopen(closed, "wb") as out:
        ended = subprocess.run(
            [sys.executable, "-c", CLOSED.format(output=output)],
            check=False, stdout=out, stderr=subprocess.PIPE, text=True, timeout=600,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (code, "")


def test_without_a_standard_output_there_is_nothing_to_tell() -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{COMMAND} --version >&-"], check=False, capture_output=True, text=True, timeout=600
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_it_says_which_version_it_is() -> None:
    ended = subprocess.run([COMMAND, "--version"], check=True, capture_output=True, text=True, timeout=600)
    assert ended.stdout == f"skerry {version('skerry')}, protocol {PROTOCOL_VERSION}\n"


@pytest.mark.parametrize("command", ["query", "explain", "catalog"])
def test_a_query_without_quotation_marks_is_told_so(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["skerry", command, "SELECT", "nodeid", "FROM", "sensors", "ONCE"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert (
        f"'nodeid FROM sensors ONCE' stands apart: put the query in quotation marks, as in skerry {command}"
        in said
    )


def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who runs this is in no list of users, as it may be in a container."""

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    for name in ("HOME", "XDG_STATE_HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


def test_who_has_no_login_name_is_told_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody(monkeypatch)
    with pytest.raises(typer.BadParameter, match="has no login name: say who asks"):
        asker("http://127.0.0.1:1", None, None)
    assert asker("http://127.0.0.1:1", "ada", None).user == "ada"


def test_who_has_no_home_is_told_to_give_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody(monkeypatch)
    with pytest.raises(OSError, match=r"has no home directory: .* --data"):
        default_data()


def test_who_has_no_home_can_ask_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser's tables are made anew each time."""
    nobody(monkeypatch)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert _tables() is False


def test_a_gateway_starts_with_its_outputs_closed() -> None:
    script = (
        "from skerry.cli.main import _open_closed_outputs as open_closed; open_closed(); import uvicorn, logging; "
        "uvicorn.Config('none:none', log_level='error'); logging.getLogger('uvicorn.error').error('said'); print('said')"
    )
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        command = ["sh", "-c", f'"$1" -c "$2" {closed}', "sh", sys.executable, script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
