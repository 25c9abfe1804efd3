"""How a log is opened: one frozen record, checked when it is made."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal, get_args

from episodic.errors import SettingsError, shown

__all__ = ["Durability", "Settings"]

Durability = Literal["normal", "full"]

MEBIBYTE = 2**20

# SQLite counts its patience in milliseconds of 31 bits; a longer one would wrap around to none at all.
MOST_SECONDS = 2_000_000


def _default_readers() -> int:
    return max(2, min(8, os.cpu_count() or 2))


@dataclass(frozen=True, slots=True)
class Settings:
    """How a log behaves. The defaults suit a bot's backend; most deployments change none.

    Args:
        durability: "normal" survives the process being killed; "full" also syncs each commit to the disk, and
            survives a power cut.
        readers: connections in the reading pool; 2 to 8 by default, one per CPU.
        queue_rows: episodes that may wait for their commit before `record` waits for room.
        queue_bytes: the same bound in bytes of encoded episodes.
        submit_timeout: seconds that a call waits for room in the queue before QueueFullError.
        batch_rows: most episodes in one transaction (one call of `record_many` is never split).
        linger: seconds that a batch which is not full waits for more; 0 commits whatever is ready.
        busy_timeout: seconds to wait for another process that holds the database before BusyError.
        hot_cap: each agent's newest so many episodes stay hot, and what is beyond is archived with the commit that
            brings newer ones: `recent` leaves it out, everything else finds it and says so. None archives nothing.
        indexed_metadata: top-level metadata keys that get an index of their own, for filters on rare values.

    Raises:
        SettingsError: when a value cannot work.
    """

    durability: Durability = "normal"
    readers: int = field(default_factory=_default_readers)
    queue_rows: int = 20_000
    queue_bytes: int = 64 * MEBIBYTE
    submit_timeout: float = 30.0
    batch_rows: int = 2_000
    linger: float = 0.0
    busy_timeout: float = 15.0
    hot_cap: int | None = None
    indexed_metadata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check each value."""
        if self.durability not in get_args(Durability):
            msg = f'durability must be "normal" or "full", not {self.durability!r}'
            raise SettingsError(msg)
        for name in ("readers", "queue_rows", "queue_bytes", "batch_rows", "hot_cap"):
            value = getattr(self, name)
            if name == "hot_cap" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                msg = f"{name} must be a whole number of at least 1, not {shown(value)}"
                raise SettingsError(msg)
        for name in ("submit_timeout", "linger", "busy_timeout"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= MOST_SECONDS:
                msg = f"{name} must be a number of seconds from 0 to {MOST_SECONDS:,} (23 days), not {shown(value)}"
                raise SettingsError(msg)
        _check_keys(self.indexed_metadata)


def _check_keys(keys: object) -> None:
    if not isinstance(keys, tuple):
        msg = f"indexed_metadata must be a tuple of keys, not {keys!r}"
        raise SettingsError(msg)
    for key in keys:
        # The key stands inside the definition of an index, where SQLite allows no parameter.
        if not isinstance(key, str) or not key or not key.isprintable() or set(key) & set("\"\\'"):
            msg = f"indexed_metadata: {key!r} cannot be indexed; use a key of printable characters without quotes"
            raise SettingsError(msg)
