"""Opening a connection: its pragmas, and the one place where SQLite's errors become ours."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.parse import quote

import aiosqlite
import anyio

from episodic.errors import (
    BusyError,
    CorruptError,
    DiskFullError,
    EpisodicError,
    NotOurFileError,
    OpenError,
    ReadOnlyError,
    RejectedError,
    StorageError,
)

__all__ = [
    "DAMAGED",
    "HAS_FTS5",
    "Place",
    "code_of",
    "configure_writer",
    "connect_reader",
    "connect_writer",
    "has_fts5",
    "leave_nothing",
    "place",
    "read_sql",
    "run_script",
    "statements",
    "translated",
    "undamaged",
    "wal_bytes",
    "wal_of",
]

# `->>` came with 3.38; RETURNING, which hands a batch's ids back in its own statement, with 3.35.
OLDEST_SQLITE = (3, 38, 0)

PRIVATE = 0o600
WAL_SWITCH_PAUSE = 0.01

# A cache that holds the upper levels of every B-tree at a million episodes, in KiB (negative, as SQLite wants it).
WRITER_PRAGMAS = (
    "PRAGMA cache_size = -65536",
    "PRAGMA temp_store = MEMORY",
    # The store does it itself, which tells it how that went; see wal.py.
    "PRAGMA wal_autocheckpoint = 0",
    # Where a reader has let the write-ahead log grow, it is cut back to this once it is begun anew.
    "PRAGMA journal_size_limit = 67108864",
)
READER_PRAGMAS = (
    "PRAGMA query_only = ON",
    "PRAGMA cache_size = -16384",
    "PRAGMA temp_store = MEMORY",
    # Two connections that checkpoint at one moment can lose pages before SQLite 3.51.3: only the writer ever does.
    "PRAGMA wal_autocheckpoint = 0",
)


class Place(NamedTuple):
    """Where a log lives and how it may be reached.

    Attributes:
        path: absolute path of the file.
        read_only: whether nothing may be written.
        immutable: whether nobody can write, so that SQLite may read without a WAL and without locks.
        is_tidy: whether no WAL stands beside the file, so that one made by reading must not stay.
    """

    path: Path
    read_only: bool
    immutable: bool
    is_tidy: bool


def place(path: str | os.PathLike[str], *, read_only: bool) -> Place:
    """Check a path before SQLite sees it.

    Raises:
        OpenError: when no log can be there: a folder, a missing folder, a missing file that is to be read.
        ReadOnlyError: when the file or its folder cannot be written and `read_only` is not set.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        msg = (
            f"SQLite {sqlite3.sqlite_version} is too old, episodic needs {wanted}; use a Python built with a newer one"
        )
        raise OpenError(msg)
    name = os.fspath(path)
    if not name or name == ":memory:" or not _is_encodable(name):
        msg = f"{name!r} is no path of a file; a log is shared by several connections and needs a file"
        raise OpenError(msg)
    # The file itself, not a link to it: SQLite keeps the write-ahead log beside the file.
    target = Path(os.path.realpath(name))
    with translated(target):
        return _reading_place(target) if read_only else _writing_place(target)


def _reading_place(target: Path) -> Place:
    if not _stands(target):
        msg = f"there is no log at {target}; check the path"
        raise OpenError(msg)
    is_tidy = not wal_of(target).exists()
    return Place(target, read_only=True, immutable=is_tidy and not os.access(target.parent, os.W_OK), is_tidy=is_tidy)


def _writing_place(target: Path) -> Place:
    needed = [target, target.parent] if _stands(target) else [target.parent]
    if not all(os.access(path, os.W_OK) for path in needed):
        msg = f"{target} cannot be written by this user; change its permissions, or open it with read_only=True"
        raise ReadOnlyError(msg)
    return Place(target, read_only=False, immutable=False, is_tidy=False)


def wal_of(path: Path) -> Path:
    """Return where the write-ahead log of a file is."""
    return path.with_name(f"{path.name}-wal")


def wal_bytes(path: Path) -> int:
    """Return the size of the write-ahead log beside a file, 0 where there is none."""
    try:
        return wal_of(path).stat().st_size
    except FileNotFoundError:
        return 0


