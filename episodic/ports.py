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
    "Extent",
    "Journal",
    "Lookup",
    "Neighbourhood",
    "Reader",
    "Readers",
    "Repeat",
    "Residue",
    "Resolve",
    "Scope",
    "Span",
    "Store",
    "Surroundings",
    "Survey",
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


class Residue(NamedTuple):
    """What a look at every byte has found.

    Attributes:
        looked_at: bytes.
        found: texts that are there and should not be.
        held: texts that are there since episodes which were not erased hold them, too.
    """

    looked_at: int
    found: int
    held: int


class Journal(Protocol):
    """What takes in episodes. Each call is one transaction; two under way may be stored in either order."""

    async def append(self, operations: Sequence[Append]) -> Appended:
        """Store the rows of all operations in one transaction.

        Raises:
            ConflictError: an event id is taken with another body; nothing is stored.
            RejectedError: the engine refused a row; nothing is stored.
            StorageError: the engine failed.
        """

    async def resolve(self, operations: Sequence[Resolve]) -> list[bool]:
        """Set how sessions ended, the last word on each holds; tell for each whether there is such a session."""


class Store(Journal, Protocol):
    """The one writing connection, with what keeps and clears the log beside taking in episodes."""

    async def tidy(self) -> bool:
        """Do a small piece of what keeps reading quick; tell whether there is more to do.

        Raises:
            StorageError: the engine failed.
        """

    async def withdraw(self, ids: Sequence[int]) -> int:
        """Take episodes out of every answer and count at once, to be removed; tell how many that were not out yet."""

    async def remove(self) -> int:
        """Remove a few of the withdrawn episodes, and return how many; 0 when there were none."""

    async def purge(self) -> int:
        """Leave no bytes of removed episodes in any file; no call of the journal may be under way in the store.

        Returns:
            After how many removals that was, for `note_clean`.

        Raises:
            BusyError: a reader or another writer was in the way, for a second or two.
            DiskFullError: there is no room for a second copy of the file.
            RejectedError: this build of the engine cannot do it.
        """

    async def note_clean(self, ended: int) -> None:
        """Note that no file holds bytes of removed episodes, unless more than so many removals have ended."""

    async def residue(self, texts: Sequence[str]) -> Residue:
        """Look for texts in the bytes of every file, apart from what episodes that are still there hold as well."""

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


class Extent(NamedTuple):
    """How much there is in a scope: episodes, and sessions that have one of these."""

    episodes: int
    sessions: int


class Span(NamedTuple):
    """Between which places of the index the episodes of a scope lie; a search stays between them.

    Attributes:
        is_whole: whether every episode in scope that holds a word can be found there; not when the scope has more
            episodes than were looked at, or the search index lacks some.
    """

    first: int
    last: int
    is_whole: bool


class Survey(NamedTuple):
    """What is known of a scope before it is searched.

    Attributes:
        total: episodes of the agent or, if the filter names a user, of the agent about that user.
        span: where they lie.
        frequencies: how many of them hold each word.
    """

    total: int
    span: Span
    frequencies: Sequence[int]


class Lookup(NamedTuple):
    """A word to look up.

    Attributes:
        word: the word.
        frequency: how many episodes hold it, as surveyed.
        beside: only where one of these stands, too; empty for anywhere.
        others: episodes that hold one of these, at most.
    """

    word: str
    frequency: int
    beside: Sequence[str] = ()
    others: int = 0


class Surroundings(NamedTuple):
    """An episode among the turns of its session.

    Attributes:
        session_id: its session.
        before: the turns before it, the nearest first.
        after: the turns after it, the nearest first.
    """

    episode_id: int
    session_id: str
    before: Sequence[int]
    after: Sequence[int]


class Neighbourhood(NamedTuple):
    """What a ranking knows of some episodes and of the turns around them.

    Attributes:
        around: the episodes, each among the turns of its session.
        asking: those of all these turns that end in a question mark.
        authors: who spoke in each turn that has an author.
    """

    around: Sequence[Surroundings]
    asking: frozenset[int]
    authors: Mapping[int, str]


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

    async def due(self, scope: Scope, *, upto: int, limit: int) -> list[int]:
        """Return ids of episodes in scope that are not over `upto`, those of one agent in the order of time."""

    async def extent(self, scope: Scope) -> Extent:
        """Return how much there is in scope."""

    async def is_unclean(self) -> bool:
        """Tell whether bytes of removed episodes may still be in a file."""

    async def fetch(self, scope: Scope, ids: Sequence[int]) -> list[Episode]:
        """Return those of the episodes that are in scope, in the order of `ids`."""

    async def around(
        self, scope: Scope, center: Episode, *, before: int, after: int
    ) -> tuple[list[Episode], list[Episode]]:
        """Return the turns before an episode in scope and those after it, each oldest first."""

    async def surroundings(self, scope: Scope, ids: Sequence[int], *, reach: int) -> Neighbourhood:
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

    async def survey(self, scope: Scope, words: Sequence[str], *, near: int, counted: int) -> Survey:
        """Look at a scope, and count how many of its episodes hold each word.

        Args:
            scope: the agent and the filter.
            words: folded words.
            near: a narrow scope lies where its newest `near` episodes do.
            counted: count each word up to here. With the index the agent and the filter's user narrow the count, and
                the span; without it the whole filter does.
        """

    async def postings(
        self, scope: Scope, lookups: Sequence[Lookup], span: Span, *, most: int, bound: int
    ) -> list[list[int]]:
        """Return for each word the newest episodes in scope that hold it, newest first.

        Args:
            scope: the agent and the whole filter.
            lookups: the words.
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
