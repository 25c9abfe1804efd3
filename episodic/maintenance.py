"""Care for a log as a file: copies that can be trusted, an examination, repair, and giving back free space.

All of it works on a path, beside whoever has the log open, and runs in a thread of its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from anyio import to_thread

from episodic.health import Finding
from episodic.sqlite import copying
from episodic.sqlite.connect import Place, leave_nothing, place
from episodic.sqlite.copying import BUSY_TIMEOUT, Compacted, OnPages, copy_log
from episodic.sqlite.examining import examine, rebuild_index

__all__ = ["Compacted", "back_up", "diagnose", "repair", "restore", "vacuum"]


async def back_up(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    on_pages: OnPages | None = None,
) -> int:
    """Copy a log as it is at this moment into one file, also while bots write to it.

    The copy appears under its name when it is complete, on the disk, and checked: SQLite's integrity check, FTS5's
    strict check of the index, and as many episodes as the log has.

    Args:
        path: the log.
        target: where to; nothing may be there.
        on_pages: called after each step with the pages that are copied and the pages that there are.

    Returns:
        How many episodes the copy holds.

    Raises:
        OpenError: there is something at the target already, or one of the two cannot be opened.
        NotOurFileError: the source is no log.
        CorruptError: the log is damaged; there is no copy.
        DiskFullError: there is no room for it.
    """
    return await _copied(path, Path(target), on_pages)


async def restore(
    backup: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    on_pages: OnPages | None = None,
) -> int:
    """Make a log of a backup, which stays; as `back_up` in the other direction, with the same checks.

    Args:
        backup: what `back_up` has made.
        path: where the log is to be; nothing may be there.
        on_pages: called after each step with the pages that are copied and the pages that there are.

    Returns:
        How many episodes the log holds.

    Raises:
        OpenError: there is something at the path already, or one of the two cannot be opened.
        NotOurFileError: the backup is no log.
        CorruptError: the backup is damaged; nothing was made.
        DiskFullError: there is no room for it.
    """
    return await _copied(backup, Path(path), on_pages)


async def vacuum(path: str | os.PathLike[str], *, busy_timeout: float = BUSY_TIMEOUT) -> Compacted:
    """Give free space back to the disk, and put the search index into one piece. Writers wait meanwhile.

    Args:
        path: the log.
        busy_timeout: seconds to wait for others.

    Raises:
        BusyError: others held it for too long; nothing was changed.
        DiskFullError: there is no room for a second copy of it, which this needs for a while; nothing was changed.
    """
    return await to_thread.run_sync(copying.vacuum, _present(path), busy_timeout)


async def diagnose(path: str | os.PathLike[str], *, deep: bool = False) -> list[Finding]:
    """Look at all that can be seen of a log from outside, and change nothing.

    Args:
        path: the log.
        deep: also compare the search index with the episodes word by word. Writers wait meanwhile, about 5 s for each
            million episodes.

    Raises:
        OpenError: there is no file.
    """
    async with _looking(path) as where:
        return await to_thread.run_sync(examine, where, deep)


async def repair(path: str | os.PathLike[str], *, busy_timeout: float = BUSY_TIMEOUT) -> int:
    """Make the search index anew from the episodes; the episodes themselves are only read. Writers wait meanwhile.

    Args:
        path: the log.
        busy_timeout: seconds to wait for others.

    Returns:
        How many episodes were indexed.

    Raises:
        BusyError: others held the log for too long; nothing was changed.
        StorageError: the episodes cannot be read, or this SQLite has no FTS5; nothing was changed.
    """
    return await to_thread.run_sync(rebuild_index, _present(path), busy_timeout)


def _present(path: str | os.PathLike[str]) -> Path:
    """Find a log that is changed, and must be there."""
    return place(place(path, read_only=True).path, read_only=False).path


class _StoppedError(Exception):
    """Nobody waits for the copy any more."""


async def _copied(source: str | os.PathLike[str], target: Path, on_pages: OnPages | None) -> int:
    """Copy in a thread; a copy that is cancelled ends at its next step, and takes away what it has written."""
    stop = threading.Event()

    def step(done: int, total: int) -> None:
        if stop.is_set():
            raise _StoppedError
        if on_pages is not None:
            on_pages(done, total)

    async with _looking(source) as where:
        copying = asyncio.ensure_future(to_thread.run_sync(copy_log, where, target, step))
        try:
            return await asyncio.shield(copying)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([copying])
            # Whatever it ended with, nobody waits for that.
            copying.exception()
            raise


@asynccontextmanager
async def _looking(path: str | os.PathLike[str]) -> AsyncIterator[Place]:
    """Find a log that is only read, and leave nothing beside it."""
    where = place(path, read_only=True)
    try:
        yield where
    finally:
        await leave_nothing(where)
