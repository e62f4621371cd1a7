"""What can be checked of the Renode suites without Renode: addresses, interrupts, sizes, the script, and that the robot files parse."""

from __future__ import annotations

import itertools
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from robot.api import TestSuite as Suite

from hil_tests.renode import compare
from skerry_protocol import codec, mac
from skerry_protocol.codes import PacketType
from skerry_protocol.settings import Settings
from skerry_testbed.built import BUILD, PROJECT
from skerry_testbed.network import Environment, Fault, Field, Mote, Network, NetworkError, Radio, check, load
from skerry_testbed.pytest import MakeNetwork, disc, line_of
from skerry_testbed.queries import ask, rows
from skerry_testbed.renode import FILES, script

HERE = Path(__file__).parent
THREE = HERE / "three_motes.toml"
REGISTERS = (PROJECT / "firmware" / "drivers" / "cc2538" / "registers.h").read_text()
MODEL = (PROJECT / "testbed" / "core" / "arm" / "arm.h").read_text()
SKERRY = str(Path(sys.executable).parent / "skerry")
ELF = BUILD / "firmware" / "cc2538.elf"


def peripherals() -> dict[str, tuple[int, int | None, list[int]]]:
    """Of the platform description: base address, size where it is given, interrupts."""
    found = {}
    text = re.sub(r"//.*", "", (FILES / "cc2538.repl").read_text())
    for entry in re.split(r"\n(?=\w+: )", text):
        head = re.match(r"\s*(\w+): [\w.]+ @ sysbus (0x[0-9A-Fa-f]+)", entry)
        if head:
            size = re.search(r"size: (0x[0-9A-Fa-f]+)", entry)
            lines = [int(number) for number in re.findall(r"nvic@(\d+)", entry)]
            found[head[1]] = int(head[2], 16), int(size[1], 16) if size else None, lines
    return found


def defined(text: str, name: str) -> int:
    """Value of a #define or enumerator."""
    match = re.search(rf"\b{name}\b(?: =)? (?:REGISTER\()?(0x[0-9A-Fa-f]+|\d+)", text)
    assert match, name
    return int(match[1], 0)


@pytest.fixture
def three() -> Network:
    if not ELF.exists():
        pytest.skip(f"{ELF} is missing: run 'make firmware'")
    return load(THREE)


def exported(network: Network, duration_s: float = 30) -> str:
    return script(network, port=7654, quantum_s=0.0002, duration_s=duration_s, fastest=True)


def test_interrupts_are_those_of_the_firmware_and_of_the_testbeds_model() -> None:
    found = peripherals()
    for name, constant in (("uart0", "IRQ_UART0"), ("radio", "IRQ_RF"), ("sleepTimer", "IRQ_SLEEP_TIMER")):
        assert found[name][2] == [defined(REGISTERS, constant)] == [defined(MODEL, constant)], name


def test_every_register_of_the_firmware_lies_in_a_peripheral_of_the_platform() -> None:
    # What Renode's models cover; the ADC is added by the script.
    sizes = {
        "uart0": 0x1000,
        "sleepTimer": 0x30,
        "radio": 0x1000,
        "gpioA": 0x1000,
        "gpioC": 0x1000,
        "flashCtrl": 0x1000,
        "nvic": 0x1000,
    }
    ranges = [(base, base + (size or sizes[name])) for name, (base, size, _) in peripherals().items()]
    ranges.append((0x400D7000, 0x400D7100))
    addresses = {int(text, 16) for text in re.findall(r"0x(?:400|E00)[0-9A-Fa-f]{5}\b", REGISTERS)}
    assert len(addresses) > 50
    for address in sorted(addresses):
        assert any(low <= address < high for low, high in ranges), hex(address)


