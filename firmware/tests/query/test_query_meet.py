"""A mote that joins pairs of motes below it: what it sends is what DuckDB joins, and rows end where nobody needs them."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware.tests.query.mote import COMPLETE, REFUSED, Mote, field, program
from skerry.ingest.joined_rows import JoinedRows
from skerry.planner.model import pair_groups
from skerry.planner.model.pairing import clause_of, delay_ms, pairs_clause
from skerry.planner.model.plans import QueryPlan
from skerry.planner.physical.merge import merge
from skerry.planner.physical.program import encode
from skerry.planner.planner import plan_query
from skerry_protocol import codec, codes, limits, mote_sets, programs, records
from skerry_protocol.attributes import BY_NAME, ValueFormat
from skerry_protocol.bytecode import Op, StoredField, constant, instruction
from skerry_protocol.codes import Aggregate, PacketType

S, T = 1, 2
OWN = 7  # the mote's number
QUERY, PERIOD, DELAY = 3, 2, 2
BEGIN = 1000  # network seconds
#: s.value > t.value
GREATER = instruction(Op.STORED, 0x01) + instruction(Op.STORED, 0x11) + instruction(Op.GT)


def clause(
    motes: Sequence[int],
    hosts: Mapping[int, Sequence[tuple[int, int]]],
    *,
    rows: int = 0,
    epochs: int = 0,
    base: Sequence[int] = (),
    room: int = 60,
    condition: bytes = GREATER,
    width: int = 2,
    way: codes.PairsWay = codes.PairsWay.CLIMB,
    passed: Mapping[int, tuple[int, set[int]]] | None = None,
) -> bytes:
    """The code of a PAIRS; ``hosts``: the deepest first. ``passed``: by host the place of the one that passes rows on to it, and whose.
    ``motes``: of pairs, or more; of ``base`` the gateway has pairs, too, in either role."""
    ordered = sorted({*motes, *hosts}) if hosts else []
    sets = [mote_sets.build(ordered), mote_sets.build(base), mote_sets.build(base)]
    head = {
        "rows": rows,
        "epochs": epochs,
        "delay": DELAY,
        "width": width,
        "condition": len(condition),
        "way": way,
        **dict(zip(("motes", "s", "t"), map(len, sets), strict=True)),
    }
    code = bytes(programs.Pairs.build(head)) + condition + b"".join(sets)
    for host, pairs in hosts.items():
        by, whose = (passed or {}).get(host, (None, set()))
        groups = pair_groups.build(pairs, ordered)
        if by is not None:
            groups = bytes([by, *map(ordered.index, sorted(whose))]) + groups
        head_of = {"host": ordered.index(host), "rows": room, "groups": len(groups)}
        code += bytes(programs.PairsHost.build(head_of)) + groups
    return code


def joining(code: bytes, roles: int = S | T) -> bytes:
    """A program of one value, whose own rows pass as this."""
    own = [
        field(ValueFormat.U8, constant(roles)),
        field(ValueFormat.I16, instruction(Op.ATTR, BY_NAME["temp"].number)),
    ]
    pairs = {"format": 0, "aggregate": int(Aggregate.PAIRS), "code": code}
    return program([*own, pairs], period=PERIOD * 1000)


def row(node: int, epoch: int, value: int | None, roles: int = S | T, taken: int = 0) -> bytes:
    """A RESULT of a mote below; ``taken``: by so many hosts."""
    nulls = 2 * (value is None) | taken % 2 << limits.RESULT_TAKEN
    head = {"query": QUERY, "node": node, "epoch": epoch, "nulls": nulls}
    return bytes(records.Result.build({**head, "values": struct.pack("<Bh", roles, value or 0)}))


def joined(mote: Mote) -> Counter[tuple[int, int, int, int, int | None, int | None]]:
    """What it has sent of pairs: s, its epoch, t, its epoch, and both values."""
    found: Counter[tuple[int, int, int, int, int | None, int | None]] = Counter()
    for record in mote.records():
        if record.type is PacketType.JOINED:
            one, two = struct.unpack("<2h", record.body.values)
            values = None if record.body.s_nulls & 2 else one, None if record.body.t_nulls & 2 else two
            found[record.body.s, record.body.s_epoch, record.body.t, record.body.t_epoch, *values] += 1
    return found


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from((2, 3, 4, OWN)), st.sampled_from((2, 3, 4, OWN))), min_size=1, max_size=5, unique=True),
    st.dictionaries(st.tuples(st.sampled_from((2, 3, 4)), st.integers(0, 9)),
                    st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(-3, 3))), max_size=24),
    st.tuples(st.integers(0, 3), st.integers(0, 3)),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_pairs_are_joined_as_duckdb_joins_them(
    query_library: Path,
    pairs: list[tuple[int, int]],
    below: dict[tuple[int, int], tuple[int, int | None]],
    window: tuple[int, int],
    draw: random.Random,
) -> None:
    """Rows of motes below come up to an epoch late, some twice; this mote's own, too, are of pairs."""
    mote, first = Mote(query_library), BEGIN // PERIOD
    rows, epochs = window
    mote.synchronise(BEGIN - 0.5)
    mote.sensor(BY_NAME["temp"].number, 1)
    motes = sorted({mote for pair in pairs for mote in pair})
    assert mote.install(joining(clause(motes, {OWN: pairs}, rows=rows, epochs=epochs)), QUERY) == COMPLETE
    coming: dict[int, list[tuple[int, int]]] = {}
    passed = numbered({one: roles for one, (roles, _) in below.items()})
    for node, epoch in below:
        for _ in range(draw.choice((1, 1, 2))):
            coming.setdefault(epoch + draw.randint(0, DELAY - 1), []).append((node, epoch))
    mote.run(1)
    for now in range(10 + DELAY + 1):
        for node, epoch in coming.get(now, []):
            roles, value = below[node, epoch]
            of_pair = any((roles & S and s == node) or (roles & T and t == node) for s, t in pairs)
            assert mote.row(row(node, first + epoch, value, passed[node, epoch])) == (not of_pair)
        mote.run(PERIOD)
    told = joined(mote)
    assert {key[:4] for key in told if max(key[1], key[3]) < first + 10} == by_duckdb(
        pairs, below, first, rows, epochs
    )
    assert all(times == 1 for times in told.values()), "each once"
    assert all(one == (1 if s == OWN else below[s, at - first][1]) for s, at, _, _, one, _ in told)


