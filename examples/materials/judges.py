"""What else speaks of a box, trained with boxes drawn for that: a decision tree and clusters, over spectra without their background."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier

from examples.materials import boxes
from examples.materials.boxes import MATERIALS, SAFE
from examples.materials.decision import filtered
from examples.materials.detector_response import Spectrum

_EACH, _SAFE, _EXPOSURES = 60, 120, (1.0, 10.0)
_CLUSTERS = 30


class Judges:
    """Deterministic in ``seed``."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        labels = [material for material in MATERIALS for _ in range(_EACH)] + [SAFE] * _SAFE
        drawn = [boxes.drawn(random, 0, material).rates for material in labels]
        points = self._points(
            np.array([boxes.counted(random, rates, random.uniform(*_EXPOSURES)) for rates in drawn])
        )
        self._tree: Any = DecisionTreeClassifier(max_depth=12, min_samples_leaf=3, random_state=seed).fit(
            points, labels
        )
        self._clusters: Any = KMeans(_CLUSTERS, n_init=3, random_state=seed).fit(points)
        found = self._clusters.labels_
        self._names = [
            Counter(label for label, own in zip(labels, found, strict=True) if own == cluster).most_common(1)[
                0
            ][0]
            for cluster in range(_CLUSTERS)
        ]

    @staticmethod
    def _points(counts: Spectrum) -> Spectrum:
        """Of length 1, so that strength and exposure do not count."""
        points = filtered(counts)
        return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))

    def say(self, counts: Spectrum) -> tuple[str, str]:
        """What tree and clusters take a box for."""
        points = self._points(counts[None])
        return str(self._tree.predict(points)[0]), self._names[int(self._clusters.predict(points)[0])]


def agreed(likeliest: str, others: list[str | None]) -> str:
    """The material that most name; where none has most, the likeliest."""
    votes = Counter(name for name in [likeliest, *others] if name in MATERIALS)
    best, count = votes.most_common(1)[0]
    return best if count > votes[likeliest] else likeliest