@pytest.mark.usefixtures("three")
def test_memories_have_the_chips_sizes_and_the_image_fits() -> None:
    found = peripherals()
    assert found["flash"][:2] == (defined(MODEL, "FLASH_BASE"), 512 * 1024)
    assert found["ram"][:2] == (defined(MODEL, "RAM_BASE"), 32 * 1024)
    headers = subprocess.run(["readelf", "-lW", str(ELF)], check=True, capture_output=True, text=True).stdout
    segments = [
        (int(virtual, 16), int(physical, 16), int(in_file, 16), int(in_memory, 16))
        for virtual, physical, in_file, in_memory in re.findall(
            r"LOAD\s+\S+ (0x\w+) (0x\w+) (0x\w+) (0x\w+)", headers
        )
    ]
    assert len(segments) >= 3
    for virtual, physical, in_file, in_memory in segments:
        if in_file:
            assert 0x200000 <= physical < physical + in_file <= 0x280000
        if virtual >= 0x20000000:
            assert virtual + in_memory <= 0x20008000
    # Renode's flash controller takes a word address for a byte address of 16 bits: what it writes and erases must not be the image.
    assert not [
        (hex(physical), in_file)
        for _, physical, in_file, _ in segments
        if physical < 0x210000 and physical + in_file > 0x20F800
    ]


def test_the_script_loads_the_image_at_its_vectors_with_each_motes_settings(three: Network) -> None:
    text = exported(three)
    symbols = subprocess.run(["nm", str(ELF)], check=True, capture_output=True, text=True).stdout
    vectors = re.search(r"^([0-9a-f]+) \w vectors$", symbols, re.MULTILINE)
    assert vectors
    for mote in three.mote:
        part = re.search(rf'mach create "mote{mote.id}"\n(.*?)mach clear', text, re.DOTALL)
        assert part
        assert f"sysbus LoadELF @{ELF}" in part[1]
        assert f"VectorTableOffset 0x{vectors[1]}" in part[1]
        words = re.findall(r"WriteDoubleWord (0x[0-9a-f]+) (0x[0-9a-f]+)", part[1])
        assert [int(address, 16) for address, _ in words] == [0x27F000 + 4 * i for i in range(len(words))]
        data = b"".join(int(word, 16).to_bytes(4, "little") for _, word in words)
        settings = Settings.parse(data)
        assert (settings.nodeid, settings.root, settings.x) == (mote.id, int(mote.root), round(mote.x * 100))
        assert f"wireless SetPosition sysbus.radio {mote.x * 100:.0f} {mote.y * 100:.0f} 0" in part[1]
        assert ("connector Connect sysbus.uart0 line" in part[1]) == mote.root
    assert "wireless SetRangeWirelessFunction 1100" in text
    assert "emulation SetGlobalSerialExecution true" in text
    assert text.count('"""') % 2 == 0


def test_links_that_are_no_disc_become_a_matrix_of_reception_rates() -> None:
    links = [(0, 1, 0.9), (1, 0, 0.85), (1, 2, 1.0)]
    motes = line_of(3, spacing=10, boards=["cc2538"])
    text = exported(check(Network(mote=motes, radio=Radio(model="matrix", links=links))))
    assert 'SetReceptionMatrix "0 1 0.9000, 1 0 0.8500, 1 2 1.0000"' in text
    assert f"include @{FILES / 'MatrixMedium.cs'}" in text
    assert "wireless SetPosition sysbus.radio 1000 0 1" in text

    far = check(Network(mote=motes, radio=Radio(model="log-distance", exponent=3.0, reference_db=63.0)))
    rates = [float(rate) for rate in re.findall(r"\d \d (\d\.\d{4})", exported(far))]
    assert len(rates) >= 4
    assert min(rates) < 0.9 < max(rates)


def test_faults_that_renode_can_do_are_run_in_their_order() -> None:
    motes = line_of(3, spacing=10, boards=["cc2538"])
    faults = [
        Fault(at="20 s", kind="reboot", mote=1), Fault(at="10 s", kind="kill", mote=1),
        Fault(at="30 s", kind="clock_drift", mote=2, ppm=100.0), Fault(at="40 s", kind="move", mote=2, x=5.0, y=0.0),
    ]  # fmt: skip
    text = exported(check(Network(mote=motes, radio=disc(11), fault=faults, boot_spread=0)))
    macro = text[text.index("macro faults") :]
    order = [
        "RunFor \"10.000000\"", "IsHalted true", "RunFor \"10.000000\"", "machine Reset", "RunFor", "sleepTimer Frequency 32771", "RunFor",
        "SetPosition sysbus.radio 500 0 0", "start",
    ]  # fmt: skip
    at = 0
    for command in order:
        at = macro.index(command, at) + 1


