"""The questions that a reading connection answers.

Every answer is one row of one statement: a JSON text that holds the page. Fetching row by row would give up the GIL
and win it back for each row, which beside a busy event loop takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, cast

import aiosqlite
import orjson

from episodic.codec import decode_episode, decode_session, from_micros, to_micros
from episodic.errors import RejectedError
from episodic.folding import ANY_ENDING, spelled
from episodic.model import AgentSummary, Episode, Session
from episodic.ports import Cursor, Scope, Span, Surroundings, Turn
from episodic.sqlite.connect import Place, translated
from episodic.sqlite.filters import conditions, episodes, is_narrowed, looked_up
from episodic.sqlite.frequencies import Counted, Frequencies
from episodic.sqlite.fts import is_told_apart, match
from episodic.sqlite.order import newest_first, oldest_first

__all__ = ["SqliteReader"]

# Characters that a page of several episodes may hold, metadata too. Twice as much is in memory while it is decoded.
MOST_WEIGHT = 2**24

# The fields of `model.Episode`, in their order.
EPISODE = """json_array(
    e.id, e.agent_id, e.session_id, e.user_id, e.author, e.timestamp, e.role, e.content, e.outcome, json(e.metadata),
    e.event_id, e.archived
)"""
LIST = f"""
SELECT json_group_array({EPISODE}) FROM (SELECT * FROM {{}} LIMIT ?) AS e
"""  # noqa: S608 - constants only
# A page is weighed before it is built: what is too heavy to hold at once is asked for again in smaller pages.
PAGE = f"""
WITH page AS MATERIALIZED (SELECT e.id, length(e.content) + length(e.metadata) AS weight FROM {{}} LIMIT ?)
SELECT CASE WHEN (SELECT count(*) = 1 OR total(weight) <= {MOST_WEIGHT} FROM page) THEN (
    SELECT json_group_array({EPISODE}) FROM page CROSS JOIN episodes AS e ON e.id = page.id
) END
"""  # noqa: S608 - constants only
# NOT INDEXED leaves the table itself, which is in the order asked for; an index would bring all of an agent's episodes.
BY_ID = "episodes AS e NOT INDEXED WHERE e.id > ? AND e.id <= ? AND {} ORDER BY e.id"
FETCH = f"""
SELECT json_group_array({EPISODE})
FROM json_each(?) AS wanted CROSS JOIN episodes AS e ON e.id = wanted.value
WHERE {{}}
"""  # noqa: S608 - constants only
NEWEST = "SELECT coalesce(max(id), 0) FROM episodes"

# The sessions of the newest episodes in scope; see schema.sql for why there is no index on `last`.
SESSIONS = """
WITH newest AS MATERIALIZED (
    SELECT agent_id, session_id, min(place) AS place, count(*) AS seen
    FROM (
        SELECT agent_id, session_id, row_number() OVER () AS place
        FROM (
            SELECT agent_id, session_id FROM {} WHERE {} ORDER BY e.timestamp DESC, e.id DESC LIMIT ?
        )
    )
    GROUP BY agent_id, session_id
)
SELECT json_array(
    (SELECT coalesce(sum(seen), 0) FROM newest),
    json_group_array(json_array(agent_id, session_id, user_id, first, last, episodes, outcome))
)
FROM (
    SELECT s.*
    FROM newest AS n CROSS JOIN sessions AS s ON s.agent_id = n.agent_id AND s.session_id = n.session_id
    ORDER BY n.place
    LIMIT ?
)
"""
# Found through episodes_by_session, one look for each session.
RESOLVED = """
SELECT json_group_array(json_array(agent_id, session_id, user_id, first, last, episodes, outcome))
FROM (
    SELECT * FROM sessions AS s
    WHERE s.outcome IS NOT NULL AND {}
      AND EXISTS (
          SELECT 1 FROM episodes AS e INDEXED BY episodes_by_session
          WHERE e.session_id = s.session_id AND e.agent_id = s.agent_id AND e.id <= ? AND {}
      )
    ORDER BY s.agent_id, s.session_id
    LIMIT ?
)
"""
AGENTS = """
SELECT json_group_array(json_array(agent_id, episodes, sessions, first, last))
FROM (
    SELECT agent_id, sum(episodes) AS episodes, count(*) AS sessions, min(first) AS first, max(last) AS last
    FROM sessions GROUP BY agent_id ORDER BY 2 DESC, agent_id
)
"""
COUNT_AGENT = "SELECT coalesce(sum(episodes), 0) FROM agents WHERE agent_id = ?"
COUNT_USER = "SELECT count(*) FROM episodes WHERE agent_id = ? AND user_id = ?"

# Whether the index has what the log has, as its newest rows tell.
INDEXED = "(SELECT max(id) FROM episodes) IS (SELECT max(id) FROM episodes_fts_docsize)"
WHOLE_SPAN = f"SELECT json_array(0, NULL, NULL, {INDEXED})"
# The episodes of a session, a stretch of time or a ticket lie close together: looking there alone is quick.
SPAN = f"""
SELECT json_array(count(*), min(id), max(id), {INDEXED})
FROM (SELECT e.id FROM {{}} WHERE {{}} ORDER BY e.timestamp DESC, e.id DESC LIMIT ?)
"""  # noqa: S608 - constants only
# Each word with the id behind which it is to be counted.
FREQUENCIES = """
SELECT json_array((SELECT max(id) FROM episodes_fts_docsize), json_group_array(
    CASE WHEN word.value ->> 1 < (SELECT max(id) FROM episodes_fts_docsize) THEN (
        SELECT count(*)
        FROM (
            SELECT 1 FROM episodes_fts
            WHERE episodes_fts MATCH word.value ->> 0 AND rowid > word.value ->> 1
            LIMIT ?
        )
    ) ELSE 0 END
))
FROM json_each(?) AS word
"""
FREQUENCIES_BETWEEN = """
SELECT json_group_array((
    SELECT count(*)
    FROM (SELECT 1 FROM episodes_fts WHERE episodes_fts MATCH word.value AND rowid BETWEEN ? AND ? LIMIT ?)
)) FROM json_each(?) AS word
"""
# CROSS JOIN keeps the planner from driving the search from an index of the log, which takes a thousand times as long.
POSTINGS = """
SELECT json_group_array(json((
    SELECT json_group_array(id)
    FROM (
        SELECT e.id
        FROM (
            SELECT rowid FROM episodes_fts
            WHERE episodes_fts MATCH word.value AND rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?
        ) AS hit
        CROSS JOIN episodes AS e ON e.id = hit.rowid
        WHERE {}
        LIMIT ?
    )
))) FROM json_each(?) AS word
"""
# Agent and user are words of the index already, and each episode that the log itself has to bring in costs as much as
# twenty rows of the index. Going backwards costs twice as much as forwards, so only what must be cut goes backwards.
POSTINGS_INDEX_ONLY = """
SELECT json_group_array(json(CASE WHEN word.value ->> 1 < ? THEN (
    SELECT json_group_array(rowid) FROM episodes_fts WHERE episodes_fts MATCH word.value ->> 0
) ELSE (
    SELECT json_group_array(rowid)
    FROM (SELECT rowid FROM episodes_fts WHERE episodes_fts MATCH word.value ->> 0 ORDER BY rowid DESC LIMIT ?)
) END)) FROM json_each(?) AS word
"""
LIKE_POSTINGS = """
SELECT json_group_array(json((
    SELECT json_group_array(id)
    FROM (
        SELECT id
        FROM (SELECT id, author, content, folded FROM {} WHERE {} ORDER BY timestamp DESC LIMIT ?)
        WHERE coalesce(folded, content) LIKE word.value ESCAPE '\\' OR author LIKE word.value ESCAPE '\\'
        ORDER BY id DESC
        LIMIT ?
    )
))) FROM json_each(?) AS word
"""

TURN = "json_array({0}.id, {0}.author, substr(rtrim({0}.content), -1) = '?')"
NEAR = f"""(
    SELECT json_group_array({TURN.format("near")})
    FROM (
        SELECT e.id, e.author, e.content
        FROM episodes AS e INDEXED BY episodes_by_session
        WHERE e.session_id = c.session_id AND e.agent_id = c.agent_id AND {{where}} AND {{condition}}
        ORDER BY e.timestamp {{order}}, e.id {{order}}
        LIMIT ?
    ) AS near
)"""  # noqa: S608 - constants only
# Turns of the same instant apart from the others: compared as pairs with the id, all of them would be gone through.
# And with each what the center, which is in scope, makes true of its bounds of time: the planner may take one of them.
SIDES: tuple[tuple[str, str, Mapping[str, None]], ...] = (
    ("e.timestamp = c.timestamp AND e.id < c.id", "DESC", {"since": None, "until": None}),
    ("e.timestamp < c.timestamp", "DESC", {"until": None}),
    ("e.timestamp = c.timestamp AND e.id > c.id", "ASC", {"since": None, "until": None}),
    ("e.timestamp > c.timestamp", "ASC", {"since": None}),
)
SURROUNDINGS = f"""
SELECT json_group_array(json_array({TURN.format("c")}, c.session_id, {", ".join(["json({})"] * len(SIDES))}))
FROM json_each(?) AS wanted CROSS JOIN episodes AS c ON c.id = wanted.value
"""  # noqa: S608 - constants only

# A session is about 20 turns; the first look covers the usual interleaving, and each further one far more.
FIRST_WINDOW = 1_000
WINDOW_GROWTH = 10

SMALLEST_ID, LARGEST_ID = 1, 2**63 - 1

_TurnRow: TypeAlias = "tuple[int, str | None, int]"
_NearRow: TypeAlias = "tuple[_TurnRow, str, list[_TurnRow], list[_TurnRow], list[_TurnRow], list[_TurnRow]]"


class SqliteReader:
    """A `ports.Reader` over one connection."""

    def __init__(
        self,
        db: aiosqlite.Connection,
        where: Place,
        indexed: Mapping[str, str],
        frequencies: Frequencies,
        *,
        fts: bool,
    ) -> None:
        """Wrap a connection.

        Args:
            db: the connection.
            where: its file, for messages.
            indexed: metadata keys that have an index, and its name.
            frequencies: of words in this file, which all its readers share.
            fts: whether words are looked up in the full-text index.
        """
        self.db = db
        self._where = where
        self._indexed = indexed
        self._frequencies = frequencies
        self._fts = fts

    @property
    def mode(self) -> Literal["fts", "like"]:
        """How words are found."""
        return "fts" if self._fts else "like"

    async def recent(
        self, scope: Scope, *, limit: int, latest: int | None = None, before: Cursor | None = None
    ) -> list[Episode]:
        """Return the newest episodes; see `ports.Reader.recent`."""
        source, parameters = newest_first(scope, self._indexed, limit=limit, latest=latest, before=before)
        return await self._episodes(LIST.format(source), (*parameters, limit))

    async def replay(self, scope: Scope, *, limit: int, after: Cursor | None = None) -> list[Episode]:
        """Return the oldest episodes after a cursor; see `ports.Reader.replay`."""
        source, parameters = oldest_first(scope, self._indexed, limit=limit, after=after)
        return await self._page(source, (*parameters, limit))

    async def scan(self, scope: Scope, *, limit: int, after: int, upto: int) -> list[Episode]:
        """Return episodes by id; see `ports.Reader.scan`."""
        condition, parameters = conditions(scope, self._indexed)
        return await self._page(BY_ID.format(condition), (after, upto, *parameters, limit))

    async def newest_id(self) -> int:
        """Return the id of the newest episode, 0 in an empty log."""
        return cast("int", await self._answer(NEWEST, ()))

    async def fetch(self, scope: Scope, ids: Sequence[int]) -> list[Episode]:
        """Return those of the episodes that are in scope, in the order of `ids`."""
        condition, parameters = conditions(scope, self._indexed)
        return await self._episodes(FETCH.format(condition), (_array(ids), *parameters))

    async def around(
        self, scope: Scope, center: Episode, *, before: int, after: int
    ) -> tuple[list[Episode], list[Episode]]:
        """Return the turns before and after an episode; see `ports.Reader.around`."""
        cursor = Cursor(to_micros(center.timestamp), center.id)
        earlier = await self.recent(scope, limit=before, before=cursor)
        source, parameters = oldest_first(scope, self._indexed, limit=after, after=cursor)
        later = await self._episodes(LIST.format(source), (*parameters, after))
        return earlier[::-1], later

    async def surroundings(self, scope: Scope, ids: Sequence[int], *, reach: int) -> list[Surroundings]:
        """Return episodes among the turns of their sessions; see `ports.Reader.surroundings`."""
        sides: list[str] = []
        given: list[object] = []
        for where, order, implied in SIDES:
            narrowed = scope._replace(where=scope.where and replace(scope.where, **implied))
            condition, parameters = conditions(narrowed, self._indexed)
            sides.append(NEAR.format(where=where, condition=condition, order=order))
            given += [*parameters, reach]
        answer = await self._answer(SURROUNDINGS.format(*sides), (*given, _array(ids)))
        return [
            Surroundings(
                _turn(turn),
                session_id,
                [_turn(one) for one in [*just_before, *before][:reach]],
                [_turn(one) for one in [*just_after, *after][:reach]],
            )
            for turn, session_id, just_before, before, just_after, after in cast("list[_NearRow]", answer)
        ]

    async def sessions(self, scope: Scope, *, limit: int) -> list[Session]:
        """Return the sessions with an episode in scope; see `ports.Reader.sessions`."""
        condition, parameters = conditions(scope, self._indexed)
        sql = SESSIONS.format(episodes(scope, self._indexed), condition)
        window = max(FIRST_WINDOW, limit)
        while True:
            answer = await self._answer(sql, (*parameters, window, limit))
            seen, rows = cast("tuple[int, list[list[object]]]", answer)
            if seen < window or len(rows) >= limit:
                return [decode_session(row) for row in rows]
            window *= WINDOW_GROWTH

    async def resolved(
        self, scope: Scope, *, limit: int, upto: int, after: tuple[str, str] | None = None
    ) -> list[Session]:
        """Return the sessions whose outcome is known; see `ports.Reader.resolved`."""
        condition, parameters = conditions(scope, self._indexed)
        behind = "true" if after is None else "(s.agent_id, s.session_id) > (?, ?)"
        given = (*(after or ()), upto, *parameters, limit)
        rows = cast("list[list[object]]", await self._answer(RESOLVED.format(behind, condition), given))
        return [decode_session(row) for row in rows]

    async def agents(self) -> list[AgentSummary]:
        """Return every agent, the one with most episodes first."""
        rows = cast("list[tuple[str, int, int, int, int]]", await self._answer(AGENTS, ()))
        return [AgentSummary(*row[:3], from_micros(row[3]), from_micros(row[4])) for row in rows]

    async def count(self, scope: Scope) -> int:
        """Return how many episodes the agent has, or has about the filter's user."""
        if scope.where is None or scope.where.user_id is None:
            return cast("int", await self._answer(COUNT_AGENT, (scope.agent_id,)))
        return cast("int", await self._answer(COUNT_USER, (scope.agent_id, scope.where.user_id)))

    async def span(self, scope: Scope, *, bound: int) -> Span:
        """Return where the episodes in scope lie; see `ports.Reader.span`."""
        if not self._fts:
            return Span(SMALLEST_ID, LARGEST_ID, await self.count(scope) < bound)
        where = scope.where and looked_up(scope.where, self._indexed)
        if not is_narrowed(where):
            answer = await self._answer(WHOLE_SPAN, ())
        else:
            narrow = Scope(scope.agent_id, where)
            condition, parameters = conditions(narrow, self._indexed)
            answer = await self._answer(SPAN.format(episodes(narrow, self._indexed), condition), (*parameters, bound))
        seen, first_id, last_id, is_indexed = cast("tuple[int, int | None, int | None, int]", answer)
        if seen == bound:
            # There are more, older ones.
            return Span(SMALLEST_ID, last_id or LARGEST_ID, is_whole=False)
        return Span(first_id or SMALLEST_ID, last_id or LARGEST_ID, bool(is_indexed))

    async def frequencies(self, scope: Scope, words: Sequence[str], span: Span, *, bound: int) -> list[int]:
        """Return how many episodes hold each word; see `ports.Reader.frequencies`."""
        if not self._fts:
            unknown = [bound] * len(words)
            return [len(ids) for ids in await self.postings(scope, words, unknown, span, most=bound, bound=bound)]
        matches = [match(scope, word) for word in words]
        if span[:2] == (SMALLEST_ID, LARGEST_ID):
            return await self._count(matches, bound)
        given = (span.first_id, span.last_id, bound, _array(matches))
        return cast("list[int]", await self._answer(FREQUENCIES_BETWEEN, given))

    async def _count(self, matches: Sequence[str], bound: int) -> list[int]:
        """Count what is new since each word was counted last; a word that reached the bound is counted no more."""
        known = self._frequencies.known(matches, bound)
        open_ones = [(word, one) for word, one in zip(matches, known, strict=True) if one.episodes < bound]
        new: dict[str, int] = {}
        if open_ones:
            asked = _array([(word, one.upto) for word, one in open_ones])
            newest, more = cast("tuple[int | None, list[int]]", await self._answer(FREQUENCIES, (bound, asked)))
            for (word, one), count in zip(open_ones, more, strict=True):
                new[word] = min(bound, one.episodes + count)
                self._frequencies.learn(word, bound, Counted(new[word], max(newest or 0, one.upto)))
        return [new.get(word, one.episodes) for word, one in zip(matches, known, strict=True)]

    async def postings(
        self, scope: Scope, words: Sequence[str], frequencies: Sequence[int], span: Span, *, most: int, bound: int
    ) -> list[list[int]]:
        """Return for each word the newest episodes in scope that hold it; see `ports.Reader.postings`."""
        condition, parameters = conditions(scope, self._indexed)
        if self._fts:
            matches = [match(scope, word) for word in words]
            if not is_narrowed(scope.where) and is_told_apart(scope):
                asked = _array(list(zip(matches, frequencies, strict=True)))
                unsorted = cast("list[list[int]]", await self._answer(POSTINGS_INDEX_ONLY, (most, most, asked)))
                return [sorted(ids, reverse=True) for ids in unsorted]
            given = (span.first_id, span.last_id, bound, *parameters, most, _array(matches))
            return cast("list[list[int]]", await self._answer(POSTINGS.format(condition), given))
        patterns = _array([_like_pattern(word) for word in words])
        sql = LIKE_POSTINGS.format(episodes(scope, self._indexed), condition)
        return cast("list[list[int]]", await self._answer(sql, (*parameters, bound, most, patterns)))

    async def _page(self, source: str, parameters: Sequence[object]) -> list[Episode]:
        answer = await self._answer(PAGE.format(source), parameters)
        if answer is None:
            msg = f"{self._where.path}: a page weighs over {MOST_WEIGHT} characters; ask for a smaller one"
            raise RejectedError(msg)
        return [decode_episode(row) for row in cast("list[list[object]]", answer)]

    async def _episodes(self, sql: str, parameters: Sequence[object]) -> list[Episode]:
        return [decode_episode(row) for row in cast("list[list[object]]", await self._answer(sql, parameters))]

    async def _answer(self, sql: str, parameters: Sequence[object]) -> object:
        with translated(self._where.path):
            [(answer,)] = await self.db.execute_fetchall(sql, parameters)
        return orjson.loads(answer) if isinstance(answer, str) else answer


def _turn(row: _TurnRow) -> Turn:
    number, author, asks = row
    return Turn(number, author, bool(asks))


def _array(values: Sequence[object]) -> str:
    return orjson.dumps(values).decode()


def _like_pattern(word: str) -> str:
    text = spelled(word.removesuffix(ANY_ENDING))
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
