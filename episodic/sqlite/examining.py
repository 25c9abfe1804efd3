"""What can be seen of a log's health from outside. Blocking; belongs in a thread."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from episodic.health import Finding
from episodic.sqlite.connect import HAS_FTS5, Place, translated, wal_bytes
from episodic.sqlite.copying import BUSY_TIMEOUT, CHECK_INDEX, read_connection, write_connection
from episodic.sqlite.fts import HAS_INDEX
from episodic.sqlite.migrate import APPLICATION_ID, VERSION
from episodic.sqlite.wal import BOUND

__all__ = ["examine", "rebuild_index"]

# The WAL-reset bug: two connections that write or checkpoint at the same instant can lose committed pages. In SQLite
# from 3.7.0 on, fixed in 3.51.3 and in the branches 3.50 and 3.44 (https://sqlite.org/wal.html#walresetbug).
FIXED_IN = ((3, 51, 3), (3, 50, 7), (3, 44, 6))

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "glusterfs",
    }
)

MUCH_FREE = 0.25

REBUILT = "--repair makes it anew from the texts as they are; if one of those may be damaged, restore a backup instead"

SUMS = """
SELECT
    (SELECT count(*) FROM episodes),
    (SELECT coalesce(sum(episodes), 0) FROM sessions),
    (SELECT coalesce(sum(episodes), 0) FROM agents),
    (SELECT coalesce(max(id), 0) FROM episodes),
    (SELECT next_id FROM log_state),
    (SELECT unindexed FROM log_state),
    (SELECT count(*) FROM leaving),
    (SELECT unclean FROM removal_state)
