"""Gains and reception probabilities of all links, from positions or a matrix."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import numpy.typing as npt

from skerry_testbed.network import Mote, Radio

#: Below this gain nothing arrives: 3 dBm - 110 dB is under the chip's -101 dBm.
GAIN_MINIMUM_DB = -106.0
#: Gain within a disc, and of a matrix link; strong, so that loss is by probability alone.
GAIN_GOOD_DB = -70.0

#: What the firmware sends with, dBm, and a frame of 100 bytes, as bits: for the reception rates of links that are given as gains.
TRANSMIT_DBM, FRAME_BITS = 3.0, 800
#: As the core's models of the chips have it, data sheets doc5131E and SWRS096D.
SENSITIVITY_DBM = {"iris": -101.0, "cc2538": -97.0}

Links = dict[tuple[int, int], tuple[float, float]]


def links(radio: Radio, motes: list[Mote], rng: np.random.Generator) -> Links:
    """(sender index, receiver index) → (gain in dB, reception probability or NaN: by signal to noise)."""
    if radio.model == "matrix":
        index = {mote.id: i for i, mote in enumerate(motes)}
        return {
            (index[a], index[b]): (GAIN_GOOD_DB - 15 * (1 - p), p)
            for a, b, p in radio.links
            if p > 0 and a != b
        }
    distance = distances(motes)
    if radio.model == "disc":
        return {
            (a, b): (GAIN_GOOD_DB, radio.reception)
            for a, b in _pairs(len(motes))
            if distance[a, b] <= radio.range_m
        }
    walls, direction = _symmetric(rng.normal(0.0, 1.0, distance.shape)), rng.normal(0.0, 1.0, distance.shape)
    # Shadowing is the walls', the same both ways; a quarter of its variance is left to the direction unless more is said about that.
    one_way = 0.25 if radio.asymmetry_db is None else 0.0
    shadow = math.sqrt(1 - one_way) * walls + math.sqrt(one_way) * direction
    gain = radio.shadowing_db * shadow - np.vectorize(partial(path_loss_db, radio))(distance)
    if radio.asymmetry_db:
        # Each chip sends and hears by so much better or worse; both directions of a link differ with the deviation asked for.
        sends, hears = rng.normal(0.0, radio.asymmetry_db / 2, (2, len(motes)))
        gain += sends[:, None] + hears[None, :]
    return {
        (a, b): (float(gain[a, b]), math.nan) for a, b in _pairs(len(motes)) if gain[a, b] >= GAIN_MINIMUM_DB
    }


def reception(gain_db: float, probability: float, noise_dbm: float, board: str) -> float:
    """Share of frames of 100 bytes that arrive at such a board, sent as the firmware does.

    IEEE 802.15.4-2006, E.4.1.8, for a link given as a gain; nothing below the chip's sensitivity."""
    if TRANSMIT_DBM + gain_db < SENSITIVITY_DBM[board]:
        return 0.0
    if not math.isnan(probability):
        return probability
    ratio = 10 ** ((TRANSMIT_DBM + gain_db - noise_dbm) / 10)
    errors = sum((-1) ** k * math.comb(16, k) * math.exp(20 * ratio * (1 / k - 1)) for k in range(2, 17))
    return float((1 - 8 / 15 / 16 * errors) ** FRAME_BITS)


def path_loss_db(radio: Radio, distance_m: float) -> float:
    """Loss with distance alone; as at 0.1 m for who is nearer."""
    return radio.reference_db + 10 * radio.exponent * math.log10(max(distance_m, 0.1))


def distances(motes: list[Mote]) -> npt.NDArray[np.float64]:
    """Matrix of distances in m."""
    place = np.array([(mote.x, mote.y) for mote in motes])
    difference = place[:, None, :] - place[None, :, :]
    return np.asarray(np.sqrt((difference**2).sum(axis=2)))


def _symmetric(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    upper = np.triu(values, 1)
    return upper + upper.T


def _pairs(count: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(count) for b in range(count) if a != b]
