"""Whole copies of a log, made while others write to it, and checked before they count. Blocking: for a thread."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

from episodic.errors import CorruptError, NotOurFileError, OpenError
from episodic.sqlite.connect import DAMAGED, HAS_FTS5, Place, translated
from episodic.sqlite.fts import HAS_INDEX
from episodic.sqlite.migrate import APPLICATION_ID, VERSION

__all__ = [
    "BUSY_TIMEOUT",
    "CHECK_INDEX",
    "ENDED",
    "NOTE_CLEAN",
    "Compacted",
    "OnPages",
    "compact",
    "copy_log",
    "read_connection",
    "vacuum",
    "write_connection",
]

OnPages: TypeAlias = Callable[[int, int], None]
"""Called with the pages that are copied and the pages that there are."""

PAGES_A_STEP = 4_096
BUSY_TIMEOUT = 15.0

COUNTS = "SELECT count(*), coalesce(max(id), 0) FROM episodes"
# Whoever has rewritten the file says how many removals had ended before: another may have ended since.
ENDED = "SELECT ended FROM removal_state"
NOTE_CLEAN = """
UPDATE removal_state SET unclean = 0
WHERE unclean = 1 AND ended = ? AND NOT EXISTS (SELECT 1 FROM leaving)
"""
CHECK_INDEX = "INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)"


def copy_log(source: Place, target: Path, on_pages: OnPages) -> int:
    """Copy a log as it is at this moment, also while others write to it.

    The copy is one file, complete and checked when it appears under its name: SQLite's own integrity check, FTS5's
    strict one, and as many episodes as the original had.

    Args:
        source: the log, or a copy of one.
        target: where to; nothing may be there.
        on_pages: called after each step.

    Returns:
        How many episodes it holds.

    Raises:
        OpenError: there is something at the target already, or one of the two cannot be opened.
        NotOurFileError: the source is no log.
        CorruptError: the copy is not whole, because the source is not; there is no file at the target.
        DiskFullError: there is no room for it.
    """
    if target.exists():
        msg = f"{target} exists already; name a file that does not, or move that one away"
        raise OpenError(msg)
    with translated(target), _beside(target) as partial:
        episodes = _copied(source, partial, on_pages)
        _sync(partial)
        # Not over a file that came meanwhile.
        os.link(partial, target)
        _sync(target.parent)
    return episodes


class Compacted(NamedTuple):
    """What rewriting a log has done.

    Attributes:
        before: size of the file before, in bytes.
        after: its size now.
        is_folded: whether the write-ahead log is empty now; not while a reader keeps to an earlier state, which may
            also keep the file from shrinking.
    """

    before: int
    after: int
    is_folded: bool


def vacuum(path: Path, busy_timeout: float) -> Compacted:
    """Rewrite a log as `compact` does, and note that no bytes of removed episodes are left in it.

    Args:
        path: the log; nobody may be writing to it for longer than the timeout.
        busy_timeout: seconds to wait for others.

    Raises:
        BusyError: others held it for too long; nothing was changed.
        DiskFullError: there is no room for a second copy of it, which this needs for a while; nothing was changed.
    """
    with translated(path), closing(_connect(path, "rw", busy_timeout)) as db:
        _check_ours(db, path)
        is_current = db.execute("PRAGMA user_version").fetchone() == (VERSION,)
        ended = db.execute(ENDED).fetchone() if is_current else None
        compacted = _compacted(db, path)
        if compacted.is_folded and ended is not None:
            db.execute(NOTE_CLEAN, ended)
    return compacted


def compact(path: Path, busy_timeout: float) -> Compacted:
    """Rewrite a log without the free space in it, its search index in one piece.

    Args:
        path: the log; nobody may be writing to it for longer than the timeout.
        busy_timeout: seconds to wait for others.

    Raises:
        BusyError: others held it for too long; nothing was changed.
        DiskFullError: there is no room for a second copy of it, which this needs for a while; nothing was changed.
    """
    with translated(path), closing(_connect(path, "rw", busy_timeout)) as db:
        _check_ours(db, path)
        return _compacted(db, path)


def read_connection(where: Place) -> sqlite3.Connection:
    """Connect for reading; never checkpoints."""
    db = _connect(where.path, "ro&immutable=1" if where.immutable else "ro", BUSY_TIMEOUT)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    return db


def write_connection(path: Path, busy_timeout: float) -> sqlite3.Connection:
    """Connect for writing; never makes a file."""
    return _connect(path, "rw", busy_timeout)


def _compacted(db: sqlite3.Connection, path: Path) -> Compacted:
    before = path.stat().st_size
    db.execute("PRAGMA wal_autocheckpoint = 0")
    if db.execute(HAS_INDEX).fetchone()[0] and db.execute(HAS_FTS5).fetchone()[0]:
        db.execute("INSERT INTO episodes_fts (episodes_fts) VALUES ('optimize')")
    db.execute("VACUUM")
    [is_pinned, _, _] = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return Compacted(before, path.stat().st_size, not is_pinned)


def _copied(source: Place, partial: Path, on_pages: OnPages) -> int:
    def on_step(_status: int, remaining: int, total: int) -> None:
        on_pages(total - remaining, total)

    with translated(source.path), closing(read_connection(source)) as original:
        _check_ours(original, source.path)
        # One snapshot for all steps: without it each write to the original would start the copy anew.
        original.execute("BEGIN")
        counts = original.execute(COUNTS).fetchone()
        with translated(partial), closing(_connect(partial, "rw", 0.0)) as copy:
            original.backup(copy, pages=PAGES_A_STEP, progress=on_step)
            # One file, which also a medium that cannot be written can be read from.
            copy.execute("PRAGMA journal_mode = DELETE")
            _check_whole(copy, source.path, counts)
    return int(counts[0])


def _check_whole(copy: sqlite3.Connection, source: Path, counts: tuple[int, int]) -> None:
    flaws = [flaw for (flaw,) in copy.execute("PRAGMA integrity_check(1)")]
    if flaws != ["ok"]:
        msg = f"{source}: {DAMAGED} ({flaws[0]})"
        raise CorruptError(msg)
    if copy.execute(COUNTS).fetchone() != counts:
        msg = f"{source}: the copy has other episodes than the original; nothing was kept: try again"
        raise CorruptError(msg)
    if copy.execute(HAS_INDEX).fetchone()[0] and copy.execute(HAS_FTS5).fetchone()[0]:
        try:
            copy.execute(CHECK_INDEX)
        except sqlite3.DatabaseError as exc:
            advice = "`episodic doctor --repair` makes it anew"
            msg = f"{source}: its search index is not that of its episodes; {advice} ({exc})"
            raise CorruptError(msg) from exc


def _check_ours(db: sqlite3.Connection, path: Path) -> None:
    [application] = db.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        msg = f"{path} is no episodic log; check the path"
        raise NotOurFileError(msg)


def _connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={mode}", uri=True, isolation_level=None, timeout=timeout
    )


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Make an empty file in the target's folder, readable by its owner only, that is gone afterwards."""
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(f"{name}{suffix}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
