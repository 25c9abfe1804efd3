"""What nearly every test needs: a path, an open log, a look into the file, and a build of SQLite without FTS5."""

from __future__ import annotations

import _sqlite3
import asyncio
import ctypes
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import pytest

from episodic import EpisodicLog


class Sql(Protocol):
    """Runs one statement over a connection of its own, which commits and closes."""

    def __call__(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Return all rows of the answer."""


def run_script(
    script: str, *arguments: object, options: tuple[str, ...] = ("-W", "error")
) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, which must end by itself."""
    command = [sys.executable, *options, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A path in an empty folder; there is no file yet."""
    return tmp_path / "log.db"


@pytest.fixture
async def log(path: Path) -> AsyncIterator[EpisodicLog]:
    """An open, empty log at `path`."""
    async with EpisodicLog.open(path) as opened:
        yield opened


@pytest.fixture(params=["fts", "like"])
async def either(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[EpisodicLog]:
    """An open log: with the index of words, and on a build without FTS5."""
    if request.param == "like":
        request.getfixturevalue("without_fts5")
    async with EpisodicLog.open(path) as opened:
        assert opened.stats().mode == request.param
        yield opened


@pytest.fixture
def sql(path: Path) -> Sql:
    """Ask the file at `path`, or change it, behind the log's back."""

    def run(statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as db, db:
            return db.execute(statement, parameters).fetchall()

    return run


@pytest.fixture
async def no_thread_left() -> AsyncIterator[None]:
    """Fail when a thread that the test started does not end."""
    before = set(threading.enumerate())
    yield
    for _ in range(500):
        if not set(threading.enumerate()) - before:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"threads are left: {set(threading.enumerate()) - before}")


@pytest.fixture
def without_fts5(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Take FTS5 out of every new connection, as in a build without it; call the value to have it in those that follow.

    SQLite's own sqlite3_drop_modules() does it, on the library that Python's sqlite3 is linked to.
    """
    connect = sqlite3.connect
    try:
        drop_modules = ctypes.CDLL(_sqlite3.__file__).sqlite3_drop_modules
    except (AttributeError, OSError) as exc:
        pytest.skip(f"sqlite3_drop_modules() of this Python's SQLite cannot be called: {exc}")
    drop_modules.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)]
    kept = (ctypes.c_char_p * 3)(b"json_each", b"json_tree", None)

    def connect_without(*args: Any, **keywords: Any) -> sqlite3.Connection:  # noqa: ANN401 - as sqlite3.connect
        db: sqlite3.Connection = connect(*args, **keywords)
        # The sqlite3* is the first field of the object, behind its head.
        drop_modules(ctypes.c_void_p.from_address(id(db) + object.__basicsize__), kept)
        return db

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_without)
        with closing(sqlite3.connect(":memory:")) as db:
            left = {name for (name,) in db.execute("SELECT name FROM pragma_module_list")}
            if "fts5" in left or "json_each" not in left:
                pytest.skip(f"sqlite3_drop_modules() left {sorted(left)}")
        yield patch.undo
