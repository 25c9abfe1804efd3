"""Reading another program's database that follows the well-known recipe: a table `episodes` beside its index.

The file is never changed, nothing is left beside it, and no lock is held between two pages, so that the program that
owns it can go on writing. All of it is blocking and belongs in a thread.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import quote

from episodic.errors import NotOurFileError, OpenError
from episodic.sqlite.connect import translated
from episodic.sqlite.migrate import APPLICATION_ID

__all__ = ["SQLITE_MAGIC", "RecipeFile", "RecipeRow", "Value", "open_recipe"]

Value: TypeAlias = "int | float | str | bytes | None"

SQLITE_MAGIC = b"SQLite format 3\0"

# Byte 19 of the header is the version a reader must know: 2 once the file uses a write-ahead log.
READ_VERSION_AT, WAL_VERSION = 19, 2

# What every variant of the recipe has; others come and go.
REQUIRED = ("agent_id", "session_id", "timestamp", "role", "content")

PAGE_ROWS = 2_000
PAGE_BYTES = 8 * 2**20

TABLE = "SELECT type, wr FROM pragma_table_list WHERE schema = 'main' AND lower(name) = 'episodes'"
COLUMNS = "SELECT * FROM episodes LIMIT 0"
# SQLite's own names of the rowid; a column of the table takes the one that it is called by.
ROWIDS = ("rowid", "_rowid_", "oid")
FIRST = "SELECT min({}) FROM episodes"
LAST = "SELECT max({}) FROM episodes"
PAGE = "SELECT {0}, * FROM episodes WHERE {0} BETWEEN ? AND ? ORDER BY {0} LIMIT ?"


class RecipeRow(NamedTuple):
    """One row as SQLite holds it; text that is no UTF-8 keeps its bytes as lone surrogates (surrogateescape).

    Attributes:
        rowid: its place in the table, which is also its `id` where the recipe was followed.
        values: in the order of `RecipeFile.columns`.
    """

    rowid: int
    values: Sequence[Value]


class RecipeFile(NamedTuple):
    """A file that was found to follow the recipe.

    Attributes:
        path: the file.
        columns: of its table, in lower case.
        rowid: what the rowid of its table is called.
        first: the lowest rowid now.
        last: the highest; what is written later is not read. In an empty table it is below `first`.
        busy_timeout: seconds to wait for the program that owns it.
    """

    path: Path
    columns: tuple[str, ...]
    rowid: str
    first: int
    last: int
    busy_timeout: float

    def rows(self) -> Iterator[RecipeRow]:
        """Go through the rows in the order of their rowids, in pages; each page is a connection of its own.

        Raises:
            StorageError: the file cannot be read.
        """
        start = self.first
        while start <= self.last:
            page = self._page(start)
            yield from page
            if not page:
                return
            start = page[-1].rowid + 1

    def _page(self, start: int) -> list[RecipeRow]:
        while True:
            before = _trace(self.path)
            with translated(self.path), closing(_connect(self.path, before, self.busy_timeout)) as db:
                page = _take(db.execute(PAGE.format(self.rowid), (start, self.last, PAGE_ROWS)))
            if not before.is_idle_wal or _trace(self.path) == before:
                return page


def open_recipe(path: Path, *, busy_timeout: float = 15.0) -> RecipeFile:
    """Look at a database and say what of the recipe it holds.

    Args:
        path: the file, which must exist.
        busy_timeout: seconds to wait for the program that owns it.

    Raises:
        NotOurFileError: it is something else.
        OpenError: it cannot be read where it is.
    """
    with translated(path), closing(_connect(path, _trace(path), busy_timeout)) as db:
        [(application,)] = db.execute("PRAGMA application_id")
        if application == APPLICATION_ID:
            msg = f"{path} is a log of episodic itself; pass it on with `episodic export --db` and import that"
            raise NotOurFileError(msg)
        table = db.execute(TABLE).fetchone()
        if table is None or table[0] != "table" or table[1]:
            msg = f"{path} has no table `episodes` with rowids; only databases of that recipe can be imported"
            raise NotOurFileError(msg)
        columns = tuple(str(column[0]).lower() for column in db.execute(COLUMNS).description)
        missing = [name for name in REQUIRED if name not in columns]
        if missing:
            msg = f"{path}: its table `episodes` has no column {missing[0]}, so that it does not follow the recipe"
            raise NotOurFileError(msg)
        rowid = next((name for name in ROWIDS if name not in columns), None)
        if rowid is None:
            msg = (
                f"{path}: its table `episodes` has columns named {', '.join(ROWIDS)}, which hide its rowids; rename one"
            )
            raise NotOurFileError(msg)
        [(first,)], [(last,)] = db.execute(FIRST.format(rowid)), db.execute(LAST.format(rowid))
    if first is None:
        first, last = 1, 0
    return RecipeFile(path, columns, rowid, first, last, busy_timeout)


class _Trace(NamedTuple):
    """What shows that somebody wrote to a file; see `_connect`."""

    is_idle_wal: bool
    bytes: int
    changed_ns: int


def _trace(path: Path) -> _Trace:
    with translated(path), path.open("rb") as file:
        header = file.read(READ_VERSION_AT + 1)
        status = os.fstat(file.fileno())
    wal = path.with_name(f"{path.name}-wal")
    is_wal = header[READ_VERSION_AT:] == bytes([WAL_VERSION])
    return _Trace(is_wal and not (wal.exists() and wal.stat().st_size), status.st_size, status.st_mtime_ns)


def _connect(path: Path, trace: _Trace, busy_timeout: float) -> sqlite3.Connection:
    """Open for reading.

    A file with a write-ahead log that nobody has open is read as immutable: otherwise SQLite would leave a log and an
    index of it beside the file, or fail where the folder cannot be written. Who starts to write meanwhile must make
    that log first and change the file later; either shows in its trace, and the page is read again.
    """
    uri = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if trace.is_idle_wal else ''}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=busy_timeout)
    try:
        db.text_factory = _decode
        db.execute("PRAGMA query_only = ON")
        db.execute("SELECT 1 FROM sqlite_schema").fetchone()
    except sqlite3.OperationalError as exc:
        db.close()
        if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN:
            raise
        msg = f"{path} cannot be read where it is; copy it and the files beside it to a folder that you can write"
        raise OpenError(msg) from exc
    except BaseException:
        db.close()
        raise
    return db


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _take(cursor: sqlite3.Cursor) -> list[RecipeRow]:
    """Take rows until the page weighs enough; the statement ends with the connection."""
    page: list[RecipeRow] = []
    weight = 0
    for rowid, *values in cursor:
        page.append(RecipeRow(rowid, values))
        weight += sum(len(value) for value in values if isinstance(value, str | bytes))
        if weight >= PAGE_BYTES:
            break
    return page
