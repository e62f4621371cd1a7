"""Where a mote's energy goes, for the query of table VII in TinyDB 2005: light and humidity once a minute, two frames sent in each."""

from __future__ import annotations

from hil_tests.queries import ask
from skerry_testbed.network import Environment, Field, Mote, Network, Radio, check
from skerry_testbed.pytest import NetworkHandle

SETTLE_S = 400
EPOCHS = 60
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


def measure(columns: str) -> tuple[dict[str, float], float]:
    """Energy (J) and seconds by component of mote 1, per epoch, and seconds of frames that it received.

    It has a child, the root is its parent."""
    motes = [Mote(id=n, x=10.0 * n, y=0.0, root=n == 0) for n in range(3)]
    fields = {"light": Field(base=300.0), "humidity": Field(base=50.0)}
    description = Network(
        name="energy", seed=7, mote=motes, radio=Radio(model="disc", range_m=12), environment=Environment(fields=fields)
    )  # fmt: skip
    net = NetworkHandle(check(description))
    net.advance(2.5)
    net.line.connect()
    net.advance(SETTLE_S / 2)
    ask(net, 1, f"SELECT {columns} FROM sensors SAMPLE PERIOD {PERIOD_S} s")
    net.advance(SETTLE_S / 2)
    before, heard = net.motes[1].energy, net.motes[1].counters["received"]
    net.frames.clear()
    net.advance(EPOCHS * PERIOD_S)
    after = net.motes[1].energy
    # Frames near it are all about as long: those it received took their mean.
    others = [
        frame.psdu for frame in net.frames if net.bed.motes[frame.sender].id != 1 and len(frame.psdu) > 5
    ]
    mean_s = sum(HEAD_BYTES + len(psdu) for psdu in others) / len(others) * BYTE_S
    received = net.motes[1].counters["received"] - heard
    return {key: (after[key] - before[key]) / EPOCHS for key in after}, received * mean_s / EPOCHS


def main() -> None:
    """Print the table: charge in each minute, in mC (mA x s)."""
    both, receiving_s = measure("light, humidity")
    light, _ = measure("light")
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
    print("\n### Energy of a mote, light and humidity once a minute\n")
    print("| | TinyDB: mA | s | mC | share | ours: mA | s | mC | share |\n" + "| --- " * 9 + "|")
    for name, (ma, s) in PAPER.items():
        joule, seconds = ours[name]
        mc = joule / VOLTS * 1e3
        own = f"{mc / seconds:.3g} | {seconds:.3g}" if seconds else "— | —"
        print(
            f"| {name} | {ma} | {s} | {ma * s:.3f} | {ma * s / paper_mc:.1%} | {own} | {mc:.3f} | {mc / ours_mc:.1%} |"
        )
    print(
        f"| mean current | {paper_mc / PERIOD_S:.3f} | | {paper_mc:.2f} | | {ours_mc / PERIOD_S:.4f} | | {ours_mc:.2f} | |"
    )


if __name__ == "__main__":
    main()