@pytest.mark.parametrize(
    ("network", "says"),
    [
        (Network(mote=line_of(2, spacing=10)), "mote 0: board = 'iris': Renode has no model of it"),
        (
            Network(
                mote=line_of(2, spacing=10, boards=["cc2538"]),
                fault=[Fault(at=1, kind="serial_noise")],
            ),
            "kind = 'serial_noise': Renode can do kill, reboot, move, clock_drift",
        ),
    ],
)
def test_what_renode_cannot_do_is_refused(network: Network, says: str) -> None:
    with pytest.raises(NetworkError, match=re.escape(says)):
        exported(check(network))


class Request:
    """A request to Renode's Python peripheral, as version 1.15 or 1.16 names its fields."""

    def __init__(self, capitals: bool, kind: str, offset: int = 0, value: int = 0) -> None:
        fields = {"isInit": kind == "init", "isRead": kind == "read", "offset": offset, "value": value}
        for name, field in fields.items():
            setattr(self, name[0].upper() + name[1:] if capitals else name, field)


class Peripheral:
    """What the script calls ``self``: knows the virtual time."""

    def __init__(self, now_s: float) -> None:
        self.ElapsedVirtualTime = self.TimeElapsed = self
        self.TotalSeconds = now_s

    def GetMachine(self) -> Peripheral:
        return self


def converted(
    readings: dict[str, list[tuple[float, float | None]]], control: int, now_s: float, capitals: bool
) -> int:
    """The ADC's result for a control word, by the peripheral that runs in Renode."""
    code = compile((FILES / "adc.py").read_text(), "adc.py", "exec")
    scope: dict[str, object] = {"READINGS": readings, "self": Peripheral(now_s)}

    def ask(request: Request) -> int:
        scope["request"] = request
        exec(code, scope)
        return int(getattr(request, "Value" if capitals else "value"))

    ask(Request(capitals, "init"))
    ask(Request(capitals, "write", 0x08, control))
    assert ask(Request(capitals, "read", 0x00)) & 0x80
    return (ask(Request(capitals, "read", 0x10)) << 8 | ask(Request(capitals, "read", 0x0C))) >> 2


@pytest.mark.parametrize("capitals", [False, True], ids=["1.15", "1.16"])
def test_the_adc_for_renode_holds_readings_and_fails_where_they_do(capitals: bool) -> None:
    readings: dict[str, list[tuple[float, float | None]]] = {
        "temp": [(0.0, 20.0), (10.0, 30.0), (20.0, None)],
        "voltage": [(0.0, 3.0)],
    }
    temperature = 0x32
    assert converted(readings, temperature, 5, capitals) == round((0.424 + 0.00625 * 20) / 1.19 * 8192)
    assert converted(readings, temperature, 10, capitals) == round((0.424 + 0.00625 * 30) / 1.19 * 8192)
    assert converted(readings, temperature, 25, capitals) == 0
    assert converted(readings, 0x3F, 5, capitals) == round(1.0 / 1.19 * 8192)


def test_the_adc_for_renode_measures_as_the_testbeds_does(network: MakeNetwork) -> None:
    """Through the same firmware: what it makes of the peripheral's counts is what rows of the testbed say."""
    seen = {
        "temp": 23.37,
        "humidity": 61.2,
        "light": 417.0,
        "accel_x": -0.42,
        "accel_y": 0.8,
        "voltage": 2.87,
    }
    environment = Environment(fields={name: Field(base=value) for name, value in seen.items()})
    net = network(line_of(2, spacing=10, boards=["cc2538"]), environment=environment)
    net.advance("20s")
    query = ask(net, 1, f"SELECT {', '.join(seen)} FROM sensors SAMPLE PERIOD 5 s")
    net.advance("20s")
    row = rows(net.line, 1, query)[-1]
    readings: dict[str, list[tuple[float, float | None]]] = {
        name: [(0.0, value)] for name, value in seen.items()
    }

    def counts(control: int) -> int:
        return converted(readings, control, 1, capitals=False)

    assert row["temp"] == pytest.approx((counts(0x32) * 1.19 / 8192 - 0.424) / 0.00625, abs=0.006)
    assert row["humidity"] == pytest.approx((counts(0xB4) / 8192 - 0.1515) / 0.00636, abs=0.006)
    assert row["light"] == pytest.approx((counts(0x35) * 1.19 / 8192 - 0.01) / 0.000235, abs=0.6)
    assert row["accel_x"] == pytest.approx((counts(0xB6) / 8192 - 0.5) * 3 / 0.167, abs=0.0006)
    assert row["accel_y"] == pytest.approx((counts(0xB7) / 8192 - 0.5) * 3 / 0.167, abs=0.0006)
    assert row["voltage"] == pytest.approx(counts(0x3F) * 1.19 / 8192 * 3, abs=0.0006)


