"""Log-distance, shadowing, asymmetry and bursts of links, fitted to what a library's 19 motes measured.

The file is ``library-links.parquet``. Each mote sent a frame a minute for 26 hours and reported whom it had heard. Where the motes stood
is not told: places are fitted along with the exponent. The column named after LQI holds the chip's RSSI register (signed, -45 is dBm): it
differs between links by 10 dB, is the same both ways (r = 0.97) and ends at -90, the chip's sensitivity. The one named after RSSI holds
the CRC bit and the correlation (CC2420, 106 for good frames). Both are read as what they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.runner.benchmark import Benchmark, Options
from bench.runner.recorder import Recorder
from hil_tests.datasets import DATA, data
from skerry_testbed.network import Bursts, Radio

FILE = DATA / "library-links.parquet"
#: dB at 1 m: free space at 2.45 GHz. Motes sent with 0 dBm. One of exponent, reference and places has to be given; this one physics knows.
REFERENCE_DB = 20 * math.log10(4 * math.pi * 2.45e9 / 299_792_458)
EXPONENTS = np.arange(2.0, 5.01, 0.25)
STARTS, STEPS, SEED = 20, 100, 1
MOTES = 19
#: A minute's report of fewer is no report of links, but of a mote in trouble; a link that was heard less often was never there.
REPORT_MINIMUM, HEARD_MINIMUM = 15, 100
#: Minutes apart at which losses are compared.
LAGS = (1, 2, 3, 5, 10, 20, 30, 45, 60)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """What the links come to. Times in min; ``bad_loss`` is the share of frames lost in the bad state, none in the good (Gilbert)."""

    exponent: float
    shadowing_db: float
    asymmetry_db: float
    loss: float
    good_min: float
    bad_min: float
    bad_loss: float
    extent_m: tuple[float, float]

    def radio(self) -> Radio:
        """For the testbed."""
        return Radio(
            model="log-distance", exponent=self.exponent, reference_db=REFERENCE_DB, shadowing_db=self.shadowing_db,
            asymmetry_db=self.asymmetry_db,
            bursts=Bursts(good=f"{self.good_min:.1f} min", bad=f"{self.bad_min:.1f} min", reception=1 - self.bad_loss),
        )  # fmt: skip


def _heard() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Power in dBm by (neighbour, node) and minute, and by node and minute whether who is missing there was not heard."""
    frame = pd.read_parquet(data(FILE.name)).drop_duplicates(["node", "neighbour", "seq"])
    raw = frame["lqi_raw"]
    frame["dbm"] = np.where(raw > 128, raw - 256, raw) - 45
    power = frame.set_index(["neighbour", "node", "seq"])["dbm"].unstack("seq")
    power = power[power.notna().sum(axis=1) > HEARD_MINIMUM]
    # A report is packets of two neighbours each. It is whole when it names all others, or when none of its packets is missing and
    # the last is half full.
    reports = frame.groupby(["node", "seq", "pkt"]).size().rename("entries").reset_index()
    whole = reports.groupby(["node", "seq"]).agg(
        entries=("entries", "sum"), packets=("pkt", "size"), last=("pkt", "max"), end=("entries", "last")
    )
    complete = (whole["last"] + 1 == whole["packets"]) & (
        (whole["entries"] == MOTES - 1) | ((whole["entries"] % 2 == 1) & (whole["end"] == 1))
    )
    known = (complete & (whole["entries"] >= REPORT_MINIMUM)).unstack("seq").reindex(columns=power.columns)
    return power, known.eq(True)