def numbered(roles: Mapping[tuple[int, int], int]) -> dict[tuple[int, int], int]:
    """What motes say of rows, by mote and epoch: as what they have passed, and their numbers in each."""
    found, following = {}, Counter[tuple[int, int]]()
    for (node, epoch), has in sorted(roles.items()):
        found[node, epoch] = has
        for role, shift in ((S, 2), (T, 5)):
            if has & role:
                number = following[node, role]
                found[node, epoch] |= (number if number < 8 else (number - 1) % 7 + 1) << shift
                following[node, role] += 1
    return found


def by_duckdb(
    pairs: list[tuple[int, int]],
    below: Mapping[tuple[int, int], tuple[int, int | None]],
    first: int,
    rows: int,
    epochs: int,
) -> set[tuple[int, ...]]:
    own = [(OWN, first + epoch, S | T, 1) for epoch in range(10)]
    there = [*own, *((node, first + epoch, roles, value) for (node, epoch), (roles, value) in below.items())]
    names = ("mote", "epoch", "roles", "value")
    columns = {name: pa.array([one[i] for one in there], pa.int64()) for i, name in enumerate(names)}
    database = duckdb.connect(config={"threads": 1})
    database.register("rows_of", pa.table(columns))
    database.register("pairs", pa.table({"s": [s for s, _ in pairs], "t": [t for _, t in pairs]}))
    within = (
        "(SELECT count(*) FROM {0} x WHERE x.mote = {0}.mote AND x.epoch > {0}.epoch AND x.epoch <= {1}.epoch) < "
        + str(rows)
        if rows
        else "{1}.epoch - {0}.epoch <= " + str(epochs)
    )
    return set(
        database.execute(
            "WITH s AS (FROM rows_of WHERE roles & 1 <> 0), t AS (FROM rows_of WHERE roles & 2 <> 0) "
            "SELECT DISTINCT s.mote, s.epoch, t.mote, t.epoch FROM s, t, pairs "
            "WHERE pairs.s = s.mote AND pairs.t = t.mote AND s.value > t.value "
            f"AND CASE WHEN s.epoch <= t.epoch THEN {within.format('s', 't')} ELSE {within.format('t', 's')} END"
        ).fetchall()
    )


def begun(mote: Mote, code: bytes) -> None:
    mote.synchronise(BEGIN - 0.5)
    mote.sensor(BY_NAME["temp"].number, 1)
    assert mote.install(joining(code), QUERY) == COMPLETE


