"""Power goes at every word that is written and in the midst of erasures: what was stored is there, whole, once."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from firmware.tests.storage.cut import Flash, Model, Put, Stored

PAGES = 11
#: Blocks of the rings' memory and bytes of a row, of two storage points and of one that follows the second.
RINGS = ((0, 6, 22), (6, 4, 61))
LATER_RING = (5, 5, 17)


def drawn(random_: random.Random, sequence: int) -> Stored:
    """A tuple of two attributes, which now and then need 32 bits."""
    wide = 2**31 - 1 if random_.random() < 0.2 else 2**15 - 1
    values = tuple(None if random_.random() < 0.1 else random_.randint(-wide - 1, wide) for _ in range(2))
    return Stored(
        random_.randrange(0xFFFF), random_.randrange(0xFFFF), sequence, random_.randrange(1024), values,
    )  # fmt: skip


def write_rows(flash: Flash, model: Model, random_: random.Random, ring: tuple[int, int, int]) -> None:
    for place in range(ring[1] * 64 // ring[2]):
        row = random_.randbytes(ring[2])
        assert flash.write_row(ring, place, row) == 1
        model.rows[ring, place] = row


def filled(seed: int) -> tuple[Flash, Model, random.Random]:
    """Flash with rows of two storage points beneath tuples of two indexes, which have displaced others."""
    random_, model = random.Random(seed), Model({7: [], 9: []})
    flash = Flash(PAGES, seed)
    assert flash.open()
    for ring in RINGS:
        write_rows(flash, model, random_, ring)
    for sequence in range(1200):
        stored, index = drawn(random_, sequence), random_.choice((7, 9))
        while flash.untidy:
            assert flash.tidy()
        assert flash.append(index, stored) == Put.STORED
        model.tuples[index].append(stored)
    before = sum(map(len, model.tuples.values()))
    model.check(flash)
    assert sum(map(len, model.tuples.values())) < before
    return flash, model, random_


@dataclass
class Change:
    """Something that is done to flash: a tuple that is appended to index 7, a row of the first storage point, or a page that is erased."""

    appended: Stored | None = None
    row: tuple[int, bytes] | None = None

    def run(self, flash: Flash, after: int) -> bool | None:
        """Whether it was done; None: power went."""
        if self.appended:
            put = flash.append(7, self.appended, after)
            return None if put == Put.CUT else put == Put.STORED
        if self.row:
            done = flash.write_row(RINGS[0], *self.row, after)
            return None if done < 0 else done > 0
        return True if flash.tidy(after) else None

    def is_there(self, flash: Flash) -> bool:
        """Whether flash holds what it was to hold."""
        if self.appended:
            return (
                flash.find(7, self.appended.mote, self.appended.session, self.appended.sequence) is not None
            )
        return self.row is not None and flash.read_row(RINGS[0], self.row[0]) == self.row[1]

    def note(self, model: Model) -> None:
        """It is part of what flash must hold."""
        if self.appended:
            model.tuples[7].append(self.appended)
        if self.row:
            model.rows[RINGS[0], self.row[0]] = self.row[1]


@pytest.mark.parametrize("seed", range(2))
def test_each_step_of_what_changes_flash(seed: int) -> None:
    """From many states, one after the other: each step of each change is the last one before power goes. The next start may be cut
    short as well."""
    flash, model, random_ = filled(seed)
    cuts = 0
    for turn in range(110):
        change = Change(appended=drawn(random_, 10_000 + turn))
        if flash.untidy and turn % 2:
            change = Change()
        elif turn % 5 == 0:
            change = Change(row=(random_.randrange(6 * 64 // 22), random_.randbytes(22)))
        held = flash.save()
        steps = 0
        while (done := change.run(flash, steps)) is None:
            steps += 1
            if random_.random() < 0.3:
                flash.open(random_.randrange(6))
            assert flash.open()
            after = Model({index: list(stored) for index, stored in model.tuples.items()}, dict(model.rows))
            if change.is_there(flash):
                change.note(after)
            after.check(flash)
            flash.restore(held)
            assert flash.open()
        cuts += steps
        if done:
            change.note(model)
        model.check(flash)
    assert cuts > 500


@pytest.mark.parametrize("seed", range(4))
def test_drawn_losses(seed: int) -> None:
    """A long life with a loss of power each few hundred steps: what was acknowledged stays, and the pages wear alike."""
    flash, model, random_ = filled(seed)
    model.tuples[11] = []
    cuts = 0
    for sequence in range(2000, 9000):
        after = random_.randrange(400)
        kind = random_.random()
        if flash.untidy and kind < 0.6:
            cut = not flash.tidy(after % 4 if random_.random() < 0.02 else -1)
        elif kind < 0.9:
            index, stored = random_.choice((7, 9, 11)), drawn(random_, sequence)
            put = flash.append(index, stored, after)
            cut = put == Put.CUT
            if put == Put.STORED or (
                cut and flash.open() and flash.find(index, stored.mote, stored.session, sequence)
            ):
                model.tuples[index].append(stored)
            assert put in (Put.STORED, Put.CUT, Put.LATER)
        elif kind < 0.95 and model.tuples[7]:
            given = random_.choice(model.tuples[7])
            cut = not flash.give(7, given, after % 2)
            if not cut or (flash.open() and not flash.find(7, given.mote, given.session, given.sequence)):
                model.tuples[7].remove(given)
        elif kind < 0.995:
            ring = random_.choice(RINGS)
            place, row = random_.randrange(ring[1] * 64 // ring[2]), random_.randbytes(ring[2])
            done = flash.write_row(ring, place, row, after)
            cut = done < 0
            if done > 0 or (cut and flash.open() and flash.read_row(ring, place) == row):
                model.rows[ring, place] = row
        else:
            done = flash.drop(11, after % 4)
            cut = done < 0
            if done > 0 or (cut and flash.open() and flash.count(11) == 0):
                model.tuples[11] = []
        if cut:
            cuts += 1
            while not flash.open(random_.randrange(600)):
                cuts += 1
            model.check(flash)
    model.check(flash)
    assert cuts > 50
    assert max(flash.erasures) <= 1.2 * sum(flash.erasures) / PAGES


def test_another_storage_point_takes_the_place_of_one() -> None:
    """Rows of a storage point that is dropped are in the way of nobody."""
    flash, model, random_ = filled(3)
    write_rows(flash, model, random_, LATER_RING)
    # It takes the last block of the first ring, and all of the second one.
    model.rows = {
        (ring, place): row
        for (ring, place), row in model.rows.items()
        if ring == LATER_RING or (ring == RINGS[0] and (place + 1) * ring[2] <= 5 * 64)
    }
    for again in range(3):
        flash.fill(13, 2000 * (again + 1), 2000 * again)
        model.tuples = {}
        model.check(flash)
        assert flash.open()
        model.check(flash)


def test_what_an_earlier_image_left_is_no_record() -> None:
    for seed in range(1, 40, 2):
        flash = Flash(PAGES, seed)
        assert flash.open()
        assert flash.statistics().tuples == 0
        assert flash.statistics().used == 0
        flash.fill(1, 100)
        assert flash.count(1) == 100