def _places(
    loss: Floats, a: npt.NDArray[np.intp], b: npt.NDArray[np.intp], exponent: float
) -> tuple[Floats, Floats]:
    """Places in m, and by how many dB each link is off: Levenberg-Marquardt from several starts."""
    rng = np.random.default_rng(SEED)
    spread = float(np.median(10 ** ((loss - REFERENCE_DB) / (10 * exponent))))
    rows = np.arange(len(loss))

    def off(places: Floats) -> tuple[Floats, Floats, Floats]:
        apart = places[a] - places[b]
        distance = np.maximum(np.hypot(apart[:, 0], apart[:, 1]), 0.1)
        return apart, distance, REFERENCE_DB + 10 * exponent * np.log10(distance) - loss

    best: tuple[Floats, Floats] | None = None
    for _ in range(STARTS):
        places = rng.normal(0, 0.7 * spread, (MOTES, 2))
        apart, distance, error = off(places)
        damping = 1.0
        for _ in range(STEPS):
            slope = np.zeros((len(loss), 2 * MOTES))
            for axis in (0, 1):
                part = 10 * exponent / math.log(10) * apart[:, axis] / distance**2
                slope[rows, 2 * a + axis], slope[rows, 2 * b + axis] = part, -part
            normal = slope.T @ slope
            # The whole room may be moved and turned: a little of the unit matrix keeps it where it is.
            step = np.linalg.solve(
                normal + damping * np.diag(np.diag(normal)) + 1e-9 * np.eye(2 * MOTES), -slope.T @ error
            )
            new = off(places + step.reshape(MOTES, 2))
            if (new[2] ** 2).sum() < (error**2).sum():
                places, (apart, distance, error), damping = places + step.reshape(MOTES, 2), new, damping / 3
            else:
                damping *= 3
        if best is None or (error**2).sum() < (best[1] ** 2).sum():
            best = places, error
    assert best is not None
    return best


def _bursts(power: pd.DataFrame, known: pd.DataFrame) -> tuple[float, float, float, float]:
    """Loss, mean good and bad minutes, and loss while bad, from how losses go together minutes apart.

    With e the loss while bad, b the share of time that is, and none lost otherwise: loss = b e, and the covariance of two losses
    t apart is b (1 - b) e^2 exp(-t / tau)."""
    missed = np.array(
        [
            np.where(known.loc[node], power.loc[(neighbour, node)].isna(), np.nan)
            for neighbour, node in power.index
        ]
    )
    loss = float(np.nanmean(missed))
    deviation = missed - np.nanmean(missed, axis=1)[:, None]
    together = np.array([np.nanmean(deviation[:, :-lag] * deviation[:, lag:]) for lag in LAGS])
    times = np.arange(1.0, 240.0)
    shapes = np.exp(-np.array(LAGS)[None, :] / times[:, None])
    scales = (shapes @ together) / (shapes**2).sum(axis=1)
    best = int(np.argmin(((together - scales[:, None] * shapes) ** 2).sum(axis=1)))
    covariance, time = float(scales[best]), float(times[best])
    bad_loss = loss + covariance / loss
    bad = loss / bad_loss
    return loss, time / bad, time / (1 - bad), bad_loss


def fit() -> Fit:
    """Read and fit; some ten seconds."""
    power, known = _heard()
    mean = power.mean(axis=1).unstack("node")
    mean = mean.reindex(columns=mean.index).to_numpy()
    upper = np.triu_indices(MOTES, 1)
    there, back = mean[upper], mean.T[upper]
    both = ~np.isnan(there + back)
    a, b, loss = upper[0][both], upper[1][both], -(there + back)[both] / 2
    found = {exponent: _places(loss, a, b, exponent) for exponent in EXPONENTS}
    exponent = min(found, key=lambda one: float((found[one][1] ** 2).sum()))
    places, error = found[exponent]
    # Places take two values each from the links, but for moving and turning the room.
    freedom = len(loss) - (2 * MOTES - 3)
    lost, good, bad, bad_loss = _bursts(power, known)
    return Fit(
        exponent=float(exponent),
        shadowing_db=math.sqrt(float((error**2).sum()) / freedom),
        asymmetry_db=float(np.std((there - back)[both])),
        loss=lost,
        good_min=good,
        bad_min=bad,
        bad_loss=bad_loss,
        extent_m=(float(np.ptp(places[:, 0])), float(np.ptp(places[:, 1]))),
    )


def measure(_options: Options, recorder: Recorder) -> None:
    """Fit."""
    recorder.progress("fitting")
    found = fit()
    recorder.figure("exponent of a library's links", found.exponent, "", ".2f", main=True)
    recorder.figure("shadowing of a library's links", found.shadowing_db, "dB", ".2f", main=True)
    recorder.figure("difference between both directions", found.asymmetry_db, "dB", ".2f")
    recorder.figure(
        "room that the motes would stand in", f"{found.extent_m[0]:.1f} m x {found.extent_m[1]:.1f} m"
    )
    recorder.figure("frames lost", 100 * found.loss, "%", ".2f")
    recorder.figure("good for", found.good_min, "min", ".0f")
    recorder.figure("bad for", found.bad_min, "min", ".0f")
    recorder.figure("frames lost while bad", 100 * found.bad_loss, "%", ".1f")


BENCHMARK = Benchmark(measure, quick=Options(), minutes=0.3)
