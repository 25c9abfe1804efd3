"""The records of the log: what is written, what comes back, and what narrows a read. Values only; no I/O."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias, TypeGuard, get_args

from episodic.errors import DraftError, FilterError, shown

__all__ = [
    "JSON",
    "MAX_INTEGER",
    "OUTCOMES",
    "ROLES",
    "AgentSummary",
    "Draft",
    "Episode",
    "Filter",
    "Outcome",
    "Role",
    "Scalar",
    "Session",
    "Stats",
]

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
Scalar: TypeAlias = "bool | int | float | str | None"
Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
Outcome: TypeAlias = Literal["success", "failure", "partial"]

ROLES: frozenset[str] = frozenset(get_args(Role))
OUTCOMES: frozenset[str] = frozenset(get_args(Outcome))

# SQLite compares integers of 64 bits exactly, and reads a decimal of up to 15 digits to one double only.
MAX_INTEGER = 2**63 - 1
EXACT_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Draft:
    """An episode that is not recorded yet, checked when it is made.

    Args:
        agent_id: whose log this belongs to; any text, the empty one too.
        session_id: the conversation; any text.
        role: who speaks: "user", "assistant", "system" or "tool".
        content: what was said; any text without NUL characters, the empty one too.
        user_id: the customer whom this is about.
        author: who spoke, as a person would name them.
        outcome: "success", "failure" or "partial", if it is known already.
        metadata: a JSON object; kept exactly, keys sorted.
        timestamp: when it happened, with a time zone; None takes the time of the call, which never runs backwards.
        event_id: makes a retry safe: unique per agent; the same body again gives the first receipt back.

    Raises:
        DraftError: when a value cannot be recorded; the message names the field and the reason.
    """

    agent_id: str
    session_id: str
    role: str
    content: str
    user_id: str | None = field(default=None, kw_only=True)
    author: str | None = field(default=None, kw_only=True)
    outcome: str | None = field(default=None, kw_only=True)
    metadata: Mapping[str, JSON] | None = field(default=None, kw_only=True, hash=False)
    timestamp: datetime | None = field(default=None, kw_only=True)
    event_id: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check what can be checked without encoding."""
        user_id, author, event_id = self.user_id, self.author, self.event_id
        # Most texts are in order, which one look at all of them together tells; only the others get a closer one each.
        try:
            texts = "".join(
                (
                    self.agent_id,
                    self.session_id,
                    self.role,
                    self.content,
                    "" if user_id is None else user_id,
                    "" if author is None else author,
                    "" if event_id is None else event_id,
                )
            )
            is_storable = "\0" not in texts and (texts.isascii() or bool(texts.encode()))
        except (TypeError, UnicodeEncodeError):
            is_storable = False
        if not is_storable:
            self._check_texts()
        if self.role not in ROLES:
            msg = f"role must be one of {_listed(ROLES)}, not {shown(self.role)}"
            raise DraftError(msg)
        if self.outcome is not None and not is_outcome(self.outcome):
            msg = f"outcome must be one of {_listed(OUTCOMES)} or None, not {shown(self.outcome)}"
            raise DraftError(msg)
        if self.timestamp is not None:
            _check_timestamp(self.timestamp)
        if self.metadata is not None and type(self.metadata) is not dict and not isinstance(self.metadata, Mapping):
            msg = f"metadata must be a mapping, not {type(self.metadata).__name__}"
            raise DraftError(msg)

    def _check_texts(self) -> None:
        for name in ("agent_id", "session_id", "role", "content"):
            _check_text(name, getattr(self, name))
        for name in ("user_id", "author", "event_id"):
            if getattr(self, name) is not None:
                _check_text(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Episode:
    """One thing that happened, as the log holds it.

    Attributes:
        id: position in the log; grows with every commit and is never reused.
        timestamp: when it happened, in UTC, to the microsecond.
        outcome: the episode's own outcome; how its session ended stands in `Session.outcome`.
        archived: whether it was moved to the archive, where search still finds it; what `record` returns says False.
    """

    id: int
    agent_id: str
    session_id: str
    user_id: str | None
    author: str | None
    timestamp: datetime
    role: str
    content: str
    outcome: str | None
    metadata: dict[str, JSON] = field(hash=False)
    event_id: str | None
    archived: bool


@dataclass(frozen=True, slots=True)
class Filter:
    """Narrows a read; every field that is set must hold.

    Args:
        user_id: episodes about this user only.
        session_id: episodes of this session only.
        roles: episodes with one of these roles.
        outcome: the episode's own outcome or, where it has none, its session's.
        since: not before this instant.
        until: before this instant.
        metadata: exact values of top-level keys: text, booleans, None, integers of 64 bits, and floats of up to 15
            digits. True is not 1, 1 is not 1.0, and None is not an absent key.
        archived: True for archived episodes only, False for the others, None for both.

    Raises:
        FilterError: when a value cannot be compared exactly.
    """

    user_id: str | None = None
    session_id: str | None = None
    roles: Collection[str] | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    metadata: Mapping[str, Scalar] | None = field(default=None, hash=False)
    archived: bool | None = None

    def __post_init__(self) -> None:
        """Check each field that is set."""
        for name, text in (("user_id", self.user_id), ("session_id", self.session_id)):
            if text is not None:
                check_comparable(name, text)
        if self.roles is not None:
            _check_roles(self.roles)
        if self.outcome is not None and not is_outcome(self.outcome):
            msg = f"outcome must be one of {_listed(OUTCOMES)} or None, not {shown(self.outcome)}"
            raise FilterError(msg)
        for name, instant in (("since", self.since), ("until", self.until)):
            if instant is not None and not _is_aware(instant):
                msg = f"{name} must be a datetime with a time zone, not {shown(instant)}"
                raise FilterError(msg)
        if self.metadata is not None:
            _check_metadata_filter(self.metadata)
        if self.archived is not None and not isinstance(self.archived, bool):
            msg = f"archived must be True, False or None, not {shown(self.archived)}"
            raise FilterError(msg)


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation with one agent, rolled up as it was written.

    Attributes:
        user_id: the first user whom one of its episodes was about.
        first: time of its earliest episode, in UTC.
        last: time of its latest episode, in UTC.
        episodes: how many episodes it has.
        outcome: how it ended, once `resolve` said so.
    """

    agent_id: str
    session_id: str
    user_id: str | None
    first: datetime
    last: datetime
    episodes: int
    outcome: str | None


@dataclass(frozen=True, slots=True)
class AgentSummary:
    """What the log holds of one agent: how many episodes and sessions, and over which time (UTC)."""

    agent_id: str
    episodes: int
    sessions: int
    first: datetime
    last: datetime


class Stats(NamedTuple):
    """State of an open log at one moment; counters count from `open`.

    Attributes:
        path: the database file.
        mode: "fts", or "like" without FTS5.
        sqlite_version: the version of SQLite underneath.
        recorded: episodes acknowledged.
        batches: transactions committed.
        rejected: calls that the database refused.
        removed: episodes that were taken out of the file, after a retention, an erasure, or what an earlier process
            left of one.
        largest_batch: most episodes in one transaction.
        queued_rows: episodes that wait or are being committed now.
        queued_bytes: their size, encoded.
        waiting: calls that wait for room in the queue.
        in_flight: batches being committed now.
        readers_idle: connections of the pool that are free.
        readers: size of the pool.
        reindexed: episodes that the search index lacked at open and was given.
        file_bytes: size of the database file.
        wal_bytes: size of the write-ahead log beside it.
    """

    path: str
    mode: Literal["fts", "like"]
    sqlite_version: str
    recorded: int
    batches: int
    rejected: int
    removed: int
    largest_batch: int
    queued_rows: int
    queued_bytes: int
    waiting: int
    in_flight: int
    readers_idle: int
    readers: int
    reindexed: int
    file_bytes: int
    wal_bytes: int


def is_outcome(value: object) -> bool:
    """Tell whether a value is the name of an outcome."""
    return isinstance(value, str) and value in OUTCOMES


def check_comparable(name: str, value: object) -> None:
    """Refuse what is no text or holds a NUL character or an unpaired surrogate, which SQLite cannot compare.

    Raises:
        FilterError: naming the value by `name`.
    """
    if not isinstance(value, str):
        msg = f"{name} must be text, not {type(value).__name__}"
        raise FilterError(msg)
    if flaw := text_flaw(value):
        msg = f"{name} {flaw}"
        raise FilterError(msg)


def text_flaw(value: str) -> str | None:
    """Say why a text can be neither stored nor compared, or None when it can."""
    if "\0" in value:
        return f"holds a NUL character at position {value.index(chr(0))}, which SQLite cannot keep in text; remove it"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as exc:
            return f"holds half of a surrogate pair at position {exc.start}, which is no character; remove it"
    return None


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        msg = f"{name} must be text, not {type(value).__name__}"
        raise DraftError(msg)
    if flaw := text_flaw(value):
        msg = f"{name} {flaw}"
        raise DraftError(msg)


def _check_timestamp(instant: object) -> None:
    if type(instant) is datetime and instant.tzinfo is UTC:
        return
    if not _is_aware(instant):
        msg = f"timestamp must be a datetime with a time zone, not {shown(instant)}"
        raise DraftError(msg)
    if not _has_utc_date(instant):
        msg = f"timestamp must lie within the years 1 to 9999 in UTC, not {shown(instant)}"
        raise DraftError(msg)


def _check_roles(roles: object) -> None:
    if isinstance(roles, str) or not isinstance(roles, Collection):
        msg = f"roles must be a collection of roles, not {shown(roles)}"
        raise FilterError(msg)
    for role in roles:
        if not isinstance(role, str) or role not in ROLES:
            msg = f"roles must be among {_listed(ROLES)}, not {shown(role)}"
            raise FilterError(msg)


def _check_metadata_filter(wanted: object) -> None:
    if not isinstance(wanted, Mapping):
        msg = f"metadata must be a mapping of top-level keys to values, not {type(wanted).__name__}"
        raise FilterError(msg)
    for key, value in wanted.items():
        check_comparable("metadata key", key)
        if reason := _inexact(value):
            msg = f"metadata {key!r}: {shown(value)} cannot be compared exactly: {reason}"
            raise FilterError(msg)


def _inexact(value: object) -> str | None:
    match value:
        case None | bool():
            return None
        case str():
            return text_flaw(value)
        case int():
            return None if -MAX_INTEGER - 1 <= value <= MAX_INTEGER else "only integers of 64 bits can"
        case float():
            digits = len(f"{value!r}".partition("e")[0].replace(".", "").strip("-0"))
            exact = math.isfinite(value) and digits <= EXACT_DIGITS
            return None if exact else f"only finite floats of up to {EXACT_DIGITS} digits can"
        case _:
            return "only text, numbers, booleans and None can"


def _is_aware(value: object) -> TypeGuard[datetime]:
    return isinstance(value, datetime) and value.utcoffset() is not None


def _has_utc_date(instant: datetime) -> bool:
    """Tell whether an instant comes back from the log: at either end of the calendar its date in UTC may not exist."""
    try:
        instant.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
