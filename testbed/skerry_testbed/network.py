"""Network descriptions: one TOML file says motes, radio, environment and faults. ``docs/testbed.md`` explains the keys."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from skerry_testbed import checks, schema_errors
from skerry_testbed.checks import duration, require
from skerry_testbed.core import BACKENDS
from skerry_testbed.description import (
    FAULT_ARGUMENTS,
    FAULT_OPTIONS,
    MODEL_KEYS,
    Bursts,
    Crystals,
    Environment,
    Fault,
    Field,
    Interference,
    LinkBursts,
    Mote,
    Network,
    NetworkError,
    Query,
    Radio,
)
from skerry_testbed.environment_checks import check_environment

__all__ = [
    "Bursts",
    "Crystals",
    "Environment",
    "Fault",
    "Field",
    "Interference",
    "LinkBursts",
    "Mote",
    "Network",
    "NetworkError",
    "Query",
    "Radio",
    "check",
    "load",
]


def load(path: Path) -> Network:
    """Read and check a description. Raises NetworkError; relative paths inside it are relative to its folder."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        network = msgspec.convert(raw, Network)
        _check_given(raw, network)
        return check(network, path.parent)
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise NetworkError(f"{path}: no TOML: {error}") from None
    except msgspec.ValidationError as error:
        raise NetworkError(f"{path}: {schema_errors.explain(error, raw, Network)}") from None
    except NetworkError as error:
        raise NetworkError(f"{path}: {error}") from None


def check(network: Network, folder: Path = Path()) -> Network:
    """Complete a description (positions, root, paths) and check what types cannot say. Raises NetworkError."""
    require(0 <= network.seed < 1 << 64, "seed", network.seed, "0..2^64-1")
    _place(network, folder)
    checks.check_motes(network)
    checks.check_crystals(network.crystal)
    duration("boot_spread", network.boot_spread)
    _find_firmware(network, folder.resolve())
    ids = [mote.id for mote in network.mote]
    checks.check_radio(network, folder, set(ids))
    for interference in network.interference:
        checks.check_interference(interference)
    check_environment(network.environment, folder, ids)
    for fault in network.fault:
        checks.check_fault(fault, network)
    for query in network.query:
        checks.check_query(query)
    if network.tables is not None:
        path = folder / network.tables
        require(path.is_dir(), "tables", network.tables, f"a folder of tables; {path} is none")
        network.tables = str(path.resolve())
    return network


def _find_firmware(network: Network, folder: Path) -> None:
    """Make the paths of images absolute."""

    def found(key: str, name: str) -> str:
        path = folder / name
        require(path.is_file(), key, name, f"an ELF file; {path} is none")
        return str(path)

    if isinstance(network.firmware, str):
        network.firmware = found("firmware", network.firmware)
    elif network.firmware is not None:
        for board in network.firmware:
            require(board in BACKENDS, "firmware", board, f"a known board: {', '.join(sorted(BACKENDS))}")
        network.firmware = {
            board: found(f"firmware.{board}", name) for board, name in network.firmware.items()
        }


def _check_given(raw: dict[str, Any], network: Network) -> None:
    """Keys that were written but mean nothing beside the others."""
    radio = raw.get("radio", {})
    for model, keys in MODEL_KEYS.items():
        for key in keys:
            if key in radio and model != network.radio.model:
                right = ", ".join(MODEL_KEYS[network.radio.model])
                raise NetworkError(
                    f"radio.{key} is for model = {model!r}; model = {network.radio.model!r} takes {right}"
                )
    for number, fault in enumerate(raw.get("fault", [])):
        takes = FAULT_ARGUMENTS[fault["kind"]] + FAULT_OPTIONS.get(fault["kind"], ())
        for key in fault:
            if key not in ("at", "kind", *takes):
                kind = fault["kind"]
                raise NetworkError(f"fault[{number}].{key}: kind = {kind!r} takes {', '.join(takes)}")
    require(
        not ("file" in radio and "links" in radio),
        "radio.links",
        network.radio.links,
        "either it or radio.file",
    )
    seen = raw.get("environment", {})
    require(
        not ("update" in seen and "step" in seen),
        "environment.update",
        network.environment.update,
        "either it or environment.step, which says when samples come",
    )
    if network.positions is None:
        require(not network.motes, "motes", network.motes, "positions = a file beside it")
        right = "positions = a file beside it; in a [[mote]] there is a board of its own"
        require("board" not in raw, "board", network.board, right)


def _place(network: Network, folder: Path) -> None:
    """Add the motes of the positions file: ``id x y`` in each line, in m; the first line may be a heading."""
    if network.positions is not None:
        for number, line, columns in checks.table_of("positions", network.positions, folder):
            try:
                node, x, y = int(columns[0]), float(columns[1]), float(columns[2])
            except (ValueError, IndexError):
                path = folder / network.positions
                raise NetworkError(f"{path}:{number}: {line!r}: expected 'id x y'") from None
            if not network.motes or node in network.motes:
                network.mote.append(Mote(id=node, x=x, y=y, board=network.board))
        missing = set(network.motes) - {mote.id for mote in network.mote}
        require(not missing, "motes", sorted(missing), f"ids that {network.positions} has")
        network.positions = None
    if network.root is not None:
        require(network.root in [mote.id for mote in network.mote], "root", network.root, "the id of a mote")
        for mote in network.mote:
            mote.root = mote.root or mote.id == network.root
