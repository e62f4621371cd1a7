"""The keywords of Renode that the suites use, by name and arguments, for a dry run where Renode is not installed.

Arguments as in Renode 1.15.3 and 1.16.1 (src/Renode/RobotFrameworkEngine); a dry run calls none of them.
"""

from __future__ import annotations


def execute_command(command: str, machine: str | None = None) -> str:
    """One command of the monitor."""
    raise RuntimeError(f"Renode is not here: {command!r}, machine {machine!r}")


def start_emulation() -> None:
    """Let virtual time run."""
    raise RuntimeError("Renode is not here")


def create_network_interface_tester(networkInterface: str, machine: str | None = None) -> int:
    """A tester that keeps what an interface sends; its id."""
    raise RuntimeError(f"Renode is not here: {networkInterface!r}, machine {machine!r}")


def wait_for_outgoing_packet(timeout: float, testerId: int | None = None) -> dict[str, object]:
    """The next packet: its bytes and time in ms."""
    raise RuntimeError(f"Renode is not here: {timeout} s, tester {testerId}")


def test_teardown() -> None:
    """What renode-test does after each test."""
    raise RuntimeError("Renode is not here")
