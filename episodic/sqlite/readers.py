"""The questions that a reading connection answers.

Every answer is one row of one statement: a JSON text that holds the page. Fetching row by row would give up the GIL
and win it back for each row, which beside a busy event loop takes a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import orjson

from episodic.codec import decode_episode, decode_session, from_micros, to_micros
from episodic.errors import RejectedError
from episodic.model import AgentSummary, Episode, Filter, Session
from episodic.ports import Cursor, Extent, Scope
from episodic.sqlite.connect import undamaged
from episodic.sqlite.filters import conditions, episodes
from episodic.sqlite.order import newest_first, oldest_first
from episodic.sqlite.searching import SearchingReader

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
# Agent by agent, so that each has the index of its user or of its time.
OF_EACH_AGENT = "agents AS a CROSS JOIN {} WHERE e.agent_id = a.agent_id AND {}"
DUE = f"SELECT json_group_array(id) FROM (SELECT e.id FROM {OF_EACH_AGENT} AND e.id <= ? LIMIT ?)"  # noqa: S608 - constants only
EXTENT = f"""
SELECT json_array(coalesce(sum(n), 0), count(*))
FROM (SELECT count(*) AS n FROM {OF_EACH_AGENT} GROUP BY e.agent_id, e.session_id)
"""  # noqa: S608 - constants only
UNCLEAN = "SELECT unclean FROM removal_state"

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
# Where the newest episodes are of so few sessions, reading all of the agent's costs less than going on.
SESSIONS_OF_AGENT = """
SELECT json_group_array(json_array(agent_id, session_id, user_id, first, last, episodes, outcome))
FROM (SELECT * FROM sessions WHERE agent_id = ? ORDER BY last DESC, session_id LIMIT ?)
"""
COUNT_SESSIONS = "SELECT count(*) FROM sessions WHERE agent_id = ?"
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
# A session is about 20 turns; the first look covers the usual interleaving, and each further one far more.
FIRST_WINDOW = 1_000
WINDOW_GROWTH = 10


class SqliteReader(SearchingReader):
    """A `ports.Reader` over one connection."""

    async def recent(
        self, scope: Scope, *, limit: int, latest: int | None = None, before: Cursor | None = None
    ) -> list[Episode]:
        """Return the newest episodes; see `ports.Reader.recent`."""
        source, parameters = newest_first(scope, self._indexes, limit=limit, latest=latest, before=before)
        return await self._episodes(LIST.format(source), (*parameters, limit))

    async def replay(self, scope: Scope, *, limit: int, after: Cursor | None = None) -> list[Episode]:
        """Return the oldest episodes after a cursor; see `ports.Reader.replay`."""
        source, parameters = oldest_first(scope, self._indexes, limit=limit, after=after)
        return await self._page(source, (*parameters, limit))

    async def scan(self, scope: Scope, *, limit: int, after: int, upto: int) -> list[Episode]:
        """Return episodes by id; see `ports.Reader.scan`."""
        condition, parameters = conditions(scope, self._indexes)
        return await self._page(BY_ID.format(condition), (after, upto, *parameters, limit))

    async def newest_id(self) -> int:
        """Return the id of the newest episode, 0 in an empty log."""
        return cast("int", await self._answer(NEWEST, ()))

    async def due(self, scope: Scope, *, upto: int, limit: int) -> list[int]:
        """Return ids of episodes in scope; see `ports.Reader.due`."""
        source, condition, parameters = self._of_each_agent(scope)
        return cast("list[int]", await self._answer(DUE.format(source, condition), (*parameters, upto, limit)))

    async def extent(self, scope: Scope) -> Extent:
        """Return how much there is in scope."""
        source, condition, parameters = self._of_each_agent(scope)
        return Extent(*cast("list[int]", await self._answer(EXTENT.format(source, condition), parameters)))

    async def is_unclean(self) -> bool:
        """Tell whether bytes of removed episodes may still be in a file."""
        return bool(await self._answer(UNCLEAN, ()))

    async def fetch(self, scope: Scope, ids: Sequence[int]) -> list[Episode]:
        """Return those of the episodes that are in scope, in the order of `ids`."""
        condition, parameters = conditions(scope, self._indexes)
        return await self._episodes(FETCH.format(condition), (orjson.dumps(ids).decode(), *parameters))

    async def around(
        self, scope: Scope, center: Episode, *, before: int, after: int
    ) -> tuple[list[Episode], list[Episode]]:
        """Return the turns before and after an episode; see `ports.Reader.around`."""
        cursor = Cursor(to_micros(center.timestamp), center.id)
        earlier = await self.recent(scope, limit=before, before=cursor)
        source, parameters = oldest_first(scope, self._indexes, limit=after, after=cursor)
        later = await self._episodes(LIST.format(source), (*parameters, after))
        return earlier[::-1], later

    async def sessions(self, scope: Scope, *, limit: int) -> list[Session]:
        """Return the sessions with an episode in scope; see `ports.Reader.sessions`."""
        condition, parameters = conditions(scope, self._indexes)
        sql = SESSIONS.format(episodes(scope, self._indexes), condition)
        window = max(FIRST_WINDOW, limit)
        while True:
            answer = await self._answer(sql, (*parameters, window, limit))
            seen, rows = cast("tuple[int, list[list[object]]]", answer)
            if seen < window or len(rows) >= limit:
                break
            if scope.where in {None, Filter()}:
                rows = cast("list[list[object]]", await self._answer(SESSIONS_OF_AGENT, (scope.agent_id, limit)))
                break
            if len(rows) == await self._answer(COUNT_SESSIONS, (scope.agent_id,)):
                break
            window *= WINDOW_GROWTH
        with undamaged(self._where.path):
            return [decode_session(row) for row in rows]

    async def resolved(
        self, scope: Scope, *, limit: int, upto: int, after: tuple[str, str] | None = None
    ) -> list[Session]:
        """Return the sessions whose outcome is known; see `ports.Reader.resolved`."""
        condition, parameters = conditions(scope, self._indexes)
        behind = "true" if after is None else "(s.agent_id, s.session_id) > (?, ?)"
        given = (*(after or ()), upto, *parameters, limit)
        rows = cast("list[list[object]]", await self._answer(RESOLVED.format(behind, condition), given))
        with undamaged(self._where.path):
            return [decode_session(row) for row in rows]

    async def agents(self) -> list[AgentSummary]:
        """Return every agent, the one with most episodes first."""
        rows = cast("list[tuple[str, int, int, int, int]]", await self._answer(AGENTS, ()))
        with undamaged(self._where.path):
            return [AgentSummary(*row[:3], from_micros(row[3]), from_micros(row[4])) for row in rows]

    def _of_each_agent(self, scope: Scope) -> tuple[str, str, tuple[object, ...]]:
        """Return the table with its index, the condition and its parameters of a scope that may be of all agents."""
        condition, parameters = conditions(scope, self._indexes)
        return episodes(Scope(scope.agent_id or "", scope.where), self._indexes), condition, parameters

    async def _page(self, source: str, parameters: Sequence[object]) -> list[Episode]:
        answer = await self._answer(PAGE.format(source), parameters)
        if answer is None:
            msg = f"{self._where.path}: a page weighs over {MOST_WEIGHT} characters; ask for a smaller one"
            raise RejectedError(msg)
        return self._decoded(answer)

    async def _episodes(self, sql: str, parameters: Sequence[object]) -> list[Episode]:
        return self._decoded(await self._answer(sql, parameters))

    def _decoded(self, rows: object) -> list[Episode]:
        with undamaged(self._where.path):
            return [decode_episode(row) for row in cast("list[list[object]]", rows)]
