"""Everything that can be asked of a log. Each call borrows a reader, and holds none while its caller works."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime

import anyio

from episodic import recall
from episodic.codec import to_micros
from episodic.context import Context
from episodic.errors import FilterError, NotFoundError, QueryError, shown
from episodic.found import SearchResult
from episodic.model import OUTCOMES, AgentSummary, Episode, Filter, Session, check_comparable, is_outcome
from episodic.paging import pages
from episodic.ports import Cursor, Readers, Scope

__all__ = ["Reading", "scope_of"]

# How long `follow` sleeps before it looks for what another process wrote; this process wakes it at once.
POLL_SECONDS = 0.1

# In seconds: longer than there are dates, and still a number of microseconds that an engine can compare.
LONGEST_AGE = 10**12

SESSIONS_PAGE = 512


class Reading(ABC):
    """The reading half of a log."""

    @abstractmethod
    def _reading(self) -> Readers:
        """Return the pool; raises when the log is not open here."""

    @abstractmethod
    def _news(self) -> anyio.Event:
        """Return an event that the next commit of this process sets."""

    async def replay(
        self,
        session_id: str,
        *,
        agent_id: str | None = None,
        where: Filter | None = None,
        after: Episode | None = None,
    ) -> AsyncIterator[Episode]:
        """Go through a session, oldest first, in the order of (timestamp, id).

        Pages are fetched as they are needed, and nothing is held while the caller works.

        Args:
            session_id: the session, of all agents that share it.
            agent_id: this agent's part only.
            where: narrows it.
            after: go on behind this episode, which may be gone since.

        Raises:
            FilterError: an argument cannot be compared.
            StorageError: the database failed.
        """
        check_comparable("session_id", session_id)
        if where is not None and _filter(where).session_id not in {None, session_id}:
            msg = f"the filter's session {where.session_id!r} is not the one to replay, {session_id!r}; leave it out"
            raise FilterError(msg)
        scope = scope_of(agent_id, replace(where or Filter(), session_id=session_id))

        async def fetch(cursor: Cursor | None, limit: int) -> list[Episode]:
            async with self._reading().borrow() as reader:
                return await reader.replay(scope, limit=limit, after=cursor)

        async for page in pages(fetch, _position("after", after), _cursor):
            for episode in page:
                yield episode

    async def scan(
        self, *, agent_id: str | None = None, where: Filter | None = None, after: int = 0
    ) -> AsyncIterator[Episode]:
        """Go through everything that the log holds now, in the order of ids; ends at what is the newest at the start.

        Args:
            agent_id: this agent only.
            where: narrows it.
            after: start behind this id.

        Raises:
            FilterError: an argument cannot be compared.
            StorageError: the database failed.
        """
        scope = scope_of(agent_id, where)
        upto = await self.newest_id()

        async def fetch(cursor: int, limit: int) -> list[Episode]:
            async with self._reading().borrow() as reader:
                return await reader.scan(scope, limit=limit, after=cursor, upto=upto)

        async for page in pages(fetch, _whole("after", after, least=0), _id):
            for episode in page:
                yield episode

    async def follow(
        self, after: int | None = None, *, agent_id: str | None = None, where: Filter | None = None
    ) -> AsyncIterator[Episode]:
        """Follow the log as it grows, in the order of ids, without gaps; sees what other processes write, too.

        Args:
            after: start behind this id; 0 starts with the first episode, None with the next to come.
            agent_id: this agent only.
            where: narrows it.

        Raises:
            FilterError: an argument cannot be compared.
            ClosedError: the log was closed meanwhile.
            StorageError: the database failed.
        """
        scope = scope_of(agent_id, where)
        position = None if after is None else _whole("after", after, least=0)
        while True:
            news = self._news()
            newest = await self.newest_id()
            if position is None:
                position = newest
            if newest > position:
                async for episode in self.scan(agent_id=scope.agent_id, where=where, after=position):
                    position = episode.id
                    yield episode
                position = max(position, newest)
            with anyio.move_on_after(POLL_SECONDS):
                await news.wait()

    async def recent(
        self,
        agent_id: str,
        limit: int = 20,
        min_age_seconds: float = 0,
        where: Filter | None = None,
        *,
        before: Episode | None = None,
    ) -> list[Episode]:
        """Return the newest episodes, newest first; archived ones only when the filter asks for them.

        Args:
            agent_id: the agent.
            limit: episodes at most.
            min_age_seconds: leave out what happened less than this many seconds ago.
            where: narrows it; its `archived` is False here unless it is given.
            before: go on behind this episode, which may be gone since.

        Raises:
            FilterError: an argument cannot be compared.
            StorageError: the database failed.
        """
        scope = _agent_scope(agent_id, _hot(where))
        if not isinstance(min_age_seconds, int | float) or not 0 <= min_age_seconds < float("inf"):
            msg = f"min_age_seconds must be a number of at least 0, not {min_age_seconds!r}"
            raise FilterError(msg)
        age = int(min(min_age_seconds, LONGEST_AGE) * 1_000_000)
        latest = time.time_ns() // 1000 - age if age else None
        cursor = _position("before", before)
        async with self._reading().borrow() as reader:
            return await reader.recent(scope, limit=_whole("limit", limit), latest=latest, before=cursor)

    async def search(self, agent_id: str, query: str, limit: int = 10, where: Filter | None = None) -> SearchResult:
        """Find the episodes that answer a query best; any text is a valid query.

        Words are matched by their stem and ranked by rarity; an order number, an address or any identifier is found
        as a whole and by its parts.

        Args:
            agent_id: the agent.
            query: any text.
            limit: hits at most.
            where: narrows it.

        Raises:
            QueryError: the query is no text.
            FilterError: an argument cannot be compared.
            StorageError: the database failed.
        """
        scope = _agent_scope(agent_id, where)
        text = _query(query)
        async with self._reading().borrow(snapshot=True) as reader:
            return await recall.search(reader, scope, text, _whole("limit", limit))

    async def recall_context(
        self, agent_id: str, message: str, limit: int = 5, where: Filter | None = None, *, prefer: str | None = None
    ) -> Context:
        """Choose what a model should know before it answers a message.

        Relevance leads and recency adds a little; what both agree on comes first; the same text in the same role
        takes one place; and the message itself, if it was just recorded and not answered yet, is left out.

        Args:
            agent_id: the agent.
            message: what was said; any text.
            limit: episodes at most.
            where: narrows it, usually `Filter(user_id=...)`.
            prefer: an outcome; the relevant episodes that had it, or whose sessions had it, count half as much again
                and come first.

        Raises:
            QueryError: the message is no text.
            FilterError: an argument cannot be compared.
            StorageError: the database failed.
        """
        scope = _agent_scope(agent_id, where)
        text = _query(message)
        if prefer is not None and not is_outcome(prefer):
            msg = f"prefer must be one of {', '.join(sorted(OUTCOMES))} or None, not {shown(prefer)}"
            raise FilterError(msg)
        async with self._reading().borrow(snapshot=True) as reader:
            return await recall.recall_context(reader, scope, text, _whole("limit", limit), prefer)

    async def sessions(self, agent_id: str, where: Filter | None = None, limit: int = 20) -> list[Session]:
        """Return the agent's sessions that have an episode in scope, by the newest such episode, newest first.

        Args:
            agent_id: the agent.
            where: narrows it, by `Filter(user_id=...)` to a user's.
            limit: sessions at most.

        Raises:
            FilterError: an argument cannot be compared.
            StorageError: the database failed.
        """
        scope = _agent_scope(agent_id, where)
        async with self._reading().borrow() as reader:
            found = await reader.sessions(scope, limit=_whole("limit", limit))
        if where is None or where.user_id is None:
            return found
        # A session may have been about somebody else first, who is not the one asked about.
        return [replace(session, user_id=where.user_id) for session in found]

    async def resolved(
        self, *, agent_id: str | None = None, where: Filter | None = None, upto: int | None = None
    ) -> AsyncIterator[Session]:
        """Go through the sessions that are resolved and have an episode in scope, by agent id and session id.

        Args:
            agent_id: this agent's only.
            where: narrows it.
            upto: that episode's id is not over this one; None takes the newest.

        Raises:
            FilterError: an argument cannot be compared.
            StorageError: the database failed.
        """
        scope = scope_of(agent_id, where)
        bound = await self.newest_id() if upto is None else _whole("upto", upto, least=0)
        after = None
        while True:
            async with self._reading().borrow() as reader:
                page = await reader.resolved(scope, limit=SESSIONS_PAGE, upto=bound, after=after)
            for session in page:
                yield session
            if len(page) < SESSIONS_PAGE:
                return
            after = (page[-1].agent_id, page[-1].session_id)

    async def newest_id(self) -> int:
        """Return the id of the newest episode, 0 in an empty log; `follow` from it misses nothing."""
        async with self._reading().borrow() as reader:
            return await reader.newest_id()

    async def agents(self) -> list[AgentSummary]:
        """Return every agent of the log, the one with most episodes first."""
        async with self._reading().borrow() as reader:
            return await reader.agents()

    async def get(self, episode_id: int, *, where: Filter | None = None) -> Episode:
        """Return one episode.

        Args:
            episode_id: its id.
            where: what must hold for it.

        Raises:
            NotFoundError: there is none, or not within `where`.
            StorageError: the database failed.
        """
        scope = scope_of(None, where)
        async with self._reading().borrow() as reader:
            found = await reader.fetch(scope, [_whole("episode_id", episode_id, least=0)])
        if not found:
            msg = f"episode {episode_id} is not in the log, or not in the scope asked for; check the id"
            raise NotFoundError(msg)
        return found[0]

    async def around(
        self, episode_id: int, before: int = 2, after: int = 2, *, where: Filter | None = None
    ) -> list[Episode]:
        """Return an episode with the turns before and after it in its session, oldest first.

        Args:
            episode_id: its id.
            before: turns before it, at most.
            after: turns after it, at most.
            where: narrows it.

        Raises:
            NotFoundError: there is no such episode, or not within `where`.
            StorageError: the database failed.
        """
        _whole("before", before, least=0)
        _whole("after", after, least=0)
        center = await self.get(episode_id, where=where)
        scope = scope_of(None, replace(where or Filter(), session_id=center.session_id))
        async with self._reading().borrow(snapshot=True) as reader:
            earlier, later = await reader.around(scope, center, before=before, after=after)
        return [*earlier, center, *later]


def _agent_scope(agent_id: object, where: Filter | None) -> Scope:
    """Build the scope of a call that is about one agent: None must not come to mean all of them."""
    if not isinstance(agent_id, str):
        msg = f"agent_id must be text, not {type(agent_id).__name__}"
        raise FilterError(msg)
    return scope_of(agent_id, where)


def scope_of(agent_id: str | None, where: Filter | None) -> Scope:
    """Build a scope of what a caller gave.

    Raises:
        FilterError: it cannot be compared.
    """
    if agent_id is not None:
        check_comparable("agent_id", agent_id)
    return Scope(agent_id, None if where is None else _filter(where))


def _hot(where: Filter | None) -> Filter:
    """Leave out what is archived, unless the filter says something of that."""
    where = Filter() if where is None else _filter(where)
    return replace(where, archived=False) if where.archived is None else where


def _filter(where: object) -> Filter:
    if not isinstance(where, Filter):
        msg = f"where must be a Filter, not {type(where).__name__}"
        raise FilterError(msg)
    return where


def _query(text: object) -> str:
    if not isinstance(text, str):
        msg = f"a query must be text, not {type(text).__name__}"
        raise QueryError(msg)
    return text


def _whole(name: str, value: object, *, least: int = 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        msg = f"{name} must be a whole number of at least {least}, not {shown(value)}"
        raise FilterError(msg)
    return value


def _position(name: str, episode: object) -> Cursor | None:
    if episode is None:
        return None
    if not isinstance(episode, Episode):
        msg = f"{name} must be an Episode, not {type(episode).__name__}"
        raise FilterError(msg)
    if not isinstance(episode.timestamp, datetime) or episode.timestamp.utcoffset() is None:
        msg = f"{name} has no time with a zone, but {shown(episode.timestamp)}"
        raise FilterError(msg)
    return Cursor(to_micros(episode.timestamp), _whole(f"the id of {name}", episode.id, least=0))


def _cursor(episode: Episode) -> Cursor:
    return Cursor(to_micros(episode.timestamp), episode.id)


def _id(episode: Episode) -> int:
    return episode.id
