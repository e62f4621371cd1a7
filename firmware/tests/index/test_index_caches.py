"""What a join need not send again, against an ordered dictionary."""

from __future__ import annotations

import ctypes
from collections import OrderedDict

import numpy as np
import pytest

from skerry.index.code import Cache, CacheEntry, IndexCode, Owned


@pytest.mark.parametrize("room", [0, 1, 7, 40])
def test_least_recently_used_goes_first(index: IndexCode, room: int) -> None:
    rng, cache, gone = np.random.default_rng(room), Cache(), CacheEntry()
    memory = (CacheEntry * max(1, room))()
    index.library.cache_begin(ctypes.byref(cache), memory, ctypes.c_uint16(room))
    model: OrderedDict[tuple[int, int], tuple[int, int]] = OrderedDict()
    for step in range(1000):
        key = int(rng.integers(0, 30)), int(rng.integers(0, 3))
        kind = rng.random()
        if kind < 0.5:
            entry = CacheEntry(key[0], int(rng.integers(0, 2**32)), step, key[1], False)
            full = index.library.cache_put(ctypes.byref(cache), ctypes.byref(entry), ctypes.byref(gone))
            model[key] = entry.value, entry.code
            model.move_to_end(key)
            assert full == (len(model) > room)
            if full:
                assert (gone.tuple, gone.attribute) == model.popitem(last=False)[0]
        elif kind < 0.9:
            found = index.library.cache_get(
                ctypes.byref(cache), ctypes.c_uint32(key[0]), ctypes.c_uint8(key[1])
            )
            assert bool(found) == (key in model)
            if found:
                assert (found[0].value, found[0].code) == model[key]
                model.move_to_end(key)
        elif kind < 0.98:
            index.library.cache_drop(ctypes.byref(cache), ctypes.c_uint32(key[0]))
            for attribute in range(3):
                model.pop((key[0], attribute), None)
        else:  # the half of what is stored here is another mote's now
            owned = Owned(int(rng.integers(0, 2)) << 31, 0x7FFFFFFF)
            lost = [key for key, (_, code) in model.items() if (code ^ owned.code) >> 31]
            assert index.library.cache_owned(ctypes.byref(cache), ctypes.byref(owned)) == len(lost)
            for key in lost:
                del model[key]
        assert cache.count == len(model)