def test_rows_go_on_to_hosts_above_and_to_the_gateway(mote: Mote) -> None:
    hosts = {9: [(2, 3)], OWN: [(2, 4), (3, 4), (5, 4)], 6: [(3, 5)]}
    begun(mote, clause([2, 3, 4, 5], hosts, rows=1, base=[5]))
    epoch = BEGIN // PERIOD
    below = {2: 1, 3: 1, 4: 0, 5: 0}
    assert not any(mote.row(row(node, epoch, 1, taken=hosts)) for node, hosts in below.items())
    # They go on as one more host has them; 2's other host is below.
    gone = [bytes(records.Result.build(one.body._asdict())) for one in mote.records()]
    assert gone == [row(3, epoch, 1, taken=2), row(5, epoch, 1, taken=1)]
    assert mote.row(row(8, epoch, 1)), "a mote that nobody knew"
    assert mote.row(row(2, epoch, 1)[:-1]), "what is cut off is for the gateway to refuse"
    assert mote.row(b"\x03"), "the same"
    assert not mote.row(row(2, epoch, 1) + bytes(2)), "with its tally"


def test_what_has_passed_a_host_below_goes_on_to_the_gateway(mote: Mote) -> None:
    """Whoever is above takes it for pairs of his own, and it is told there, too, that one host has it too few."""
    begun(mote, clause([2, 3, 4], {9: [(2, 3)], OWN: [(2, 4), (4, 3)]}, rows=1))
    epoch = BEGIN // PERIOD
    assert not mote.row(row(2, epoch, 1))
    assert not mote.row(row(2, epoch + 1, 1, taken=1))
    # As s alone 4 has its only pair here, and 3 as s none: of other roles nobody below needs it.
    assert not mote.row(row(4, epoch, 1, S))
    assert not mote.row(row(2, epoch, 1, taken=1)), "it has come twice"
    gone = [bytes(records.Result.build(one.body._asdict())) for one in mote.records()]
    assert gone == [row(2, epoch, 1, taken=1)]


@pytest.mark.parametrize(("roles", "goes"), [(S, False), (T, True), (S | T, True)])
@pytest.mark.parametrize("base", [(), (OWN,)])
def test_a_mote_sends_rows_that_pass_in_a_role_that_it_has(
    mote: Mote, roles: int, goes: bool, base: tuple[int, ...]
) -> None:
    """``base``: of motes of which the gateway has pairs, in both."""
    mote.synchronise(BEGIN - 0.5)
    mote.sensor(BY_NAME["temp"].number, 1)
    code = clause([2, OWN], {9: [(2, OWN)]}, rows=1, base=base)
    assert mote.install(joining(code, roles), QUERY) == COMPLETE
    mote.run(1)
    assert [record.type for record in mote.records()] == [PacketType.RESULT] * (goes or bool(base))


def test_a_mote_without_pairs_sends_nothing(mote: Mote) -> None:
    begun(mote, clause([2, 3], {9: [(2, 3)]}, rows=1))
    mote.run(3 * PERIOD)
    assert not list(mote.records())


