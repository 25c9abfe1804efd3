"""What a log tells of its own work as it happens. Values only; no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["BatchCommitted", "Checkpointed", "Event", "IndexHealed", "OnEvent", "QueueFull", "SlowBatch", "WalGrown"]


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """A batch is in the log.

    Attributes:
        rows: its episodes.
        seconds: from when it was handed to the database until it can be acknowledged; the batch before it may take part
            of that, and a checkpoint that it has caused.
        queued_rows: episodes that wait or are being committed after it.
    """

    rows: int
    seconds: float
    queued_rows: int


@dataclass(frozen=True, slots=True)
class SlowBatch:
    """A batch took a second or more; comes beside its BatchCommitted, and as a warning in Python's logging.

    Attributes:
        rows: its episodes.
        seconds: as in BatchCommitted.
    """

    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class QueueFull:
    """A call found no room in the queue and waits; comes once for all that wait behind it.

    Attributes:
        queued_rows: episodes that wait or are being committed.
        queued_bytes: their size, encoded.
    """

    queued_rows: int
    queued_bytes: int


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """The write-ahead log was folded into the file.

    Attributes:
        wal_bytes: its size before.
        seconds: how long that took; a batch that was handed over before it may take part of that.
    """

    wal_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class WalGrown:
    """The write-ahead log is over its bound and cannot be folded in: mostly a reader keeps to an earlier state.

    A backup, a tool that was paused, a transaction that was left open. Comes again each time it has grown by a further
    piece, and the first time as a warning in Python's logging.

    Attributes:
        wal_bytes: its size.
    """

    wal_bytes: int


@dataclass(frozen=True, slots=True)
class IndexHealed:
    """The search index differed from the episodes when the log was opened, and was put right.

    Attributes:
        episodes: how many were indexed.
    """

    episodes: int


Event: TypeAlias = BatchCommitted | SlowBatch | QueueFull | Checkpointed | WalGrown | IndexHealed

OnEvent: TypeAlias = Callable[[Event], None]
"""Called in the log's event loop; it must return at once, and what it raises is logged."""
