"""Where a mote's energy goes, for the query of table VII in TinyDB 2005: light and humidity once a minute, two frames sent in each."""

from __future__ import annotations

from dataclasses import dataclass

from bench.measuring.emulated import described, started
from bench.runner.benchmark import Benchmark, SeedOptions, option
from bench.runner.recorder import Recorder
from bench.runner.result import Cell, Column
from skerry_testbed.network import Field
from skerry_testbed.pytest import disc, line_of
from skerry_testbed.queries import ask

SETTLE_S = 400
PERIOD_S = 60
VOLTS = 3.0
#: PSDU of a mote's frames is longer than this on air: preamble, SFD and length take 6 bytes of 32 us.
BYTE_S, HEAD_BYTES = 32e-6, 6
#: The paper's rows: mA and seconds in each minute.
PAPER = {
    "sensing, humidity": (0.50, 0.34),
    "sensing, light": (0.35, 1.30),
    "sending": (10.40, 0.03),
    "receiving packets": (9.30, 0.15),
    "sampling the channel": (0.07, 0.86),
    "processor active": (5.00, 2.00),
    "processor idle": (0.001, 58.00),
}


@dataclass(frozen=True)
class Options(SeedOptions):
    seed: int = option(7, "what is random is drawn from it")
    epochs: int = option(60, f"of {PERIOD_S} s, once the network has settled")


def measured(columns: str, options: Options) -> tuple[dict[str, float], float]:
    """Energy (J) and seconds by component of mote 1, per epoch, and seconds of frames that it received.

    It has a child, the root is its parent."""
    fields = {"light": Field(base=300.0), "humidity": Field(base=50.0)}
    net = started(described("energy", line_of(3, spacing=10), disc(12), options.seed, fields), SETTLE_S / 2)
    ask(net, 1, f"SELECT {columns} FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    net.advance(SETTLE_S / 2)
    before, heard = net.motes[1].energy, net.motes[1].counters["received"]
    net.frames.clear()
    net.advance(options.epochs * PERIOD_S)
    after = net.motes[1].energy
    # Frames near it are all about as long: those it received took their mean.
    others = [
        frame.psdu for frame in net.frames if net.bed.motes[frame.sender].id != 1 and len(frame.psdu) > 5
    ]
    mean_s = sum(HEAD_BYTES + len(psdu) for psdu in others) / len(others) * BYTE_S
    received = net.motes[1].counters["received"] - heard
    return {
        key: (after[key] - before[key]) / options.epochs for key in after
    }, received * mean_s / options.epochs


def measure(options: Options, recorder: Recorder) -> None:
    """With both sensors, and with one: the difference is the other's."""
    recorder.progress("light and humidity")
    both, receiving_s = measured("light, humidity", options)
    recorder.progress("light")
    light, _ = measured("light", options)
    light_j = light["sensors_j"]
    listening_s = both["radio_rx_s"] + both["radio_idle_s"]
    listening_j = both["radio_rx_j"] + both["radio_idle_j"]
    ours = {
        "sensing, humidity": (both["sensors_j"] - light_j, None),
        "sensing, light": (light_j, None),
        "sending": (both["radio_tx_j"], both["radio_tx_s"]),
        "receiving packets": (listening_j * receiving_s / listening_s, receiving_s),
        "sampling the channel": (listening_j * (1 - receiving_s / listening_s), listening_s - receiving_s),
        "processor active": (both["cpu_active_j"], both["cpu_active_s"]),
        "processor idle": (
            both["cpu_idle_j"] + both["cpu_save_j"] + both["radio_sleep_j"] + both["radio_off_j"],
            both["cpu_idle_s"] + both["cpu_save_s"],
        ),
    }
    paper_mc = sum(ma * s for ma, s in PAPER.values())
    ours_mc = sum(joule for joule, _ in ours.values()) / VOLTS * 1e3
    table = recorder.table(
        "charge",
        [
            Column("a minute's charge"), Column("TinyDB: mA", form="g"), Column("TinyDB: s", form="g"),
            Column("TinyDB: mC", form=".3f"), Column("TinyDB: share", "%", ".1f"), Column("ours: mA", form=".3g"),
            Column("ours: s", form=".3g"), Column("ours: mC", form=".3f", better="less"), Column("ours: share", "%", ".1f"),
        ],
    )  # fmt: skip
    for name, (ma, s) in PAPER.items():
        joule, seconds = ours[name]
        mc = joule / VOLTS * 1e3
        own: list[Cell] = [mc / seconds, seconds] if seconds else [None, None]
        table.row(name, ma, s, ma * s, 100 * ma * s / paper_mc, *own, mc, 100 * mc / ours_mc)
    active = ours["processor active"][0] / VOLTS * 1e3
    recorder.figure(
        "charge a minute",
        ours_mc,
        "mC",
        ".2f",
        better="less",
        goal=round(paper_mc, 2),
        reference="TinyDB",
        main=True,
    )
    recorder.figure("mean current", ours_mc / PERIOD_S, "mA", ".4f", better="less")
    recorder.figure("mean current of TinyDB's", paper_mc / PERIOD_S, "mA", ".4f")
    recorder.figure("charge of the active processor a minute", active, "mC", ".3f", better="less", main=True)


BENCHMARK = Benchmark(measure, quick=Options(epochs=3), minutes=0.5)