"""
INDEXED = "SELECT count(*) FROM episodes_fts_docsize"
REBUILD = "INSERT INTO episodes_fts (episodes_fts) VALUES ('rebuild')"
SETTLE = "UPDATE log_state SET unindexed = 0"


def examine(where: Place, deep: bool) -> list[Finding]:  # noqa: FBT001 - handed on by position
    """Look at everything that can be seen of a log, and change nothing.

    Args:
        where: the log.
        deep: also compare the index with the episodes, word by word, for which writers have to wait.
    """
    path = where.path
    findings = [_sqlite_version(), _file_system(path), _permissions(path), *_sizes(path)]
    try:
        with closing(read_connection(where)) as db:
            findings += _inside(db)
        if deep and findings[-1] == Finding("index", "ok", findings[-1].text):
            findings[-1] = _index_by_words(path)
    except sqlite3.Error as exc:
        findings.append(Finding("file", "fault", f"cannot be read: {exc}; restore a backup"))
    return findings


def rebuild_index(path: Path, busy_timeout: float) -> int:
    """Make the search index anew from the episodes.

    Returns:
        How many episodes were indexed.

    Raises:
        BusyError: others held the log for too long; nothing was changed.
        StorageError: the episodes themselves cannot be read; nothing was changed.
    """
    with translated(path), closing(write_connection(path, busy_timeout)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute(REBUILD)
        db.execute(SETTLE)
        [episodes] = db.execute(INDEXED).fetchone()
        db.execute("COMMIT")
    return int(episodes)


def _sqlite_version() -> Finding:
    version = sqlite3.sqlite_version_info
    fixed = version >= FIXED_IN[0] or any(version[:2] == one[:2] and version >= one for one in FIXED_IN)
    if fixed:
        return Finding("sqlite", "ok", sqlite3.sqlite_version)
    return Finding(
        "sqlite",
        "warning",
        f"{sqlite3.sqlite_version} has the WAL-reset bug: let one process only write this file, or use SQLite 3.51.3",
    )


def _file_system(path: Path) -> Finding:
    kind = _mounted_as(path)
    if kind is None:
        return Finding("disk", "unknown", "which file system it is on cannot be seen here; it must be a local one")
    if kind in NETWORK_FILE_SYSTEMS:
        return Finding("disk", "fault", f"{kind} is a network file system, where SQLite's locks do not hold; move it")
    return Finding("disk", "ok", f"a local file system ({kind})")


def _mounted_as(path: Path) -> str | None:
    """Return the type of the file system that a file is on, by the longest mount point above it."""
    try:
        lines = Path("/proc/mounts").read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    mounts = [(point, kind) for _, point, kind, *_ in (line.split() for line in lines)]
    real = os.path.realpath(path)
    above = [(len(point), kind) for point, kind in mounts if point == "/" or f"{real}/".startswith(f"{point}/")]
    return max(above)[1] if above else None


def _permissions(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding("access", "warning", f"others than its owner may open it (mode {mode:o}); chmod 600")
    return Finding("access", "ok", f"its owner only (mode {mode:o})")


def _sizes(path: Path) -> Iterator[Finding]:
    size, free = path.stat().st_size, shutil.disk_usage(path.parent).free
    wal_size = wal_bytes(path)
    if wal_size > BOUND:
        advice = "a reader keeps its snapshot, or nobody writes any more; opening and closing the log folds it in"
        yield Finding("wal", "warning", f"{wal_size:,} bytes: {advice}")
    else:
        yield Finding("wal", "ok", f"{wal_size:,} bytes")
    if free > size:
        yield Finding("room", "ok", f"{free:,} bytes free beside {size:,}")
    else:
        yield Finding("room", "warning", f"{free:,} bytes free beside {size:,}; a vacuum or a backup needs more")


def _inside(db: sqlite3.Connection) -> Iterator[Finding]:
    [application], [version] = (db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version"))
    if application == version == 0 and not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        yield Finding("file", "fault", "it is empty, no log was written to it yet; check the path")
        return
    if application != APPLICATION_ID:
        yield Finding("file", "fault", "another program's database; check the path")
        return
    if version > VERSION:
        yield Finding("file", "fault", f"version {version}, this episodic knows {VERSION}; upgrade episodic")
        return
    if version < VERSION:
        yield Finding("file", "warning", f"version {version}; the next open for writing brings it to {VERSION}")
    else:
        yield Finding("file", "ok", f"version {version}")
    [mode] = db.execute("PRAGMA journal_mode").fetchone()
    yield Finding(
        "journal", "ok", mode if mode == "wal" else f"{mode}: a copy at rest; the next open for writing turns to WAL"
    )
    flaws = [flaw for (flaw,) in db.execute("PRAGMA integrity_check(3)")]
    if flaws == ["ok"]:
        seen = "SQLite's integrity check is ok; it does not see a flipped bit inside a text"
        yield Finding("pages", "ok", seen)
    else:
        yield Finding("pages", "fault", f"{'; '.join(flaws)}: restore a backup")
        return
    [pages], [unused] = (db.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count"))
    share = unused / max(1, pages)
    if share > MUCH_FREE:
        yield Finding("free", "warning", f"{share:.0%} of the file is free; `episodic vacuum` gives it back")
    else:
        yield Finding("free", "ok", f"{share:.0%} of the file is free")
    if version == VERSION:
        yield from _sums(db)


def _sums(db: sqlite3.Connection) -> Iterator[Finding]:
    episodes, in_sessions, of_agents, newest, next_id, unindexed, leaving, unclean = db.execute(SUMS).fetchone()
    counts = f"{episodes - leaving:,} episodes, {in_sessions:,} in sessions, {of_agents:,} of agents"
    yield Finding("counts", "ok" if episodes - leaving == in_sessions == of_agents else "fault", counts)
    if leaving:
        yield Finding("removed", "warning", f"{leaving:,} episodes are still to be removed: the next open goes on")
    elif unclean:
        left = "bytes of removed episodes may still be in the file; an erasure or `episodic vacuum` takes them out"
        yield Finding("removed", "warning", left)
    else:
        yield Finding("removed", "ok", "no bytes of removed episodes are left")
    if next_id is None:
        yield Finding("ids", "fault", "the log's state is missing: restore a backup")
    else:
        yield Finding("ids", "ok" if next_id > newest else "fault", f"the next is {next_id:,}, the newest {newest:,}")
    if not db.execute(HAS_FTS5).fetchone()[0] or not db.execute(HAS_INDEX).fetchone()[0]:
        yield Finding("index", "unknown", "there is none, or this SQLite has no FTS5: search compares text")
        return
    [indexed] = db.execute(INDEXED).fetchone()
    if indexed != episodes or unindexed:
        yield Finding("index", "fault", f"{indexed:,} of {episodes:,} episodes are indexed; {REBUILT}")
        return
    yield Finding("index", "ok", f"all {indexed:,} episodes are indexed; --deep compares word by word")


def _index_by_words(path: Path) -> Finding:
    """Compare the index with the episodes by FTS5's strict check: a statement that writes, and changes nothing."""
    with closing(write_connection(path, BUSY_TIMEOUT)) as db:
        try:
            db.execute(CHECK_INDEX)
        except sqlite3.OperationalError as exc:
            return Finding("index", "unknown", f"others write to the log, or it cannot be written ({exc}); try again")
        except sqlite3.DatabaseError as exc:
            return Finding("index", "fault", f"it is not that of the episodes ({exc}); {REBUILT}")
    return Finding("index", "ok", "it is that of the episodes, word by word")
