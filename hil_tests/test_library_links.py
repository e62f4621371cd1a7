"""The library's links, as fitted for bench/network/lab_yield.py."""

from __future__ import annotations

import numpy as np
import pytest

from bench.network import library_links
from hil_tests.lab import heard, lab
from skerry_testbed import radio


@pytest.mark.skipif(not library_links.FILE.exists(), reason=f"{library_links.FILE} is not here")
def test_links_made_by_the_fit_are_as_the_librarys() -> None:
    """Asymmetry and shadowing of what the testbed makes of it; losses by Gilbert's formula."""
    found = library_links.fit()
    assert 2 < found.exponent < 5
    share = found.bad_min / (found.good_min + found.bad_min)
    assert share * found.bad_loss == pytest.approx(found.loss, rel=0.01)
    model = found.radio()
    network = lab(3, model)
    gains = radio.links(model, network.mote, np.random.default_rng(network.seed))
    difference = [gain - gains[b, a][0] for (a, b), (gain, _) in gains.items() if a < b and (b, a) in gains]
    assert np.std(difference) == pytest.approx(found.asymmetry_db, rel=0.3)
    assert len(heard(network)) > 0.9 * 55 * 54