def test_without_pairs_all_rows_go_up(mote: Mote) -> None:
    begun(mote, clause([], {}, rows=1))
    mote.run(3 * PERIOD)
    assert [record.type for record in mote.records()] == [PacketType.RESULT] * 3
    assert mote.row(row(2, BEGIN // PERIOD, 1))


def test_late_rows_and_those_without_room_go_on_up(mote: Mote) -> None:
    begun(mote, clause([2, 3], {OWN: [(2, 3)]}, rows=1, room=2))
    first = BEGIN // PERIOD
    assert [mote.row(row(2, first + at, 1)) for at in range(3)] == [False, False, True]
    mote.run(1 + PERIOD * (DELAY + 4))
    assert mote.row(row(3, first, 1)), "it is joined up to there"


def test_a_condition_knows_the_motes(mote: Mote) -> None:
    other = (
        instruction(Op.STORED, StoredField.NUMBER)
        + instruction(Op.STORED, 0x10 | StoredField.NUMBER)
        + instruction(Op.LT)
    )
    begun(mote, clause([2, 3], {OWN: [(2, 3), (3, 2)]}, rows=1, condition=other))
    for node in (2, 3):
        assert not mote.row(row(node, BEGIN // PERIOD, None))
    mote.run(1 + PERIOD * (DELAY + 1))
    assert joined(mote) == {(2, BEGIN // PERIOD, 3, BEGIN // PERIOD, None, None): 1}


def begun_by_ways(mote: Mote, way: codes.PairsWay, hosts: Mapping[int, Sequence[tuple[int, int]]]) -> None:
    begun(mote, clause([2, 3, OWN], hosts, rows=1, way=way))


def carried(mote: Mote) -> tuple[int, bytes] | None:
    """Where to the next round has sent a row, and the record; nothing where that says nothing, as it only keeps a way open."""
    mote.round()
    return mote.carried()


def test_a_mote_sends_its_rows_to_hosts_of_its_pairs(mote: Mote) -> None:
    begun_by_ways(mote, codes.PairsWay.SENT, {9: [(OWN, 2)], 6: [(3, 2)], 8: [(3, OWN)]})
    mote.ways(1)
    found = carried(mote)
    assert found is not None
    assert found[1][10] == 0, "a way is opened before there are rows"
    mote.ways(0)
    mote.run(1)
    found = []
    for _ in range(4):
        mote.ways(1)
        if (one := carried(mote)) is not None and one[1][10] != 0:
            found.append(one)
    first = BEGIN // PERIOD
    assert [to for to, _ in found] == [9, 8]
    assert found[0][1] == bytes([codes.Carries.ROW]) + row(OWN, first, 1)
    assert not list(mote.records()), "nothing goes up"
    assert mote.row(row(2, first, 1)), "another's is the gateway's, as it has found no way"


def test_rows_that_find_no_way_go_up(mote: Mote) -> None:
    begun_by_ways(mote, codes.PairsWay.SENT, {9: [(OWN, 2)]})
    mote.run(1)
    for _ in range(DELAY):
        mote.round()
        assert not list(mote.records())
        mote.run(PERIOD)
    mote.round()
    [first] = mote.records()
    assert (first.type, first.body.epoch) == (PacketType.RESULT, BEGIN // PERIOD)
    mote.lost(bytes([codes.Carries.ROW]) + row(OWN, BEGIN // PERIOD, 1))
    mote.lost(bytes([codes.Carries.ROW]) + row(OWN, BEGIN // PERIOD, 1, 0))
    assert len(list(mote.records())) == 1, "one that says nothing is nobody's"


def test_rows_of_a_query_that_a_mote_does_not_know_yet_go_up(mote: Mote) -> None:
    """It may have started anew, and who sent the row has none any more."""
    epoch = BEGIN // PERIOD
    assert mote.arrives(bytes([codes.Carries.ROW]) + row(2, epoch, 1))
    mote.lost(bytes([codes.Carries.ROW]) + row(3, epoch, 1))
    assert mote.arrives(bytes([codes.Carries.ROW]) + row(2, epoch, 0, 0)), "it only keeps the way open"
    assert not mote.arrives(bytes([codes.Carries.ROW]) + row(2, epoch, 1)[:8])
    assert [(record.type, record.body.node) for record in mote.records()] == [
        (PacketType.RESULT, 2),
        (PacketType.RESULT, 3),
    ]


def test_a_root_sends_rows_of_s_on_to_t(mote: Mote) -> None:
    mote.root(True)
    begun_by_ways(mote, codes.PairsWay.FROM_ROOT, {2: [(3, 2), (OWN, 2)], 3: [(3, 3)]})
    first = BEGIN // PERIOD
    assert not mote.row(row(3, first, 5))
    assert not mote.row(row(2, first, 5)), "it is at home already"
    found = set()
    for _ in range(4):
        mote.ways(1)
        found.add(carried(mote))
    assert (2, bytes([codes.Carries.ROW]) + row(3, first, 5)) in found
    assert all(one is None or one[1][2] == 3 or one[1][10] == 0 for one in found), (
        "nothing else but empty rows"
    )


def test_a_root_opens_ways_before_there_are_rows_also_where_its_own_go_by_none(mote: Mote) -> None:
    mote.root(True)
    code = clause(
        [2, 3, 4, OWN], {2: [(3, 2)], 4: [(3, 4)]}, rows=1, base=[OWN, 2], way=codes.PairsWay.FROM_ROOT
    )
    begun(mote, code)
    opened = []
    for _ in range(2):
        mote.ways(1)
        opened.append(carried(mote))
    assert [(to, record[10]) for to, record in filter(None, opened)] == [(2, 0), (4, 0)]


def test_rows_that_come_by_ways_are_joined(mote: Mote) -> None:
    begun_by_ways(mote, codes.PairsWay.SENT, {OWN: [(2, 3), (2, OWN)]})
    assert mote.trails == 1, "a host is to be found"
    first = BEGIN // PERIOD
    for node in (2, 3):
        for _ in range(2):
            assert mote.arrives(bytes([codes.Carries.ROW]) + row(node, first, 5 - node))
    assert mote.arrives(bytes([codes.Carries.ROW]) + row(2, first, 0, 0)), "it only keeps the way open"
    for bad in (row(2, first, 1)[:-1], row(2, first, 1) + b"\0", row(2, first, 1)[:8], b""):
        assert not mote.arrives(bytes([codes.Carries.ROW]) + bad)
    mote.run(1 + PERIOD * (DELAY + 1))
    assert {key for key in joined(mote) if key[3] == first} == {
        (2, first, 3, first, 3, 2),
        (2, first, OWN, first, 3, 1),
    }
    assert mote.arrives(bytes([codes.Carries.ROW]) + row(2, first - 1, 1)), "too late: it goes up"
    assert [record.type for record in mote.records()][-1] is PacketType.RESULT


def sent(mote: Mote, rounds: int = 6) -> list[tuple[int, int, int]]:
    """Where to rows that say something have gone in these rounds, whose they are, and of which epoch."""
    found = []
    for _ in range(rounds):
        mote.ways(1)
        if (one := carried(mote)) is not None and one[1][10] != 0:
            head = records.Result.parse(one[1][1:])
            found.append((one[0], head.node, head.epoch))
    return found


def test_a_row_goes_once_to_a_host_that_passes_it_on(mote: Mote) -> None:
    """Host 9 has this mote's rows from host 8, and that from host 6, which joins none of them; 3 has them from this mote."""
    hosts = {9: [(OWN, 2)], 8: [(OWN, 4)], 6: [(2, 4)], 3: [(3, OWN)]}
    passed = {9: (1, {OWN}), 8: (2, {OWN, 2})}
    begun(mote, clause([2, 3, 4, OWN], hosts, rows=1, way=codes.PairsWay.SENT, passed=passed))
    mote.ways(0)
    mote.run(1)
    first = BEGIN // PERIOD
    assert sorted(sent(mote)) == [(3, OWN, first), (6, OWN, first)]
    assert not list(mote.records()), "nothing goes up"


def test_a_host_passes_on_what_others_need_too(mote: Mote) -> None:
    """Of 2's rows, which this mote joins, and of 4's, which it does not; 3's come to host 9 from 3 itself."""
    hosts = {9: [(2, 3), (4, 3)], OWN: [(2, OWN)]}
    code = clause([2, 3, 4, OWN], hosts, rows=1, way=codes.PairsWay.SENT, passed={9: (1, {2, 4})})
    begun(mote, code)
    mote.ways(1)
    opened = carried(mote)
    assert opened is not None
    assert (opened[0], opened[1][10]) == (9, 0), "the way is open before there are rows"
    mote.ways(0)
    mote.run(1)
    first = BEGIN // PERIOD
    for node in (2, 4):
        assert mote.arrives(bytes([codes.Carries.ROW]) + row(node, first, 5))
    assert sorted(sent(mote)) == [(9, 2, first), (9, 4, first)]
    assert not list(mote.records())
    # Nobody passes on what a mote sends itself: it is the gateway's here.
    assert mote.arrives(bytes([codes.Carries.ROW]) + row(3, first, 5))
    assert [(one.type, one.body.node) for one in mote.records()] == [(PacketType.RESULT, 3)]
    mote.run(PERIOD * (DELAY + 1))
    assert {key[:4] for key in joined(mote) if key[3] == first} == {(2, first, OWN, first)}, (
        "it joins them, too"
    )


def test_a_mote_that_joins_none_passes_rows_on(mote: Mote) -> None:
    """2's and 3's, which meet here, go on to host 9, and 2's to host 8, too; 4's come to 9 by themselves."""
    hosts = {9: [(2, 3), (4, 3)], 8: [(2, 8)], OWN: []}
    code = clause(
        [2, 3, 4], hosts, rows=1, room=0, way=codes.PairsWay.SENT, passed={9: (2, {2, 3}), 8: (2, {2})}
    )
    begun(mote, code)
    assert mote.trails == 1, "it is to be found"
    for _ in range(2):
        mote.ways(1)
        opened = carried(mote)
        assert opened is not None
        assert opened[0] in (8, 9)
        assert opened[1][10] == 0, "ways are open before there are rows"
    mote.ways(0)
    mote.run(1)
    first = BEGIN // PERIOD
    for node in (2, 3):
        assert mote.arrives(bytes([codes.Carries.ROW]) + row(node, first, 5))
    assert sorted(sent(mote)) == [(8, 2, first), (9, 2, first), (9, 3, first)]
    assert not list(mote.records()), "nothing goes up, nor what is this mote's own"
    assert mote.arrives(bytes([codes.Carries.ROW]) + row(4, first, 5))
    assert [(one.type, one.body.node) for one in mote.records()] == [(PacketType.RESULT, 4)]
    mote.run(PERIOD * (DELAY + 2))
    assert not joined(mote)


def test_rows_come_to_a_mote_that_joins_none_by_another(mote: Mote) -> None:
    """This mote's go to 8, from there to 6, and from there to 9; neither 8 nor 6 joins any."""
    hosts = {9: [(OWN, 2)], 6: [], 8: []}
    passed = {9: (1, {OWN, 2}), 6: (2, {OWN})}
    begun(mote, clause([2, OWN], hosts, rows=1, way=codes.PairsWay.SENT, passed=passed))
    mote.ways(0)
    mote.run(1)
    assert sent(mote) == [(8, OWN, BEGIN // PERIOD)]


def test_rows_that_were_passed_on_are_joined(mote: Mote) -> None:
    """Those of both motes of a pair have come by host 8."""
    hosts = {OWN: [(2, 3)], 8: [(2, 3)]}
    begun(mote, clause([2, 3, OWN], hosts, rows=1, way=codes.PairsWay.SENT, passed={OWN: (1, {2, 3})}))
    first = BEGIN // PERIOD
    for node in (2, 3):
        assert mote.arrives(bytes([codes.Carries.ROW]) + row(node, first, 5 - node))
    mote.run(1 + PERIOD * (DELAY + 1))
    assert joined(mote) == {(2, first, 3, first, 3, 2): 1}
    assert sent(mote) == [], "it is the last that needs them"


def test_what_is_passed_on_in_vain_goes_up(mote: Mote) -> None:
    """After its epoch is joined, or at once where more comes than may wait."""
    hosts = {9: [(2, 3)], OWN: [(2, OWN)]}
    code = clause([2, 3, OWN], hosts, rows=1, way=codes.PairsWay.SENT, passed={9: (1, {2})})
    begun(mote, code)
    mote.ways(0)
    mote.run(1)
    first = BEGIN // PERIOD
    places = 8
    for back in range(places + 2):
        assert mote.arrives(bytes([codes.Carries.ROW]) + row(2, first + back, 1))
    at_once = [one.body.epoch - first for one in mote.records() if one.type is PacketType.RESULT]
    assert at_once == [places, places + 1]
    for _ in range(DELAY + 1):
        mote.run(PERIOD)
        mote.round()
    late = [one.body.epoch - first for one in mote.records() if one.type is PacketType.RESULT]
    assert late == [0, 1]


def test_a_host_tells_the_numbers_of_rows_and_misses_none(mote: Mote) -> None:
    """Of two rows the second one is this mote's 2nd; 2's newest row in between has not come, but its number says so."""
    begun(mote, clause([2, OWN], {OWN: [(OWN, 2)]}, rows=2))
    first = BEGIN // PERIOD
    for at, number in ((0, 0), (2, 2)):
        assert not mote.row(row(2, first + at, 0, T | number << 5))
    mote.run(1 + PERIOD * (DELAY + 3))
    told = [record.body for record in mote.records() if record.type is PacketType.JOINED]
    met = {(one.s_epoch - first, one.t_epoch - first): (one.s_nulls >> 13, one.t_nulls >> 13) for one in told}
    # The row of epoch 0 is in the window of two up to epoch 1, whichever of both has had the one that lacks.
    assert met == {(0, 0): (0, 0), (1, 0): (1, 0), (1, 2): (1, 2), (2, 2): (2, 2), (3, 2): (3, 2)}


def passed_of(mote: Mote) -> list[tuple[int, int, int, int]]:
    """What it has said of its rows: the last epoch, how many, rows as s and as t."""
    told = [record.body for record in mote.records() if record.type is PacketType.PASSED]
    assert all((one.query, one.node) == (QUERY, OWN) for one in told)
    return [(one.epoch, one.epochs, one.s, one.t) for one in told]


@pytest.mark.parametrize("way", [codes.PairsWay.CLIMB, codes.PairsWay.SENT])
def test_a_mote_says_how_many_rows_it_has_had_that_others_join(mote: Mote, way: codes.PairsWay) -> None:
    mote.synchronise(BEGIN - 0.5)
    mote.sensor(BY_NAME["temp"].number, 1)
    assert mote.install(joining(clause([2, OWN], {9: [(OWN, 2)]}, rows=1, way=way), S), QUERY) == COMPLETE
    mote.run(1 + PERIOD * 3 * limits.PASSED_EPOCHS)
    first, *others = passed_of(mote)
    assert (first[0] + OWN) % limits.PASSED_EPOCHS == 0
    # A row of the epoch that is told of may count for the next time.
    assert first[1] - 1 <= first[2] <= first[1] <= limits.PASSED_EPOCHS
    assert [(one[1], one[2], one[3]) for one in others] == 2 * [
        (limits.PASSED_EPOCHS, limits.PASSED_EPOCHS, 0)
    ]


@pytest.mark.parametrize(
    "code",
    [
        clause([2, OWN], {}, rows=1, base=[2, OWN]),
        clause([2, 3], {9: [(2, 3)]}, rows=1),
        clause([], {}, rows=1),
    ],
    ids=["the gateway has them", "of no pair", "all rows go there"],
)
def test_of_rows_that_the_gateway_has_a_mote_says_nothing(mote: Mote, code: bytes) -> None:
    mote.synchronise(BEGIN - 0.5)
    mote.sensor(BY_NAME["temp"].number, 1)
    assert mote.install(joining(code), QUERY) == COMPLETE
    mote.run(1 + PERIOD * 2 * limits.PASSED_EPOCHS)
    assert passed_of(mote) == []


def test_rows_are_numbered_too_where_all_go_to_the_gateway(mote: Mote) -> None:
    mote.synchronise(BEGIN - 0.5)
    mote.sensor(BY_NAME["temp"].number, 1)
    assert mote.install(joining(clause([], {}, rows=3)), QUERY) == COMPLETE
    mote.run(1 + PERIOD * 4)
    numbers = [one.body.values[0] >> 2 & 7 for one in mote.records() if one.type is PacketType.RESULT]
    assert len(numbers) >= 3
    assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize(("epochs", "told"), [(1, 0), (4, 3), (16, 15), (17, 0)])
def test_a_first_row_says_in_how_many_epochs_there_was_none(mote: Mote, epochs: int, told: int) -> None:
    """It has been up for half a second more than these. By whole seconds, and for a late row, one less is sure; more than 15 do not fit."""
    mote.synchronise(BEGIN - 0.5)
    mote.sensor(BY_NAME["temp"].number, 20)
    mote.run(PERIOD * epochs)
    assert mote.install(joining(clause([], {}, rows=3)), QUERY) == COMPLETE
    mote.run(1 + PERIOD * 3)
    rows = [one.body for one in mote.records() if one.type is PacketType.RESULT]
    assert rows[0].epoch == BEGIN // PERIOD + epochs
    assert [one.nulls >> limits.RESULT_NONE_BEFORE for one in rows] == [told] + [0] * (len(rows) - 1)


@settings(max_examples=40)
@given(
    st.dictionaries(st.tuples(st.sampled_from((2, 3)), st.integers(0, 9)), st.tuples(st.integers(1, 3), st.booleans()), max_size=16),
    st.integers(1, 3),
    st.randoms(use_true_random=False),
)  # fmt: skip
def test_no_answer_is_wrong_where_rows_pass_their_host(
    query_library: Path,
    below: dict[tuple[int, int], tuple[int, bool]],
    rows: int,
    draw: random.Random,
) -> None:
    """What passes the host comes to the gateway: of what it has joined, that leaves what DuckDB joins of all rows, and lacks only what
    would have met such a row."""
    told = plan_query(
        "SELECT s.nodeid, t.nodeid, s.temp FROM sensors AS s, sensors AS t "
        f"WINDOW {rows} ROWS WHERE s.room = t.room AND s.temp > t.temp SAMPLE PERIOD {PERIOD} s JOIN AT ANCESTOR"
    )
    assert isinstance(told, QueryPlan)
    assert told.pairing is not None
    pairs, first = [(2, 3), (3, 2), (2, 2)], BEGIN // PERIOD
    placed = clause_of(told.pairing, told.period_ms, hosts=[(OWN, 60, pairs)])
    query = merge([replace(told, clauses=(placed,))])
    gateway, mote = JoinedRows(query), Mote(query_library)
    mote.synchronise(BEGIN - 0.5)
    mote.sensor(BY_NAME["temp"].number, 1)
    assert mote.install(encode(query, 0, limits.FOREVER), QUERY) == COMPLETE
    passed, past = numbered({one: roles for one, (roles, _) in below.items()}), set()
    values = dict[tuple[int, int], tuple[int, int | None]]()
    mote.run(1)
    told_pairs = pairs_clause(query)
    assert told_pairs is not None
    for now in range(10):
        for node in (2, 3):
            if (node, now) not in below:
                continue
            roles, passes = below[node, now]
            values[node, now] = roles, draw.randint(-3, 3)
            body = row(node, first + now, values[node, now][1], passed[node, now])
            if passes:
                past.add((node, first + now))
                gateway.take(codec.Result(QUERY, node, first + now, 0, body[9:]))
            else:
                assert not mote.row(body)
        mote.run(PERIOD)
    mote.run(delay_ms(told_pairs, told.period_ms) / 1000 + PERIOD)
    for record in mote.records():
        if record.type is PacketType.JOINED:
            assert gateway.joined(record.body) == [], "it waits"
    until, met = gateway.due(QUERY, (first + 100) * PERIOD * 1000)
    gateway.done(until)
    assert gateway.due(QUERY, (first + 200) * PERIOD * 1000)[1] == [], "each once"
    ours = set()
    for one in met:
        other, behind_s, behind_t = struct.unpack_from("<Hii", one.values)
        ours.add((one.node, one.epoch - behind_s, other, one.epoch - behind_t))
    theirs = by_duckdb(pairs, values, first, rows, 0)
    assert ours <= theirs, "none is wrong"
    assert all({one[:2], one[2:]} & past for one in theirs - ours)


GOOD = clause([2, 3], {OWN: [(2, 3)]}, rows=1)
RELAYED = [clause([2, 3], {9: [(2, 3)], 8: [(2, 3)]}, rows=1, passed={9: (by, {2})}) for by in (1, 0, 2, 16)]


@pytest.mark.parametrize(
    "code",
    [
        GOOD[:-1],
        GOOD[:6],
        GOOD + b"\x07",
        clause([2, 3], {9: [(2, 3)], OWN: []}, rows=1, passed={9: (1, {2})})[:-1],
        clause([2, 3], {OWN: [(2, 3)]}, rows=1, width=25),
        clause([2, 3], {OWN: [(2, 3)]}, rows=1, condition=instruction(Op.ATTR, BY_NAME["temp"].number)),
        clause([2, 3], {OWN: [(2, 3)]}, rows=1, condition=instruction(Op.GT)),
        GOOD[:-1] + b"\x83",
        GOOD[:-5] + b"\x03" + GOOD[-4:],
        GOOD[:3] + b"\x00" + GOOD[4:],
        GOOD[:6] + b"\x03" + GOOD[7:],
        GOOD[:8] + b"\xff" + GOOD[9:],
        *RELAYED[1:],
        clause([2, 3], {9: [(2, 3)], 8: [(2, 3)]}, rows=1, passed={8: (0, {2})}),
    ],
    ids=["cut", "cut head", "a byte more", "half a host", "wide", "reads a sensor", "no code", "no such mote", "no such host",
         "no delay", "no such way", "sets too long", "by itself", "by none of them", "by none that may be", "by one before"],
)  # fmt: skip
def test_what_cannot_be_is_refused(mote: Mote, code: bytes) -> None:
    assert mote.install(joining(code), QUERY) == REFUSED


@pytest.mark.parametrize(
    "code", [GOOD, RELAYED[0], clause([2], {OWN: []}, rows=1), clause(range(2, 66), {9: [(2, 65)]}, rows=1)]
)
def test_what_differs_from_these_by_little_is_taken(mote: Mote, code: bytes) -> None:
    assert mote.install(joining(code), QUERY) == COMPLETE


@pytest.mark.parametrize(("pairs", "rows", "width"), [(4, 3, 2), (32, 3, 2)])
def test_room(mote: Mote, pairs: int, rows: int, width: int) -> None:
    """Four pairs of eight motes beside a plain query, and 32 of nine motes, with two values each."""
    motes = list(range(20, 28)) if pairs == 4 else list(range(20, 29))
    chosen = (
        list(zip(motes[::2], motes[1::2], strict=False))
        if pairs == 4
        else [(s, t) for s in motes for t in motes if s < t][:32]
    )
    room = sum(rows + DELAY + 2 for _ in motes)
    plain = program([field(ValueFormat.I16, instruction(Op.ATTR, BY_NAME["temp"].number))])
    assert mote.install(plain, 1) == COMPLETE
    assert (
        mote.install(joining(clause(motes, {OWN: chosen}, rows=rows, room=room, width=2 * width)), QUERY)
        == COMPLETE
    )
    print(f"{pairs} pairs: {mote.memory_free} bytes left")
