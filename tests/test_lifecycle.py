"""Opening and closing: what there can be at a path, who may use the log where, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from episodic import (
    BusyError,
    ClosedError,
    Draft,
    Episode,
    EpisodicError,
    EpisodicLog,
    Filter,
    NewerFileError,
    NotOurFileError,
    OpenError,
    ReadOnlyError,
    Settings,
    WrongLoopError,
)
from episodic.sqlite import migrate
from episodic.sqlite.connect import read_sql
from tests.conftest import Sql

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2"

# Every kind of call on an open log, each as one that can be awaited.
CALLS: dict[str, Callable[[EpisodicLog], Awaitable[object]]] = {
    "record": lambda log: log.record("a", "s", "user", "x"),
    "record_many": lambda log: log.record_many([Draft("a", "s", "user", "x")]),
    "resolve": lambda log: log.resolve("a", "s", "success"),
    "get": lambda log: log.get(1),
    "recent": lambda log: log.recent("a"),
    "search": lambda log: log.search("a", "x"),
    "recall_context": lambda log: log.recall_context("a", "x"),
    "sessions": lambda log: log.sessions("a"),
    "agents": lambda log: log.agents(),
    "around": lambda log: log.around(1),
    "replay": lambda log: anext(log.replay("s")),
    "scan": lambda log: anext(log.scan()),
    "follow": lambda log: anext(log.follow(0)),
}


def run(
    script: str, *arguments: object, options: tuple[str, ...] = ("-W", "error")
) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, which must end by itself."""
    command = [sys.executable, *options, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


async def settle() -> None:
    """Let every task go on until it waits."""
    for _ in range(50):
        await asyncio.sleep(0)


async def assert_no_threads_since(before: set[threading.Thread]) -> None:
    """Wait for threads that end; fail when one that was not there before stays."""
    for _ in range(500):
        left = set(threading.enumerate()) - before
        if not left:
            return
        await asyncio.sleep(0.01)
    pytest.fail(f"threads are left: {left}")


def bytes_in(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user can look into, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


async def test_a_fresh_file_is_ours_and_private(path: Path, sql: Sql) -> None:
    """A new log is readable by its owner only, its write-ahead log too, whatever the umask, and bears our mark."""
    umask = os.umask(0)
    try:
        async with EpisodicLog.open(path) as log:
            await log.record("a", "s", "user", "x")
            modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    finally:
        os.umask(umask)
    assert modes == {"log.db": 0o600, "log.db-wal": 0o600, "log.db-shm": 0o600}
    assert sql("PRAGMA application_id") == [(0x45704C67,)]
    assert sql("PRAGMA user_version") == [(migrate.VERSION,)]
    assert sql("PRAGMA journal_mode") == [("wal",)]


async def test_closing_folds_everything_into_the_one_file(path: Path) -> None:
    """After closing, the log is one file, and opening it again finds all of it."""
    async with EpisodicLog.open(path) as log:
        receipts = await log.record_many([Draft("a", "s", "user", f"{n}") for n in range(100)])
    assert [file.name for file in path.parent.iterdir()] == ["log.db"]
    async with EpisodicLog.open(path) as log:
        assert [e async for e in log.scan()] == receipts


async def test_the_schema_is_made_once(path: Path, sql: Sql) -> None:
    """Opening a log again changes nothing in its schema."""
    async with EpisodicLog.open(path):
        pass
    first = sql(SCHEMA)
    async with EpisodicLog.open(path):
        pass
    assert sql(SCHEMA) == first
    assert {"episodes", "sessions", "agents", "log_state", "episodes_fts"} <= {name for _, name, _, _ in first}


def test_the_migrations_from_nothing_give_the_schema() -> None:
    """Running every migration from version 0 on gives exactly what schema.sql holds, and the version says so."""
    schemas = []
    for scripts in (migrate.MIGRATIONS, ("schema",)):
        with closing(sqlite3.connect(":memory:")) as db:
            for script in scripts:
                db.executescript(read_sql(script))
            schemas.append((db.execute(SCHEMA).fetchall(), db.execute("SELECT * FROM log_state").fetchall()))
    assert schemas[0] == schemas[1]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(migrate.STAMP_VERSION)
        db.execute(migrate.STAMP_APPLICATION)
        assert db.execute("PRAGMA user_version").fetchone() == (migrate.VERSION,) == (len(migrate.MIGRATIONS),)
        assert db.execute("PRAGMA application_id").fetchone() == (migrate.APPLICATION_ID,)


async def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path, sql: Sql) -> None:
    """The whole way to the present version is one transaction."""
    sql(migrate.STAMP_APPLICATION)
    sql("CREATE TABLE log_state (in_the_way)")
    before = sql(SCHEMA)
    with pytest.raises(EpisodicError):
        await EpisodicLog.open(path).__aenter__()
    assert sql(SCHEMA) == before
    assert sql("PRAGMA user_version") == [(0,)]


@pytest.mark.parametrize(
    "name", ["a b.db", "a?mode=ro#x.db", "100%25.db", "größe 👍.db", "a'b\"c.db", "-.db", "file:x.db"]
)
async def test_any_name_of_a_file_is_a_path(tmp_path: Path, name: str) -> None:
    """Characters that mean something in a URI, or anywhere else, are a name like any other."""
    async with EpisodicLog.open(tmp_path / name) as log:
        await log.record("a", "s", "user", "x")
    assert os.listdir(tmp_path) == [name]  # noqa: PTH208 - names as the system has them
    async with EpisodicLog.open(os.fspath(tmp_path / name), read_only=True) as log:
        assert log.stats().path == os.fspath(tmp_path / name)
        assert await log.newest_id() == 1


async def test_a_relative_path_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that changes its folder goes on with the same file."""
    monkeypatch.chdir(tmp_path)
    async with EpisodicLog.open("log.db", settings=Settings(readers=1)) as log:
        monkeypatch.chdir("/")
        await log.record("a", "s", "user", "x")
        assert log.stats().file_bytes > 0
    assert (tmp_path / "log.db").exists()


async def test_a_link_and_its_file_are_one_log(tmp_path: Path) -> None:
    """Opened through a link, also one that points to nothing yet, a log has its write-ahead log beside the file."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "log.db")
    async with EpisodicLog.open(tmp_path / "link.db") as log, EpisodicLog.open(tmp_path / "real" / "log.db") as same:
        receipt = await log.record("a", "s", "user", "x")
        assert await same.get(receipt.id) == receipt
        assert log.stats().wal_bytes == same.stats().wal_bytes > 0
        assert {file.name for file in tmp_path.iterdir()} == {"real", "link.db"}


def foreign(path: Path, *, wal: bool = False) -> None:
    """Make another program's database."""
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
        db.execute("CREATE TABLE episodes (id INTEGER PRIMARY KEY, content TEXT)")
        db.execute("INSERT INTO episodes (content) VALUES ('theirs')")
        db.commit()


def newer(path: Path) -> None:
    """Make a log that a newer version has changed."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(read_sql("schema"))
        db.execute(migrate.STAMP_APPLICATION)
        db.execute(f"PRAGMA user_version = {migrate.VERSION + 1}")


WRONG_FILES: dict[str, tuple[Callable[[Path], object], type[OpenError], str]] = {
    "text": (lambda path: path.write_text("no database\n" * 100), NotOurFileError, "no SQLite database"),
    "short": (lambda path: path.write_bytes(b"SQLite format 3\0"), NotOurFileError, "no SQLite database"),
    "foreign": (foreign, NotOurFileError, "another program's database"),
    "foreign wal": (lambda path: foreign(path, wal=True), NotOurFileError, "another program's database"),
    "newer": (newer, NewerFileError, "upgrade episodic"),
    "folder": (lambda path: path.mkdir(), OpenError, "is a folder"),
    "pipe": (os.mkfifo, OpenError, "no regular file"),
    "loop": (lambda path: path.symlink_to(path), OpenError, "log.db"),
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(("make", "error", "words"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
async def test_what_is_no_log_of_ours_is_refused_and_left_alone(
    path: Path, make: Callable[[Path], object], error: type[OpenError], words: str, *, read_only: bool
) -> None:
    """The error says what is there; not a byte of it changes, nothing stands beside it, and no thread is left."""
    make(path)
    before, threads = bytes_in(path.parent), set(threading.enumerate())
    with pytest.raises(error, match=words) as caught:
        await EpisodicLog.open(path, read_only=read_only).__aenter__()
    assert type(caught.value) is error
    assert bytes_in(path.parent) == before
    await assert_no_threads_since(threads)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "name", ["missing/log.db", "file/log.db", ":memory:", "", "a\0b", "\ud83d", "x" * 300, "y/" * 3_000], ids=ascii
)
async def test_where_there_can_be_no_file_is_refused(tmp_path: Path, name: str, *, read_only: bool) -> None:
    """A missing folder, a file in place of a folder, no name, and names that no file has: OpenError, nothing made."""
    (tmp_path / "file").touch()
    threads = set(threading.enumerate())
    given = name if name in {"", ":memory:"} else f"{tmp_path}/{name}"
    with pytest.raises(OpenError):
        await EpisodicLog.open(given, read_only=read_only).__aenter__()
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
    await assert_no_threads_since(threads)


async def test_reading_what_is_not_there_makes_nothing(path: Path) -> None:
    """With read_only=True a missing or an empty file is an error, and stays as it is."""
    with pytest.raises(OpenError, match="there is no log"):
        await EpisodicLog.open(path, read_only=True).__aenter__()
    assert not path.exists()
    path.touch()
    with pytest.raises(NotOurFileError, match="is empty"):
        await EpisodicLog.open(path, read_only=True).__aenter__()
    assert bytes_in(path.parent) == {"log.db": b""}


async def test_an_empty_file_becomes_a_log(path: Path) -> None:
    """A file of no bytes, as mktemp makes one, is as good as none."""
    path.touch()
    async with EpisodicLog.open(path) as log:
        assert (await log.record("a", "s", "user", "x")).id == 1


async def test_a_log_that_could_not_be_opened_can_be_opened_later(path: Path) -> None:
    """After a failure the same object may be entered again, once the reason is gone."""
    path.mkdir()
    log = EpisodicLog.open(path)
    with pytest.raises(OpenError):
        await log.__aenter__()
    path.rmdir()
    async with log:
        assert (await log.record("a", "s", "user", "x")).id == 1


async def test_a_fresh_file_held_by_another_is_busy_in_time(path: Path) -> None:
    """Opening waits for busy_timeout, not for ever, leaves no thread, and works once the file is free."""
    threads = set(threading.enumerate())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BusyError):
            await EpisodicLog.open(path, settings=Settings(busy_timeout=0.1)).__aenter__()
    await assert_no_threads_since(threads)
    async with EpisodicLog.open(path) as log:
        assert (await log.record("a", "s", "user", "x")).id == 1


def test_after_every_refusal_the_process_ends_by_itself(tmp_path: Path) -> None:
    """No wrong path leaves a thread behind that would keep a script alive, and nothing is warned about."""
    for name, (make, _, _) in WRONG_FILES.items():
        make(tmp_path / name)
    done = run(
        """
import asyncio, sys
from episodic import EpisodicLog, OpenError

async def main():
    for path in sys.argv[1:]:
        for read_only in (False, True):
            try:
                async with EpisodicLog.open(path, read_only=read_only):
                    print("opened", path)
            except OpenError:
                print("refused")

asyncio.run(main())
""",
        *[tmp_path / name for name in WRONG_FILES],
        tmp_path / "missing" / "log.db",
        ":memory:",
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["refused"] * 2 * (len(WRONG_FILES) + 2), "")


async def test_closing_with_fifty_in_flight_stores_them(path: Path, sql: Sql) -> None:
    """What was queued when the log is closed is committed, and its callers are told."""
    async with EpisodicLog.open(path, settings=Settings(batch_rows=5)) as log:
        calls = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(50)]
        await asyncio.sleep(0)
    assert all(call.done() for call in calls)
    assert [call.result().id for call in calls] == list(range(1, 51))
    assert sql("SELECT count(*) FROM episodes") == [(50,)]


async def test_a_thousand_tasks_that_nobody_waits_for_are_stored_or_told(path: Path, sql: Sql) -> None:
    """At the end of the block each task that recorded has its receipt; each that came too late has ClosedError."""
    async with EpisodicLog.open(path, settings=Settings(queue_rows=100)) as log:
        early = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(1_000)]
        await asyncio.sleep(0)
        late = [asyncio.create_task(log.record("a", "late", "user", f"{n}")) for n in range(100)]
    answers = await asyncio.gather(*early, *late, return_exceptions=True)
    stored = [answer for answer in answers if isinstance(answer, Episode)]
    assert {type(answer) for answer in answers} <= {Episode, ClosedError}
    assert len(stored) >= 100
    assert sorted(sql("SELECT content FROM episodes")) == sorted((episode.content,) for episode in stored)


def test_a_script_that_waits_for_none_of_its_tasks_loses_none_silently(path: Path, sql: Sql) -> None:
    """A thousand fire-and-forget tasks and a normal exit: all of them are in the file, and the process ends."""
    done = run(
        """
import asyncio, sys
from episodic import EpisodicLog

async def main():
    async with EpisodicLog.open(sys.argv[1]) as log:
        tasks = {asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(1000)}
        await asyncio.sleep(0)

asyncio.run(main())
""",
        path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sql("SELECT count(*) FROM episodes") == [(1_000,)]


async def test_closing_twice_at_once_and_again_is_closing(path: Path) -> None:
    """Any number of tasks may close the log; each waits until it is closed."""
    log = EpisodicLog.open(path)
    await log.aclose()
    await log.__aenter__()
    call = asyncio.create_task(log.record("a", "s", "user", "x"))
    await asyncio.sleep(0)
    await asyncio.gather(*[log.aclose() for _ in range(5)])
    assert call.done()
    assert [file.name for file in path.parent.iterdir()] == ["log.db"]
    await log.aclose()


async def test_a_log_may_be_closed_by_another_task_than_opened_it(path: Path) -> None:
    """Opening and closing are not bound to a task, as a web framework's startup and shutdown are not."""
    log = EpisodicLog.open(path)
    await asyncio.create_task(log.__aenter__())
    await log.record("a", "s", "user", "x")
    await asyncio.create_task(log.aclose())
    assert "closed" in repr(log)


async def test_an_error_in_the_block_passes_unwrapped_and_closes(path: Path) -> None:
    """The caller's own exception is what rises, and the log is closed behind it."""
    threads = set(threading.enumerate())
    with pytest.raises(LookupError, match="own"):
        async with EpisodicLog.open(path) as log:
            await log.record("a", "s", "user", "x")
            raise LookupError("own")  # noqa: EM101, TRY003 - the caller's
    await assert_no_threads_since(threads)


async def test_a_log_is_entered_once(path: Path) -> None:
    """A log that is open, being opened, or was closed cannot be entered again; a second object can."""
    log = EpisodicLog.open(path)
    first, second = await asyncio.gather(log.__aenter__(), log.__aenter__(), return_exceptions=True)
    assert first is log
    assert isinstance(second, ClosedError)
    await log.aclose()
    with pytest.raises(ClosedError, match=r"make another with EpisodicLog\.open"):
        await log.__aenter__()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
async def test_a_log_that_is_not_open_refuses_every_call(
    path: Path, call: Callable[[EpisodicLog], Awaitable[object]]
) -> None:
    """Before opening and after closing each call raises ClosedError at once and says what to do."""
    log = EpisodicLog.open(path)
    with pytest.raises(ClosedError, match="async with"):
        await call(log)
    async with log:
        await log.record("a", "s", "user", "x")
    with pytest.raises(ClosedError, match="open it again"):
        await call(log)
    with pytest.raises(ClosedError):
        log.stats()


async def test_an_iteration_that_outlives_the_log_ends_with_an_error(path: Path) -> None:
    """A reader that is in the middle of a replay or waits in follow learns that the log was closed."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"{n}") for n in range(1_000)])
        replaying, following = log.replay("s"), log.follow(0)
        await anext(replaying)
        for _ in range(1_000):
            await anext(following)
        waiting = asyncio.ensure_future(anext(following))
        await settle()
    with pytest.raises(ClosedError):
        await waiting
    with pytest.raises(ClosedError):
        _ = [episode async for episode in replaying]


async def test_repr_shows_the_live_state(path: Path) -> None:
    """What is queued, how many readers are free, and whether the log is open can be read off."""
    log = EpisodicLog.open(path, settings=Settings(readers=2, queue_rows=100))
    assert repr(log) == f"<EpisodicLog '{path}' not open>"
    async with log:
        assert repr(log) == f"<EpisodicLog '{path}' queue 0/100, readers 2/2 idle>"
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            calls = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(7)]
            await settle()
            assert repr(log) == f"<EpisodicLog '{path}' queue 7/100, readers 2/2 idle>"
            assert log.stats().queued_rows == 7
            assert log.stats().queued_bytes > 7 * len('["a","s","user","0"]')
        await asyncio.gather(*calls)
        async with EpisodicLog.open(path, read_only=True, settings=Settings(readers=3)) as reading:
            assert repr(reading) == f"<EpisodicLog '{path}' readers 3/3 idle>"
    assert repr(log) == f"<EpisodicLog '{path}' closed>"


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_log_refuses_to_be_used_in_another_event_loop(
    path: Path, call: Callable[[EpisodicLog], Awaitable[object]]
) -> None:
    """In a second loop, in another thread's, or after its own has ended, each call is WrongLoopError at once."""

    async def use(log: EpisodicLog) -> None:
        with pytest.raises(WrongLoopError, match="another event loop"):
            await call(log)

    log = EpisodicLog.open(path)
    with asyncio.Runner() as own:
        own.run(log.__aenter__())
        own.run(log.record("a", "s", "user", "x"))
        with asyncio.Runner() as other:
            other.run(use(log))
        thread = threading.Thread(target=lambda: asyncio.run(use(log)))
        thread.start()
        thread.join()
        own.run(log.aclose())
    with asyncio.Runner() as later:
        later.run(use(log))


def test_closing_and_stats_belong_to_the_logs_own_loop(path: Path) -> None:
    """A log cannot be closed or asked for its state from elsewhere, not even where no loop runs."""

    async def close(log: EpisodicLog) -> None:
        with pytest.raises(WrongLoopError):
            await log.aclose()

    log = EpisodicLog.open(path)
    with asyncio.Runner() as own:
        own.run(log.__aenter__())
        with pytest.raises(WrongLoopError):
            log.stats()
        with asyncio.Runner() as other:
            other.run(close(log))
        own.run(log.aclose())


FORKING = """
import asyncio, os, sys
from episodic import EpisodicLog, WrongLoopError

async def outcome(call):
    try:
        return await call
    except WrongLoopError:
        return "WrongLoopError"

async def in_child(log, path):
    answers = [await outcome(log.record("a", "s", "user", "child")), await outcome(anext(log.replay("s")))]
    answers += [await outcome(log.aclose()), await outcome(EpisodicLog.open(path).__aenter__())]
    async with EpisodicLog.open(path + ".child") as own:
        answers.append((await own.record("a", "s", "user", "own file")).id)
    return answers

runner = asyncio.Runner()
log = EpisodicLog.open(sys.argv[1])
runner.run(log.__aenter__())
runner.run(log.record("a", "s", "user", "before"))
if not (child := os.fork()):
    print(asyncio.run(in_child(log, sys.argv[1])), flush=True)
    os._exit(0)
status = os.waitpid(child, 0)[1]
runner.run(log.record("a", "s", "user", "after"))
runner.run(log.aclose())
runner.close()
# Closed before the fork: the child may open it.
if not (child := os.fork()):
    async def again():
        async with EpisodicLog.open(sys.argv[1]) as own:
            print((await own.record("a", "s", "user", "child")).id, flush=True)
    asyncio.run(again())
    os._exit(0)
sys.exit(status or os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_log_refuses_to_be_used_behind_a_fork(path: Path, sql: Sql) -> None:
    """In a forked child the log, and its file as long as the parent had it open, are WrongLoopError, never a hang."""
    done = run(FORKING, path, options=("-W", "ignore::DeprecationWarning"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(["WrongLoopError"] * 4 + [1]), "3"]
    assert sql("SELECT content FROM episodes ORDER BY id") == [("before",), ("after",), ("child",)]


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param("asyncio.run(main())", id="asyncio.run"),
        pytest.param("asyncio.new_event_loop().run_until_complete(main())", id="a loop that is never closed"),
    ],
)
def test_a_script_that_never_closes_the_log_is_warned_and_ends(path: Path, sql: Sql, ending: str) -> None:
    """When a script raises after opening, its own error and a ResourceWarning are what it shows, and it exits."""
    done = run(
        """
import asyncio, sys
from episodic import EpisodicLog

async def main():
    global log
    log = EpisodicLog.open(sys.argv[1])
    await log.__aenter__()
    await log.record("a", "s", "user", "x")
    raise LookupError("own")

"""
        + ending,
        path,
        options=("-W", "always::ResourceWarning"),
    )
    assert done.returncode == 1
    assert "LookupError: own" in done.stderr
    assert f"ResourceWarning: {path}: the log was never closed" in done.stderr
    assert sql("SELECT content FROM episodes") == [("x",)]


async def test_a_log_that_was_closed_does_not_warn(path: Path, recwarn: pytest.WarningsRecorder) -> None:
    """Nothing is said about a log that was closed, or that was never opened."""
    EpisodicLog.open(path)
    log = EpisodicLog.open(path)
    await log.__aenter__()
    await log.aclose()
    del log
    gc.collect()
    assert not recwarn.list


@pytest.fixture
async def filled(path: Path) -> list[Episode]:
    """A closed log of a few episodes."""
    async with EpisodicLog.open(path) as log:
        return await log.record_many([Draft("a", "s", "user", f"about a refund {n}", user_id="u") for n in range(10)])


async def test_a_log_opened_for_reading_reads_and_changes_nothing(path: Path, filled: list[Episode]) -> None:
    """Every read works, every write is ReadOnlyError, the file stays as it is, and nothing is left beside it."""
    before = bytes_in(path.parent)
    async with EpisodicLog.open(path, read_only=True) as log:
        assert [e async for e in log.replay("s")] == filled
        assert len((await log.search("a", "refund", where=Filter(user_id="u"))).hits) == 10
        assert len((await log.sessions("a"))) == 1
        for name in ("record", "record_many", "resolve"):
            with pytest.raises(ReadOnlyError, match="read_only=True"):
                await CALLS[name](log)
        assert (log.stats().recorded, log.stats().queued_rows) == (0, 0)
    assert bytes_in(path.parent) == before


async def test_a_log_opened_for_reading_follows_one_that_writes(path: Path) -> None:
    """Beside an open log a reader sees what is committed, and leaves the writer's files alone when it goes."""
    async with EpisodicLog.open(path) as log:
        first = await log.record("a", "s", "user", "x")
        async with EpisodicLog.open(path, read_only=True) as reading:
            assert await reading.get(first.id) == first
            second = await log.record("a", "s", "user", "y")
            assert await reading.recent("a") == [second, first]
        assert (await log.record("a", "s", "user", "z")).id == 3
        assert log.stats().wal_bytes > 0


UNPRIVILEGED = """
import asyncio, os, sys
from episodic import EpisodicLog, OpenError, ReadOnlyError
folder, path, other = sys.argv[1:]

async def use(path, read_only):
    try:
        async with EpisodicLog.open(path, read_only=read_only) as log:
            found = await log.search("a", "refund")
            return len([e async for e in log.replay("s")]), len(found.hits), found.mode
    except (OpenError, ReadOnlyError) as error:
        return type(error).__name__

async def main():
    await use(other, False)
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    print(await use(path, False), await use(path, True), await use(folder + "/new.db", False), sep="; ")

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "expected"),
    [
        (0o555, 0o644, "ReadOnlyError; (10, 10, 'fts'); ReadOnlyError"),
        (0o555, 0o444, "ReadOnlyError; (10, 10, 'fts'); ReadOnlyError"),
        (0o777, 0o444, "ReadOnlyError; (10, 10, 'fts'); (0, 0, 'fts')"),
        (0o777, 0o000, "ReadOnlyError; OpenError; (0, 0, 'fts')"),
        (0o000, 0o644, "OpenError; OpenError; OpenError"),
    ],
)
async def test_what_this_user_may_not_write_can_still_be_read(
    open_folder: Path, path: Path, filled: list[Episode], folder_mode: int, file_mode: int, expected: str
) -> None:
    """An unwritable file or folder is ReadOnlyError to write, and to read it needs neither a WAL nor a lock file."""
    copy = open_folder / "log.db"
    shutil.copy(path, copy)
    copy.chmod(file_mode)
    open_folder.chmod(folder_mode)
    done = run(UNPRIVILEGED, open_folder, copy, path)
    open_folder.chmod(0o755)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (expected, "", 0)
    if folder_mode != 0o777:
        assert [file.name for file in open_folder.iterdir()] == ["log.db"]
    assert copy.read_bytes() == path.read_bytes()


async def intact(path: Path) -> bool:
    """Tell whether the search index is exactly that of the log, by FTS5's own strict check."""
    with closing(sqlite3.connect(path)) as db:
        try:
            db.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError:
            return False
        return db.execute("SELECT count(*) FROM episodes_fts_docsize").fetchone() == (
            db.execute("SELECT count(*) FROM episodes").fetchone()
        )


@pytest.fixture
async def caught(caplog: pytest.LogCaptureFixture) -> AsyncIterator[list[str]]:
    """What the log warns about."""
    with caplog.at_level(logging.WARNING, logger="episodic"):
        yield caplog.messages


LOSSES = {
    "one row": (
        "INSERT INTO episodes_fts (episodes_fts, rowid, scope, author, content) "
        "SELECT 'delete', id, scope, author, content FROM episodes_indexed WHERE id = 4",
        1,
        "lacks 1 episodes",
    ),
    "all rows": ("INSERT INTO episodes_fts (episodes_fts) VALUES ('delete-all')", 10, "lacks 10 episodes"),
    "the table": ("DROP TABLE episodes_fts", 10, "lacks 10 episodes"),
    "an orphan": ("DELETE FROM episodes WHERE id = 4", 9, "holds deleted episodes; indexing all 9"),
    "an orphan, by turns": ("UPDATE episodes SET id = 40 WHERE id = 4", 10, "holds deleted episodes"),
}


@pytest.mark.parametrize(("loss", "reindexed", "warning"), LOSSES.values(), ids=LOSSES.keys())
async def test_an_index_that_differs_from_the_log_is_healed_at_open_and_told(  # noqa: PLR0917
    path: Path, sql: Sql, filled: list[Episode], caught: list[str], loss: str, reindexed: int, warning: str
) -> None:
    """Rows that the index lost, or holds of deleted episodes, are noticed, put right, logged and counted; once."""
    sql(loss)
    assert loss == LOSSES["the table"][0] or not await intact(path)
    async with EpisodicLog.open(path) as log:
        assert log.stats().reindexed == reindexed
        assert len((await log.search("a", "refund", limit=20)).hits) == sql("SELECT count(*) FROM episodes")[0][0]
    assert [warning in message and str(path) in message for message in caught] == [True]
    assert await intact(path)
    async with EpisodicLog.open(path) as log:
        assert log.stats().reindexed == 0
    assert len(caught) == 1


async def test_what_a_build_without_fts5_wrote_is_indexed_at_the_next_open(
    path: Path, filled: list[Episode], caught: list[str], without_fts5: Callable[[], None]
) -> None:
    """A build without FTS5 writes, reads and searches the same file; a build with it indexes what is missing."""
    async with EpisodicLog.open(path) as log:
        assert log.stats().mode == "like"
        await log.record("a", "s", "user", "another refund", user_id="u")
        assert len((await log.search("a", "refund", limit=20)).hits) == 11
    assert not caught
    without_fts5()
    async with EpisodicLog.open(path) as log:
        assert (log.stats().mode, log.stats().reindexed) == ("fts", 1)
        assert len((await log.search("a", "refund", limit=20)).hits) == 11
    assert await intact(path)
    assert len(caught) == 1


async def test_a_file_that_a_build_without_fts5_made_gets_its_index_later(
    path: Path, caught: list[str], without_fts5: Callable[[], None]
) -> None:
    """The schema of a log is the same with and without FTS5, but for the index, which comes when it can."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"refund {n}") for n in range(5)])
    without_fts5()
    async with EpisodicLog.open(path, read_only=True) as log:
        assert log.stats().mode == "like"
        assert len((await log.search("a", "refund")).hits) == 5
    async with EpisodicLog.open(path) as log:
        assert (log.stats().mode, log.stats().reindexed) == ("fts", 5)
    assert await intact(path)


async def test_opening_a_whole_log_warns_about_nothing(path: Path, filled: list[Episode], caught: list[str]) -> None:
    """An index that is as it should be is left alone."""
    async with EpisodicLog.open(path) as log:
        assert log.stats().reindexed == 0
    assert not caught
    assert await intact(path)
