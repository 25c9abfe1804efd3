"""What a storage engine must do. Everything above knows an engine only by these protocols.

An engine never ranks, formats or retries; it stores whole calls and answers questions about one snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, NamedTuple, Protocol

from episodic.model import AgentSummary, Episode, Filter, Session

__all__ = [
    "Append",
    "Appended",
    "Cursor",
    "Reader",
    "Readers",
    "Repeat",
    "Resolve",
    "Scope",
    "Span",
    "Store",
    "Surroundings",
    "Turn",
]


class Append(NamedTuple):
    """The episodes of one call, stored together or not at all.

    Attributes:
        rows: encoded by `codec.encode_row`.
        size: their length in bytes.
        clock: the time that the log gave them, in microseconds, or 0 when the caller gave every time.
        has_events: whether one of them carries an event id.
    """

    rows: Sequence[bytes]
    size: int
    clock: int
    has_events: bool


class Resolve(NamedTuple):
    """How a session ended."""

    agent_id: str
    session_id: str
    outcome: str | None


class Repeat(NamedTuple):
    """An episode that was in the log already, under the same event id and with the same body."""

    episode_id: int
    micros: int


class Appended(NamedTuple):
    """What became of appended rows: row i is episode `first_id + i`, unless `repeats` says that it was there before.

    Attributes:
        clock: the latest time that the log has given, by any process, in microseconds.
    """

    first_id: int
    repeats: Mapping[int, Repeat]
    clock: int


class Store(Protocol):
    """The one writing connection. Each call is one transaction, and they are stored in the order of the calls."""

    async def append(self, operations: Sequence[Append]) -> Appended:
        """Store the rows of all operations in one transaction.

        Raises:
            ConflictError: an event id is taken with another body; nothing is stored.
            RejectedError: the engine refused a row; nothing is stored.
            StorageError: the engine failed.
        """

    async def resolve(self, operations: Sequence[Resolve]) -> list[bool]:
        """Set how sessions ended, the last word on each holds; tell for each whether there is such a session."""

    async def aclose(self) -> None:
        """Close the connection."""


class Scope(NamedTuple):
    """Which episodes a question is about."""

    agent_id: str | None
    where: Filter | None


class Cursor(NamedTuple):
    """A position in the order of (timestamp, id)."""

    micros: int
    episode_id: int


class Span(NamedTuple):
    """Between which ids the episodes of a scope lie, as far as an index of the log tells; a search stays between them.

    Attributes:
        is_whole: whether every episode in scope that holds a word can be found there; not when the scope has more
            episodes than were looked at, or the search index lacks some.
    """

    first_id: int
    last_id: int
    is_whole: bool


class Turn(NamedTuple):
    """What a ranking knows of one episode.

    Attributes:
        author: who spoke.
        asks: whether it ends in a question mark.
    """

    episode_id: int
    author: str | None
    asks: bool


class Surroundings(NamedTuple):
    """An episode among the turns of its session.

    Attributes:
        turn: the episode itself.
        session_id: its session.
        before: the turns before it, the nearest first.
        after: the turns after it, the nearest first.
    """

    turn: Turn
    session_id: str
    before: Sequence[Turn]
    after: Sequence[Turn]


class Reader(Protocol):
    """One borrowed connection: questions about the log."""

    @property
    def mode(self) -> Literal["fts", "like"]:
        """How words are found: by the full-text index, or by comparing text."""

    async def recent(
        self, scope: Scope, *, limit: int, latest: int | None = None, before: Cursor | None = None
    ) -> list[Episode]:
        """Return the newest episodes, newest first: not after `latest` (microseconds), and before a cursor."""

    async def replay(self, scope: Scope, *, limit: int, after: Cursor | None = None) -> list[Episode]:
        """Return the oldest episodes after a cursor, oldest first."""

    async def scan(self, scope: Scope, *, limit: int, after: int, upto: int) -> list[Episode]:
        """Return episodes whose id is over `after` and not over `upto`, by id."""

    async def newest_id(self) -> int:
        """Return the id of the newest episode, 0 in an empty log."""

    async def fetch(self, scope: Scope, ids: Sequence[int]) -> list[Episode]:
        """Return those of the episodes that are in scope, in the order of `ids`."""

    async def around(
        self, scope: Scope, center: Episode, *, before: int, after: int
    ) -> tuple[list[Episode], list[Episode]]:
        """Return the turns before an episode in scope and those after it, each oldest first."""

    async def surroundings(self, scope: Scope, ids: Sequence[int], *, reach: int) -> list[Surroundings]:
        """Return episodes in scope, each with up to `reach` turns in scope on either side, in the order of `ids`.

        One that is not in the log any more is left out.
        """

    async def sessions(self, scope: Scope, *, limit: int) -> list[Session]:
        """Return the sessions with an episode in scope, by the newest such episode, newest first."""

    async def resolved(
        self, scope: Scope, *, limit: int, upto: int, after: tuple[str, str] | None = None
    ) -> list[Session]:
        """Return the sessions whose outcome is known, by agent id and session id, after a pair of these.

        Args:
            scope: sessions with an episode in it only.
            limit: sessions at most.
            upto: that episode's id is not over this one.
            after: agent id and session id to go on behind.
        """

    async def agents(self) -> list[AgentSummary]:
        """Return every agent, the one with most episodes first."""

    async def count(self, scope: Scope) -> int:
        """Return how many episodes the agent has or, if the filter names a user, the agent has about that user."""

    async def span(self, scope: Scope, *, bound: int) -> Span:
        """Return where the episodes in scope lie; of a scope of more than `bound`, where the newest begin."""

    async def frequencies(self, scope: Scope, words: Sequence[str], span: Span, *, bound: int) -> list[int]:
        """Return how many episodes hold each word, counted up to `bound`.

        With the index: of the agent and the filter's user, inside the span. Without it: in the whole scope.
        """

    async def postings(
        self, scope: Scope, words: Sequence[str], frequencies: Sequence[int], span: Span, *, most: int, bound: int
    ) -> list[list[int]]:
        """Return for each word the newest episodes in scope that hold it, newest first.

        Args:
            scope: the agent and the whole filter.
            words: texts; what is no letter or digit in one separates the parts of a phrase.
            frequencies: what `frequencies` said of each.
            span: of the scope.
            most: ids for each word.
            bound: episodes that hold a word and are looked at, the newest first.
        """


class Readers(Protocol):
    """The pool of reading connections."""

    @property
    def size(self) -> int:
        """How many connections there are."""

    @property
    def idle(self) -> int:
        """How many of them are free."""

    @property
    def lent(self) -> int:
        """How often one was lent."""

    def borrow(self, *, snapshot: bool = False) -> AbstractAsyncContextManager[Reader]:
        """Lend a connection; with `snapshot` all its answers are of one moment."""

    async def aclose(self) -> None:
        """Close all connections once they are given back."""
