"""All networks of a gateway, each behind a root of its own: what users ask is asked of each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from skerry.catalog import Catalog
from skerry.network.alignment import Alignment, running_as
from skerry.network.commands import SET_POSITION, Running
from skerry.network.index_asks import IndexAsks
from skerry.network.link.link import Link
from skerry.network.network import Common, Network
from skerry.network.pings import Pinged
from skerry.network.searches import Searched, check_seeker, roots_of
from skerry.planner.cost.energy import decided
from skerry.planner.features import queueing
from skerry.planner.features.srt import Srt
from skerry.planner.model.clause import Clause
from skerry.planner.model.plans import Feed, QueryPlan
from skerry.planner.model.waits import BY_DEFAULT, WAIT_MS
from skerry.sharing.placement import Placement
from skerry.sql.errors import QueryError
from skerry.storage.state.database import Changes, Row
from skerry.streams.handover import Handover, handover_of, joined_feeds
from skerry.streams.stream import Source, Stream
from skerry_protocol.commands import Action

#: A root's time is remembered anew when it is so far off what was remembered, in s, and not more often than this, in s of this
#: machine's.
DRIFT_S, DRIFT_EACH_S = 5.0, 60.0
#: Of a feed, what has the same name in the tables.
_FEED = ("period_ms", "stream_period_ms", "since_ms", "until_ms", "before_ms")


class Networks:
    """Not locked: its owner calls it under his lock. ``networks``: in the order of the links."""

    def __init__(self, networks: Sequence[Network], common: Common) -> None:
        self.all = tuple(networks)
        self._common = common
        self._alignment = Alignment(self.all)
        self._sources = {
            network: Source(
                network.stream_of_query,
                network.clock.utc,
                partial(self._alignment.place, network),
                network.views,
                network.clock.now_ms,
            )
            for network in self.all
        }
        #: Streams as they were remembered last, and what roots had told of their time.
        self._remembered: dict[int, Stream] = {}
        self._told: list[tuple[float, float, float] | None] = []

    @property
    def catalog(self) -> Catalog:
        """Motes of all networks, and attributes."""
        return self._common.catalog

    @property
    def streams(self) -> dict[int, Stream]:
        """Mote queries of all networks and times by number."""
        return self._common.streams

    @property
    def current(self) -> set[int]:
        """Numbers of those of the present sessions."""
        return {stream.number for network in self.all for stream in network.current.values()}

    @property
    def running(self) -> set[int]:
        """Numbers of those that are not to end."""
        streams = (stream for network in self.all for stream in network.current.values())
        return {stream.number for stream in streams if stream.until_ms is None}

    @property
    def known(self) -> bool:
        """Whether any root has been heard."""
        return any(network.clock.known for network in self.all)

    @property
    def roots(self) -> list[int]:
        """Short addresses of the roots that have been heard at some time."""
        return [network.root for network in self.all if network.session]

    @property
    def first(self) -> Network:
        """The first that has been heard, or the first."""
        return next((network for network in self.all if network.clock.known), self.all[0])

    def stream(self, number: int) -> Stream | None:
        """A stream of any time."""
        return self.streams.get(number)

    def now_ms(self) -> int:
        """Network time of the first in ms."""
        return self.all[0].clock.now_ms()

    def earlier(self, utc: float, span_ms: int) -> float:
        """UTC in s so long, in ms of network time, before another."""
        return self.first.clock.earlier(utc, span_ms)

    def held_ms(self, number: int) -> tuple[int, int] | None:
        """See :meth:`Network.held_ms`; by the time of :meth:`now_ms`."""
        stream = self.streams.get(number)
        if stream is None or not queueing.held_ms(stream.mote_query):
            return None
        network = next((n for n in self.all if n.session == stream.session), None)
        held = None if network is None else network.held_ms(number)
        if network is None or held is None:
            return None
        return held[0], held[1] + self.now_ms() - network.clock.now_ms()

    def source(self, network: Network) -> Source:
        """What the packets of its root mean."""
        return self._sources[network]

    def source_of(self, stream: Stream) -> Source | None:
        """The same of the network whose present session a stream is of."""
        return next((self.source(n) for n in self.all if n.session == stream.session), None)

    def session_of(self, root: int) -> int | None:
        """The present session of a root; None: it has none."""
        return next((n.session for n in self.all if n.session and n.root == root), None)

    # ---- who is waited for (:class:`skerry.ingest.roll.Roll`) ----

    def sessions(self, stream: Stream) -> frozenset[int]:
        """Sessions whose roots can be heard, and have a part in a stream's epochs."""
        return frozenset(network.session for network in self._alignment.running(stream))

    def time_ms(self, session: int) -> int | None:
        """Network time up to which all that a root had has come; None: the session is over."""
        return next((n.settled_ms for n in self.all if n.session == session), None)

    def begin_ms(self, session: int, stream: Stream, epoch: int) -> int | None:
        """When an epoch of a stream begins, by a session's network time; None: that is not known."""
        return self._alignment.begin_ms(session, stream, epoch)

    def motes(self, session: int, stream: Stream) -> int | None:
        """How many motes of a session's network have been heard of lately, without those that have refused the query."""
        for network in self.all:
            if network.session == session:
                same = running_as(network, stream)
                return None if same is None else network.motes(same.query)
        return None

    def waits(self, stream: Stream) -> Mapping[int, int]:
        """For how long, in ms, an epoch of a stream is waited for, by what its readers are told by."""
        for network in self.all:
            if network.session == stream.session:
                return network.waits(stream.query)
        return {BY_DEFAULT: WAIT_MS}

    def predecessors(self, stream: Stream) -> Mapping[int, int]:
        """The streams that readers of this one read before it, and up to which network time in ms."""
        for network in self.all:
            if network.session == stream.session:
                return network.predecessors(stream.query)
        return {}

    def feeds(self, user: str) -> dict[int, Feed]:
        """Which rows of which stream are a user's now, by stream number."""
        return {number: feed for network in self.all for number, feed in network.feeds(user).items()}

    def joined_feeds(self, user: str, handovers: dict[int, Handover], period_ms: int) -> dict[int, Feed]:
        """The same of a query with a past, with the feeds for rows from before its own; ``handovers``: by root, kept up to date."""
        found = {}
        for network in self.all:
            feeds = network.feeds(user)
            if not feeds:
                continue
            before, now_ms = handovers.get(network.root), network.now() * 1000
            handover = handovers[network.root] = handover_of(before, feeds, network.session, now_ms)
            if handover.session == network.session:
                feeds = joined_feeds(feeds, handover, user, period_ms, list(self.streams.values()))
            # Of a session that is over he has the feeds that he had.
            found.update(feeds)
        return found

    def called_off(self, user: str, had: Mapping[int, Feed], feeds: Mapping[int, Feed]) -> list[int]:
        """See :meth:`Network.called_off`."""
        return [number for network in self.all for number in network.called_off(user, had, feeds)]

    def refused(self, user: str) -> list[str]:
        """Which motes do not run what a user asked, and why."""
        return [sentence for network in self.all for sentence in network.refused(user)]

    def answered(self, user: str) -> tuple[int, int | None]:
        """The same of how many have answered, and how many there are; None: that is not known of every network yet."""
        found = [network.answered(user) for network in self.all if network.demand.has(user)]
        motes = [there for _, there in found if there is not None]
        return sum(answered for answered, _ in found), sum(motes) if motes and len(motes) == len(
            found
        ) else None

    def described_streams(self) -> list[dict[str, Any]]:
        """The mote queries that serve somebody, for people: of those that do not, rows may still be on their way."""
        return [
            {"stream": s.number, "query": s.query, "period_ms": s.mote_query.period_ms,
             "columns": [column.name for column in s.mote_query.columns], "aggregate": s.mote_query.aggregate,
             "root": network.root, "refused": network.refusals.of(s.query),
             "decision": decided(s.mote_query, served[s.query])}
            for network in self.all
            for served in [network.demand.served()] for s in network.current.values() if served.get(s.query)
        ]  # fmt: skip

    def check_heard(self, links: Iterable[Link]) -> None:
        """Raises QueryError as long as no root has answered, or where there is none."""
        if not self.all:
            raise QueryError(
                "this gateway has no motes",
                "start it with 'skerry gateway --link …', or ask tables of sensors",
            )
        if not self.known:
            states = ", ".join(f"link {link.url}: {link.state}" for link in links)
            raise QueryError("the root mote has not answered yet", states)

    # ---- what is asked of them ----

    @property
    def placement(self) -> Placement:
        """Who shares a mote query with whom."""
        return self._common.placement

    def begins(self, user: str) -> float | None:
        """From when on the user has rows, UTC in s, at the earliest where he waits for room; None: when his event comes, or that is
        not known yet."""
        known = [
            (n.clock, n.demand.begins_ms(user, n.now()))
            for n in self.all
            if n.clock.known and n.demand.has(user)
        ]
        times = [clock.utc(begins_ms) for clock, begins_ms in known if begins_ms is not None]
        return min((time for time in times if time is not None), default=None)

    def add_user(self, user: str, plan: QueryPlan) -> None:
        """A user comes. Raises QueryError when motes have no room; then nothing has changed."""
        self.placement.add(user, plan)
        for network in self.all:
            network.adopt(network.demand.add_user(user, plan, network.now()))

    def remove_user(self, user: str) -> bool:
        """A user goes, from where he is; whether that changes anything for others."""
        if user in self.placement:
            self.placement.remove(user)
        return self._settle(user)

    def _settle(self, leaving: str | None = None) -> bool:
        """All networks do what has changed in who shares with whom; whether that is anything."""
        changed = False
        for network in self.all:
            demand, now = network.demand, network.now()
            gone = leaving is not None and demand.has(leaving)
            difference = demand.remove_user(str(leaving), now) if gone else demand.settle(now)
            network.adopt(difference)
            changed |= bool(difference)
        return changed

    def advance(self) -> tuple[bool, list[str]]:
        """Time goes on where it is known: whether anything changes, and whose queries are over in every network."""
        differences = [(n, n.demand.advance(n.now(), n.heard())) for n in self.all if n.clock.known]
        for network, difference in differences:
            network.adopt(difference)
        ended = dict.fromkeys(user for _, difference in differences for user in difference.finished)
        finished = [user for user in ended if not any(n.clock.known and n.demand.has(user) for n in self.all)]
        changed = any(bool(difference) for _, difference in differences)
        for user in finished:
            # A root that is heard later shall not begin with it.
            changed |= self.remove_user(user)
        self.placement.depth = max(1.0, *(n.depth for n in self.all))
        if all(network.demand.is_settled() for network, _ in differences) and self.placement.improve():
            changed |= self._settle()
        again = [network.ask_again() for network, _ in differences]
        return changed or any(again), finished

    def route_by(self, srts: Iterable[Srt]) -> None:
        """There are these semantic routing trees now, one in each network for each."""
        srts = list(srts)
        for network in self.all:
            network.demand.route_by(srts)

    def place_by(self, placements: Mapping[str, Clause], filled_ms: Mapping[str, int]) -> None:
        """Where pairs of motes are joined, by the text of the query."""
        for network in self.all:
            network.demand.place_by(placements, filled_ms)

    def amend(self, clauses: Mapping[str, tuple[Clause, ...]]) -> None:
        """Clauses of queries that are others than when they were asked, by the text of the query."""
        for network in self.all:
            network.demand.amend(clauses)

    def prepare(self) -> None:
        """See :meth:`Network.prepare`."""
        for network in self.all:
            network.prepare()

    def tell(self) -> None:
        """Send what was prepared."""
        for network in self.all:
            network.tell()

    def raise_event(self, event: str) -> None:
        """An event as if at every root."""
        token = self._common.next_token()
        for network in self.all:
            if network.clock.known:
                network.raise_event(event, token)

    def run(self, action: Action, argument: int | None, mote: int | None) -> Running:
        """Send a command to a mote through the root that it was heard through last, or through all; None: to all motes."""
        running = Running(self._common.next_token(), action.name, argument, mote)
        self._common.commands.add(running)
        for network in self._on_the_way(mote):
            network.run(running, action)
        return running

    def place(self, mote: int, x: int, y: int) -> Running:
        """Tell a mote where it is, in cm, in the same way."""
        running = Running(self._common.next_token(), SET_POSITION, None, mote)
        self._common.commands.add(running)
        for network in self._on_the_way(mote):
            network.place(running, x, y)
        return running

    def ping(
        self,
        mote: int,
        to: int | None,
        within_s: int,
        place: tuple[float, float] | None = None,
        by: Sequence[int] = (),
    ) -> Pinged:
        """Have a mote send a record to another one, of the network that it was heard in last, or of any."""
        pinged = Pinged(self._common.next_token(), mote, by[-1] if by else to, within_s, place, list(by))
        self._common.pings.add(pinged)
        for network in self._on_the_way(mote):
            network.ping(pinged)
        return pinged

    def pinged(self, token: int) -> Pinged | None:
        """A record that :meth:`ping` asked for, with what became of it so far."""
        return self._common.pings.find(token)

    def search(self, mote: int, attribute: int, low: int, high: int) -> Searched:
        """Have a mote search for others of its network by a static attribute. Raises QueryError for one that is in none."""
        network = self._on_the_way(mote)[0]
        known = [one for one in self._common.catalog.all() if one.root in (None, network.root)]
        check_seeker(mote, network.root, known)
        roots = roots_of(network.root, known)
        searched = Searched(self._common.next_token(), mote, attribute, low, high, roots)
        searched.wait = self._common.searches.wait(
            searched, max((one.level or 0 for one in known), default=0)
        )
        searched.motes = len(known)
        self._common.searches.add(searched)
        network.search(searched)
        return searched

    def searched(self, token: int) -> Searched | None:
        """A search that :meth:`search` asked for, with what it has found so far."""
        return self._common.searches.find(token)

    @property
    def index_asks(self) -> IndexAsks:
        """Questions about indexes that are under way."""
        return self._common.index_asks

    def advance_index_asks(self) -> None:
        """Send those that are to go now: an index is of the first network."""
        if self.first.clock.known:
            self.index_asks.advance(self.first.clock.now(), self.first.ask_index)

    def drop_index(self, number: int) -> None:
        """Have motes forget the tuples of an index."""
        self.first.drop_index(number, self._common.next_token())

    def _on_the_way(self, mote: int | None) -> list[Network]:
        """Through which a command goes."""
        known = self.catalog.mote(mote) if mote is not None else None
        heard = [network for network in self.all if network.clock.known]
        through = [network for network in heard if known is not None and network.root == known.root]
        return through or heard

    def command(self, token: int) -> Running | None:
        """A command that :meth:`run` sent, with the answers so far."""
        return self._common.commands.find(token)

    def changed(self) -> set[str]:
        """Whose feeds may have changed in any network since this was asked last; some of them may have gone."""
        found: set[str] = set()
        for network in self.all:
            found |= network.demand.changed()
        return found

    # ---- kept over a restart ----

    def changed_streams(self) -> list[Stream]:
        """Those that :meth:`remembered` has not seen as they are."""
        return [
            stream for number, stream in self.streams.items() if self._remembered.get(number) is not stream
        ]

    def remembered(self) -> None:
        """What :meth:`save` said has been written."""
        self._remembered = dict(self.streams)
        self._told = [network.clock.told() for network in self.all]
        for network in self.all:
            network.demand.remembered()

    def clock_drifted(self) -> bool:
        """Whether a root's time is no longer where it would be looked for after a restart: crystals drift, while nothing else changes
        for weeks, and emulated motes keep no pace."""
        pairs = zip((network.clock.told() for network in self.all), self._told, strict=False)
        return any(now is not None and (was is None or _drifted(was, now)) for now, was in pairs)

    def save(self, changes: Changes, urls: Sequence[str], users: Iterable[str] | None) -> None:
        """Say what is to be kept; ``urls`` of the links. ``users``: those of whom something may have changed; None: everything is said,
        whatever is there."""
        changes.whole("pairings", self._alignment.rows())
        changes.whole("sharing_groups", self.placement.rows())
        changes.whole("motes", self.catalog.mote_rows())
        changes.whole("events", self.catalog.events.rows())
        if users is None:
            changes.whole("streams", map(Stream.to_row, self.streams.values()))
        else:
            for stream in self.changed_streams():
                changes.put("streams", stream.to_row())
        links = list(enumerate(zip(urls, self.all, strict=True)))
        changes.whole(
            "links", [{"link": link, "url": url, **network.row()} for link, (url, network) in links]
        )
        told = [(link, network.clock.told()) for link, (_, network) in links]
        names = "network_s", "utc_s", "speed"
        changes.whole(
            "clocks",
            [
                {"link": link, **dict(zip(names, clock, strict=True))}
                for link, clock in told
                if clock is not None
            ],
        )
        current = [(link, stream.number) for link, (_, n) in links for stream in n.current.values()]
        changes.whole("current_streams", [{"link": link, "stream": number} for link, number in current])
        servings = [{"link": link, **row} for link, (_, n) in links for row in n.demand.serving_rows()]
        changes.whole("group_servings", servings)
        if users is None:
            self._save_everything(changes)
        else:
            self._save_changed(changes, list(users))

    def _save_everything(self, changes: Changes) -> None:
        found: dict[str, list[Row]] = {"mote_queries": [], "servings": [], "serving_feeds": []}
        for link, network in enumerate(self.all):
            found["mote_queries"] += [
                {"link": link, **row} for row in network.demand.query_rows().values() if row is not None
            ]
            for user in network.demand.users():
                serving, feeds = _serving_rows(link, user, network)
                found["servings"] += serving
                found["serving_feeds"] += feeds
        for table, rows in found.items():
            changes.whole(table, rows)

    def _save_changed(self, changes: Changes, users: Sequence[str]) -> None:
        for link, network in enumerate(self.all):
            for query, row in network.demand.query_rows(changed=True).items():
                if row is None:
                    changes.remove("mote_queries", {"link": link, "query": query})
                else:
                    changes.put("mote_queries", {"link": link, **row})
            for user in users:
                serving, feeds = _serving_rows(link, user, network)
                changes.replace("servings", {"link": link, "query": user}, serving)
                changes.replace("serving_feeds", {"link": link, "query": user}, feeds)

    def restore(
        self,
        state: Mapping[str, Sequence[Row]],
        urls: Sequence[str],
        plans: Mapping[str, QueryPlan],
        running: Iterable[str],
    ) -> None:
        """What :meth:`save` said, by table; ``plans`` of its users, of whom ``running`` still ask.

        A link goes on with what is known of it, a new one with what is known of one that is not there any more: a device may
        have another name today. If another root is behind it, it says so, and begins with all that users ask.
        """
        streams = map(Stream.from_row, state["streams"])
        self._common.streams.update((stream.number, stream) for stream in streams)
        self._common.catalog = Catalog.from_rows(state["motes"], state["events"], self._common.speed)
        self._alignment.restore(state["pairings"])
        left = _links(state)
        served = [(user, known["sharing_group"]) for link in left for user, known in link["served"].items()]
        [counters] = state["gateway"]
        self.placement.restore(
            state["sharing_groups"], counters["last_group"], counters["mote_memory"], dict(served), plans
        )
        own = {url: next((link for link in left if link["url"] == url), None) for url in urls}
        left = [link for link in left if link not in own.values()]
        for url, network in zip(urls, self.all, strict=True):
            known = own[url] or (left.pop(0) if left else None)
            if known is not None:
                network.restore(known, plans)
                continue
            for user in running:
                network.demand.add_user(user, plans[user], network.now())
        self.remembered()


