"""What many tests need: a path, an open log, a look into the file, a build of SQLite without FTS5, a command line."""

from __future__ import annotations

import _sqlite3
import asyncio
import ctypes
import errno
import os
import pty
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import orjson
import pytest

from episodic import EpisodicLog
from episodic.faces.cli import main


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


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds that another task or process brings about."""
    for _ in range(2_000):
        if holds():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never came about")


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


Call = Callable[..., subprocess.CompletedProcess[str]]


class Runner:
    """Runs the command line in a folder of its own, on the log there."""

    def __init__(self, folder: Path) -> None:
        """Begin without a log."""
        self.folder = folder
        self.db = folder / "episodic.db"

    def start(
        self,
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        **options: Any,  # noqa: ANN401 - of Popen
    ) -> subprocess.Popen[bytes]:
        """Start a command."""
        base = {key: value for key, value in os.environ.items() if key not in {"EPISODIC_DB", "COLUMNS", "TERM"}}
        command = [sys.executable, "-m", "episodic", *map(str, arguments)]
        return subprocess.Popen(
            command, cwd=self.folder, env=base | {"TERM": "xterm-256color", **(env or {})}, **options
        )

    def __call__(
        self,
        *arguments: str | Path,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        pipe = subprocess.PIPE
        with self.start(*arguments, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            output, errors = process.communicate(stdin)
        return subprocess.CompletedProcess(process.args, process.returncode, output.decode(), errors.decode())

    def records(self, *arguments: str | Path) -> list[Any]:
        """Run a command that must succeed, with --json."""
        done = self(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return [orjson.loads(line) for line in done.stdout.splitlines()]

    def on_terminal(self, *arguments: str | Path, env: Mapping[str, str] | None = None) -> tuple[str, int]:
        """Run a command on a terminal; return all that it showed, and its exit code."""
        parent, child = pty.openpty()
        with self.start(*arguments, env=env, stdin=child, stdout=child, stderr=child) as process:
            os.close(child)
            shown = b"".join(read_all(parent))
        return shown.decode(), process.returncode


def read_all(descriptor: int) -> Iterator[bytes]:
    """Read a terminal until everybody who writes to it has gone."""
    with open(descriptor, "rb", buffering=0) as terminal:
        while True:
            try:
                chunk = terminal.read(2**16)
            except OSError as exc:
                if exc.errno != errno.EIO:
                    raise
                return
            if not chunk:
                return
            yield chunk


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """The command line, in an empty folder."""
    return Runner(tmp_path)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Run commands in this process, where dozens take no longer than a few processes do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EPISODIC_DB", raising=False)

    def run_here(*arguments: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = main(arguments)
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return run_here