@pytest.mark.parametrize("suite", ["three_motes.robot", "frames.robot"])
def test_the_robot_files_parse_and_call_keywords_rightly(suite: str, tmp_path: Path) -> None:
    loaded = Suite.from_file_system(str(HERE / suite))
    loaded.resource.imports.create(type="Library", name=str(HERE / "renode_keywords.py"))
    result = loaded.run(
        dryrun=True, output=str(tmp_path / "output.xml"), stdout=subprocess.DEVNULL, console="none"
    )
    assert result.suite.test_count >= 1
    assert [(test.name, test.message) for test in result.suite.all_tests if not test.passed] == []


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_what_the_suite_asks_of_renode_the_testbed_answers(three: Network, port: int) -> None:
    """ask.py against a serial line in real use: the check itself is right."""
    bed = subprocess.Popen(
        [SKERRY, "testbed", str(THREE), "--speed", "20", "--port", str(port)], cwd=PROJECT, stderr=subprocess.DEVNULL
    )  # fmt: skip
    try:
        asked = subprocess.run(
            [sys.executable, "-m", "hil_tests.renode.ask", str(THREE), "--port", str(port), "--timeout", "100"],
            cwd=PROJECT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        bed.terminate()
        bed.wait()
    assert asked.returncode == 0, asked.stderr
    rows = asked.stdout.splitlines()[1:]
    assert {int(row.split(",")[0]) for row in rows} == {mote.id for mote in three.mote}
    assert any(int(row.split(",")[1]) == 2 for row in rows), "the third mote's rows come by a hop"


def four() -> Network:
    """Differs from THREE in ids, number, links as a matrix, and frames that could collide."""
    ids = [10, 19, 34, 74]
    pairs = [pair for a, b in itertools.pairwise(ids) for pair in ((a, b), (b, a))]
    radio = Radio(model="matrix", links=[(sender, receiver, 1.0) for sender, receiver in pairs])
    motes = [Mote(id=node, x=9.0 * i, y=0.0, board="cc2538", root=i == 0) for i, node in enumerate(ids)]
    return check(Network(mote=motes, radio=radio, seed=5, clock_ppm=0, boot_spread=0))


# Not four at 0.2 ms: there a mote then meets another's frame, a fifth of a millisecond earlier than it would.
@pytest.mark.parametrize(
    ("which", "quantum_s"), [("three", 0.000_03), ("three", 0.000_2), ("four", 0.000_03)]
)
def test_a_coarse_clock_and_a_radio_that_seems_to_send_on_change_no_frame(
    three: Network, which: str, quantum_s: float
) -> None:
    """Renode's model of the chip, as far as it was found to make motes draw other waits."""
    described = three if which == "three" else four()
    exact, until, disturbed = compare.from_testbed(described, 60.0)
    assert until >= 15, disturbed
    coarse, until_coarse, _ = compare.from_testbed(described, until, compare.Coarse(quantum_s, 4))
    assert until_coarse == until
    exact = [frame for frame in exact if frame.at is not None and frame.at <= until]
    assert len({frame.node for frame in exact}) == len(described.mote)
    assert len(exact) > 15
    assert compare.differences(exact, coarse, 0.01, until) == []


def test_two_runs_agree_or_the_comparison_says_where_they_do_not(three: Network, tmp_path: Path) -> None:
    here, until, _ = compare.from_testbed(three, 40.0)
    assert until >= 20
    timed = [(at, frame) for frame in here if (at := frame.at) is not None and at <= until]
    assert len(timed) > 15
    assert compare.differences(here, here, 0.01, until) == []
    at, sixth = timed[5]
    late = [*here[:5], compare.Sent(at + 0.02, sixth.node, sixth.what), *here[6:]]
    assert len(compare.differences(here, late, 0.01, until)) == 1
    assert any("frames here" in line for line in compare.differences(here, here[:-6], 0.01, 60.0))
    file = tmp_path / "frames.txt"
    file.write_text("12.5 7 zz\n")
    with pytest.raises(ValueError, match=r"frames\.txt:1: '12\.5 7 zz': expected"):
        compare.from_file(file, 40.0)


def test_acknowledgements_of_which_nobody_knows_the_time_are_held_by_their_order(tmp_path: Path) -> None:
    """1.15.3 dates them 0.0."""
    file = tmp_path / "frames.txt"
    file.write_text("1000.5 7 0200112233\n0.0 7 0200122233\n0.0 7 0200132233\n41000.0 7 0200142233\n")
    there = compare.from_file(file, 40.0)
    assert [(frame.at, frame.what) for frame in there] == [
        (1.0005, "acknowledgement 17"), (None, "acknowledgement 18"), (None, "acknowledgement 19")
    ]  # fmt: skip
    here = [compare.Sent(1.0, 7, "acknowledgement 17"), compare.Sent(9.0, 7, "acknowledgement 18")]
    assert compare.differences(here, there, 0.01, 40.0) == []
    other = [here[0], compare.Sent(9.0, 7, "acknowledgement 23")]
    assert compare.differences(other, there, 0.01, 40.0) == [
        "mote 7 at 9.0000 s: 'acknowledgement 23' here, 'acknowledgement 18' there"
    ]


def test_what_differs_at_each_start_is_no_difference_of_beacons() -> None:
    def beacon(offset: int, level: int) -> bytes:
        packet = codec.encode(
            PacketType.BEACON, root=1, session=9, sequence=1, root_sequence=2, level=level, parent=1, cost=16, seconds=5, ticks=6,
            offset=offset, skew=0, query_version=0, srts=b"", neighbours=[],
        )  # fmt: skip
        return mac.encode(mac.MacFrame(1, 0xFFFF, 5, packet))

    assert compare.describe(beacon(65500, 1)) == compare.describe(beacon(17, 1))
    assert compare.describe(beacon(65500, 1)) != compare.describe(beacon(65500, 2))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"boot_spread": "2 s"}, "boot_spread = '2 s': two emulators cannot be compared; expected 0"),
        ({"clock_ppm": 40}, "clock_ppm = 40: two emulators cannot be compared; expected 0"),
        ({"boot": "3 s"}, "mote 2: boot = '3 s': two emulators cannot be compared; expected 0"),
        ({"mote_ppm": -5}, "mote 2: clock_ppm = -5: two emulators cannot be compared; expected 0"),
        ({"reception": 0.9}, "radio.reception = 0.9: two emulators cannot be compared; expected 1"),
        (
            {"fault": True},
            "fault at 5: kind = 'kill': two emulators cannot be compared; expected no faults",
        ),
        (
            {"links": [(1, 2, 0.5), (2, 1, 1.0)]},
            "radio.links: 1 2 0.5: two emulators cannot be compared; expected a probability of 0 or 1",
        ),
        (
            {"model": "log-distance"},
            "radio.model = 'log-distance': two emulators cannot be compared; expected 'disc' or 'matrix'",
        ),
    ],
)
def test_a_network_that_two_emulators_run_differently_is_refused(
    change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    model = change.get("model", "matrix" if "links" in change else "disc")
    lines = [
        f"boot_spread = {change.get('boot_spread', 0)!r}", f"clock_ppm = {change.get('clock_ppm', 0)}", "[radio]", f"model = '{model}'",
        f"links = {[list(link) for link in change['links']]}" if "links" in change else "",
        f"reception = {change['reception']}" if "reception" in change else "",
        "[[mote]]", "id = 1", "x = 0.0", "y = 0.0", "board = 'cc2538'", "root = true",
        "[[mote]]", "id = 2", "x = 9.0", "y = 0.0", "board = 'cc2538'",
        f"boot = {change['boot']!r}" if "boot" in change else "",
        f"clock_ppm = {change['mote_ppm']}" if "mote_ppm" in change else "",
        "[[fault]]\nat = 5\nkind = 'kill'\nmote = 2" if "fault" in change else "",
    ]  # fmt: skip
    description = tmp_path / "network.toml"
    description.write_text("\n".join(lines))
    asked = subprocess.run(
        [sys.executable, "-m", "hil_tests.renode.compare", str(description), "--list"],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (asked.returncode, asked.stderr) == (1, f"compare: {says}\n")
