"""Writes a mote's settings: Intel hex for an EEPROM, or the bytes of a page of flash (*.bin); see skerry_protocol.settings."""

from __future__ import annotations

import argparse
from pathlib import Path

from skerry_protocol.mac import CHANNEL_DEFAULT, CHANNELS_DEFAULT, PAN_DEFAULT, channel_mask
from skerry_protocol.settings import SETTINGS_MAGIC, Settings

#: A position is in cm, in 32 bits.
METRES_MAXIMUM = 20_000_000


def intel_hex(data: bytes) -> str:
    """Data records of 16 bytes from address 0, and the end record."""
    lines = []
    for at in range(0, len(data), 16):
        chunk = data[at : at + 16]
        record = bytes([len(chunk), at >> 8, at & 0xFF, 0]) + chunk
        lines.append(f":{record.hex().upper()}{-sum(record) & 0xFF:02X}")
    return "\n".join([*lines, ":00000001FF", ""])


def channels_of(text: str) -> tuple[int, ...]:
    """Channels from a list with commas, or ``none``. Raises ArgumentTypeError."""
    names = text.split(",") if text != "none" else []
    wrong = [name for name in names if not (name.isdecimal() and 11 <= int(name) <= 26)]
    if wrong:
        raise argparse.ArgumentTypeError(
            f"channel {wrong[0]!r}: 11..26, several with commas between, or none"
        )
    return tuple(map(int, names))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--id", type=int, required=True, help="short address, 0..65533")
    parser.add_argument("--root", type=int, choices=(0, 1), default=0)
    parser.add_argument("--pan", type=int, default=PAN_DEFAULT)
    parser.add_argument(
        "--channel", type=int, default=CHANNEL_DEFAULT, choices=range(11, 27), metavar="11..26"
    )
    parser.add_argument(
        "--channels", type=channels_of, default=CHANNELS_DEFAULT, metavar="11..26,…",
        help="that data slots hop over, the same on all motes of a network; none: all stays on --channel",
    )  # fmt: skip
    parser.add_argument("--x", type=float, default=0.0, help="position in m, east")
    parser.add_argument("--y", type=float, default=0.0, help="position in m, north")
    parser.add_argument("--room", type=int, default=0, help="0..65535")
    parser.add_argument("--floor", type=int, default=0, help="-100..1000")
    parser.add_argument("--group", type=int, default=0, help="0..65535")
    options = parser.parse_args()
    for name, low, high in (("room", 0, 65535), ("floor", -100, 1000), ("group", 0, 65535)):
        if not low <= getattr(options, name) <= high:
            parser.error(f"{name} {getattr(options, name)}: {low}..{high}")
    if not 0 <= options.id <= 65533:
        parser.error(f"id {options.id}: 0..65533")
    if not 0 <= options.pan <= 65534:
        parser.error(f"pan {options.pan}: 0..65534")
    for name in ("x", "y"):
        if not abs(getattr(options, name)) <= METRES_MAXIMUM:
            parser.error(f"{name} {getattr(options, name):g}: m within {METRES_MAXIMUM:,}")
    data = Settings.build(
        {
            "magic": SETTINGS_MAGIC,
            "nodeid": options.id,
            "pan": options.pan,
            "channel": options.channel,
            "root": options.root,
            "x": round(options.x * 100),
            "y": round(options.y * 100),
            "boots": 0,
            "session": 0,
            "factory": 0,
            "room": options.room,
            "floor": options.floor,
            "group": options.group,
            "channels": channel_mask(options.channels),
        }
    )
    if options.path.suffix == ".bin":
        options.path.write_bytes(data + bytes(-len(data) % 4))
    else:
        options.path.write_text(intel_hex(data))


if __name__ == "__main__":
    main()