def _serving_rows(link: int, user: str, network: Network) -> tuple[list[Row], list[Row]]:
    """A user as a network knows him: none where it does not; and his feeds."""
    serving = network.demand.user_dict(user)
    if serving is None:
        return [], []
    key = {"link": link, "query": user}
    feeds = [
        {**key, "place": place, "mote_query": feed["query"], **{name: feed[name] for name in _FEED}}
        for place, feed in enumerate(serving.pop("feeds"))
    ]
    return [{**key, **serving}], feeds


def _links(state: Mapping[str, Sequence[Row]]) -> list[Row]:
    """What is known of each link, with what is only its own."""
    found = {
        row["link"]: {**row, "clock": None, "current": [], "serving": [], "queries": [], "served": {}}
        for row in state["links"]
    }
    for row in state["clocks"]:
        found[row["link"]]["clock"] = row["network_s"], row["utc_s"], row["speed"]
    for row in state["current_streams"]:
        found[row["link"]]["current"].append(row["stream"])
    for table, name in (("group_servings", "serving"), ("mote_queries", "queries")):
        for row in state[table]:
            found[row["link"]][name].append(row)
    feeds = defaultdict(list)
    for row in state["serving_feeds"]:
        feed = {"user": row["query"], "query": row["mote_query"], **{name: row[name] for name in _FEED}}
        feeds[row["link"], row["query"]].append(feed)
    for row in state["servings"]:
        key = row["link"], row["query"]
        found[row["link"]]["served"][row["query"]] = {**row, "feeds": feeds[key]}
    return list(found.values())


def _drifted(was: tuple[float, float, float], now: tuple[float, float, float]) -> bool:
    """Network time, UTC and speed: whether what a root tells now is not what was to be expected."""
    passed, pace = now[1] - was[1], max(1.0, was[2], now[2])
    off_s = abs(was[0] + passed * was[2] - now[0]) / pace
    return off_s > (DRIFT_S if passed > DRIFT_EACH_S else DRIFT_EACH_S)