def _is_encodable(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


def _stands(target: Path) -> bool:
    """Tell whether there is a file; anything else than a file, or than nothing in a folder, is an error."""
    if target.is_dir():
        msg = f"{target} is a folder; name a file in it"
        raise OpenError(msg)
    if not target.parent.is_dir():
        msg = f"the folder {target.parent} does not exist; make it first"
        raise OpenError(msg)
    if target.exists() and not target.is_file():
        msg = f"{target} is no regular file; use another path"
        raise OpenError(msg)
    return target.exists()


async def connect_writer(where: Place, *, busy_timeout: float) -> aiosqlite.Connection:
    """Open the connection that will write, its pragmas not set yet; a new file is readable by its owner only."""
    with translated(where.path):
        if not where.path.exists():
            os.close(os.open(where.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, PRIVATE))
    return await _connect(where, "rw", busy_timeout)


async def configure_writer(db: aiosqlite.Connection, where: Place, *, busy_timeout: float, full: bool) -> None:
    """Set the writer's pragmas, once the file is known to be ours.

    Args:
        db: the connection.
        where: its file.
        busy_timeout: seconds to wait for another process that opens the file.
        full: whether each commit is synced to the disk.
    """
    with translated(where.path):
        await _switch_to_wal(db, where.path, busy_timeout)
        await db.execute("PRAGMA synchronous = FULL" if full else "PRAGMA synchronous = NORMAL")
        for pragma in WRITER_PRAGMAS:
            await db.execute(pragma)


async def connect_reader(where: Place, *, busy_timeout: float) -> aiosqlite.Connection:
    """Open a connection that cannot write and never checkpoints."""
    db = await _connect(where, "ro", busy_timeout)
    try:
        with translated(where.path):
            for pragma in READER_PRAGMAS:
                await db.execute(pragma)
    except BaseException:
        await db.close()
        raise
    return db


async def leave_nothing(where: Place) -> None:
    """Take away the empty WAL that reading a file alone has made: what may write and leaves last does it."""
    if not where.is_tidy or not wal_of(where.path).exists() or not where.path.exists():
        return
    try:
        db = await _connect(where, "rw", 0)
    except EpisodicError:
        # What is wrong with the file is told by whoever reads it.
        return
    try:
        await db.execute_fetchall("SELECT count(*) FROM sqlite_schema")
    except (sqlite3.Error, UnicodeDecodeError):
        # So it is here; or another process has come meanwhile, and takes it away when it leaves.
        return
    finally:
        await db.close()


async def _connect(where: Place, mode: str, busy_timeout: float) -> aiosqlite.Connection:
    uri = f"file:{quote(os.fsencode(where.path))}?mode={mode}{'&immutable=1' if where.immutable else ''}"
    connect = partial(aiosqlite.connect, uri, uri=True, isolation_level=None, timeout=busy_timeout)
    with translated(where.path):
        try:
            return await _in_daemon(connect)
        except sqlite3.OperationalError as exc:
            msg = f"{where.path} cannot be opened: {exc}"
            raise OpenError(msg) from exc


def _in_daemon(make: Callable[[], aiosqlite.Connection]) -> aiosqlite.Connection:
    """Make a connection whose thread does not keep the process alive when nobody closes it.

    A thread is a daemon if the one that makes it is, and aiosqlite makes the connection's thread together with it.
    """
    made: list[aiosqlite.Connection] = []
    maker = Thread(target=lambda: made.append(make()), daemon=True)
    maker.start()
    maker.join()
    return made[0]


async def _switch_to_wal(db: aiosqlite.Connection, path: Path, busy_timeout: float) -> None:
    """Switch to WAL; SQLite answers "locked" here without waiting, so that the waiting is ours."""
    deadline = anyio.current_time() + busy_timeout
    while True:
        try:
            [(mode,)] = await db.execute_fetchall("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or anyio.current_time() >= deadline:
                raise
        else:
            if mode == "wal":
                return
            msg = f"{path} cannot use a write-ahead log (its file system answered {mode!r}); use a local disk"
            raise OpenError(msg)
        await anyio.sleep(WAL_SWITCH_PAUSE)


async def has_fts5(db: aiosqlite.Connection) -> bool:
    """Tell whether this build of SQLite has FTS5."""
    [(found,)] = await db.execute_fetchall(HAS_FTS5)
    return bool(found)


def read_sql(name: str) -> str:
    """Read one of the scripts beside this module."""
    return files(__package__).joinpath(f"{name}.sql").read_text("utf-8")


def statements(script: str) -> Iterator[str]:
    """Split a script into its statements, which one transaction of ours can then hold."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


HAS_FTS5 = "SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'"
DAMAGED = "the database is damaged; restore a backup or recover it"
NO_TEXT = "Could not decode to UTF-8"
# For each kind of failure its error, what happened, and what to do.
_KINDS: dict[int, tuple[type[StorageError], str, str]] = {
    sqlite3.SQLITE_BUSY: (BusyError, "another process held the database for too long", ""),
    sqlite3.SQLITE_LOCKED: (BusyError, "the database was locked for too long", ""),
    sqlite3.SQLITE_FULL: (DiskFullError, "the disk is full", ": make room, writing goes on by itself"),
    sqlite3.SQLITE_READONLY: (ReadOnlyError, "the database cannot be written", ""),
    sqlite3.SQLITE_PERM: (ReadOnlyError, "the database cannot be written", ""),
    sqlite3.SQLITE_CONSTRAINT: (RejectedError, "the database refused a value", ""),
    sqlite3.SQLITE_TOOBIG: (RejectedError, "a text is too large for SQLite", ""),
    sqlite3.SQLITE_MISMATCH: (RejectedError, "the database refused a value", ""),
}
_NO_ACCESS: dict[int, tuple[type[StorageError], str]] = {
    sqlite3.SQLITE_CORRUPT: (CorruptError, DAMAGED),
    sqlite3.SQLITE_NOTADB: (NotOurFileError, "the file is no SQLite database; check the path"),
    sqlite3.SQLITE_CANTOPEN: (OpenError, "the database cannot be opened; check its path and permissions"),
}


@contextmanager
def translated(path: Path, *, writing: bool = False) -> Iterator[None]:
    """Turn errors of SQLite and of the file system inside the block into ours, the cause kept.

    Args:
        path: the file, for messages.
        writing: whether the block stores something, so that the error says what became of it.
    """
    try:
        yield
    except sqlite3.Error as exc:
        if str(exc).startswith(NO_TEXT):
            # Python's message quotes all of the text, which may be anybody's.
            msg = f"{path}: {DAMAGED} (a text in it is no UTF-8)"
            raise CorruptError(msg) from None
        kind, said = _kind(code_of(exc) & 0xFF, writing=writing)
        msg = f"{path}: {said} (SQLite: {exc})"
        raise kind(msg) from exc
    except UnicodeDecodeError as exc:
        msg = f"{path}: {DAMAGED} (a text in it is no UTF-8: {exc})"
        raise CorruptError(msg) from exc
    except OSError as exc:
        msg = f"{path}: {exc.strerror or exc}"
        raise OpenError(msg) from exc


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Turn what cannot be made of an answer inside the block into an error: another program, or a bit, has changed it.

    Args:
        path: the file, for messages.
    """
    try:
        yield
    except (OverflowError, TypeError, ValueError) as exc:
        msg = f"{path}: {DAMAGED} (a value in it cannot be: {exc})"
        raise CorruptError(msg) from exc


def code_of(error: sqlite3.Error) -> int:
    """Return SQLite's extended code of an error, 0 for one that Python's module has made itself."""
    return getattr(error, "sqlite_errorcode", 0)


def _kind(code: int, *, writing: bool) -> tuple[type[StorageError], str]:
    if code in _NO_ACCESS:
        return _NO_ACCESS[code]
    if code not in _KINDS:
        unknown = "; whether it is stored is unknown" if writing else ""
        return StorageError, f"the database failed{unknown}"
    kind, what, advice = _KINDS[code]
    return kind, f"{what}{'; nothing was stored' if writing else ''}{advice}"


async def run_script(db: aiosqlite.Connection, script: Iterable[str]) -> None:
    """Run statements one by one inside whatever transaction is open."""
    for statement in script:
        await db.execute(statement)
