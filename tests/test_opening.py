"""Opening: what there can be at a path, what is refused and left alone, and what reading only needs and leaves."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from episodic import (
    BusyError,
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
)
from episodic.sqlite import migrate
from episodic.sqlite.connect import read_sql
from tests.conftest import Sql, run_script

pytestmark = pytest.mark.usefixtures("no_thread_left")

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2"


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


@pytest.fixture
async def filled(path: Path) -> list[Episode]:
    """A closed log of a few episodes."""
    async with EpisodicLog.open(path) as log:
        return await log.record_many([Draft("a", "s", "user", f"about a refund {n}", user_id="u") for n in range(10)])


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


def test_a_fresh_file_says_which_version_it_has() -> None:
    """Every migration has its number, and the last one's stands in the file beside the mark of ours."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(migrate.STAMP_VERSION)
        db.execute(migrate.STAMP_APPLICATION)
        assert db.execute("PRAGMA user_version").fetchone() == (migrate.VERSION,) == (len(migrate.MIGRATIONS),)
        assert db.execute("PRAGMA application_id").fetchone() == (migrate.APPLICATION_ID,)


@pytest.mark.parametrize("version", range(1, migrate.VERSION))
async def test_an_older_file_becomes_what_a_fresh_one_is(path: Path, sql: Sql, version: int) -> None:
    """A file of each earlier version gets the present schema at open, keeps its episodes, and takes more."""
    async with EpisodicLog.open(path) as log:
        await log.record("a", "s", "user", "kept since")
    fresh = sql(SCHEMA)
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        for script in migrate.MIGRATIONS[:version]:
            db.executescript(read_sql(script))
        db.execute(migrate.STAMP_APPLICATION)
        db.execute(f"PRAGMA user_version = {version}")
        db.execute(
            "INSERT INTO episodes (agent_id, session_id, timestamp, role, content, metadata, archived) "
            "VALUES ('a', 's', 1, 'user', 'kept since', '{}', 0)"
        )
        db.execute("UPDATE log_state SET next_id = 2")
        db.execute("INSERT INTO agents (agent_id, episodes) VALUES ('a', 1)")
        db.execute("INSERT INTO sessions (agent_id, session_id, first, last, episodes) VALUES ('a', 's', 1, 1, 1)")
        db.commit()
    async with EpisodicLog.open(path) as log:
        more = await log.record("a", "s", "user", "and more")
        assert [episode.content async for episode in log.replay("s")] == ["kept since", "and more"]
        assert (await log.search("a", "kept")).hits[0].episode.content == "kept since"
        assert await log.retain(older_than=more.timestamp) == 1
    assert sql(SCHEMA) == fresh


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
    before = bytes_in(path.parent)
    with pytest.raises(error, match=words) as caught:
        await EpisodicLog.open(path, read_only=read_only).__aenter__()
    assert type(caught.value) is error
    assert bytes_in(path.parent) == before


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "name", ["missing/log.db", "file/log.db", ":memory:", "", "a\0b", "\ud83d", "x" * 300, "y/" * 3_000], ids=ascii
)
async def test_where_there_can_be_no_file_is_refused(tmp_path: Path, name: str, *, read_only: bool) -> None:
    """A missing folder, a file in place of a folder, no name, and names that no file has: OpenError, nothing made."""
    (tmp_path / "file").touch()
    given = name if name in {"", ":memory:"} else f"{tmp_path}/{name}"
    with pytest.raises(OpenError):
        await EpisodicLog.open(given, read_only=read_only).__aenter__()
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


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
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(BusyError):
            await EpisodicLog.open(path, settings=Settings(busy_timeout=0.1)).__aenter__()
    async with EpisodicLog.open(path) as log:
        assert (await log.record("a", "s", "user", "x")).id == 1


async def test_opening_waits_for_who_writes_a_fresh_file(path: Path) -> None:
    """SQLite answers "locked" at once when the journal is to be switched while another writes; opening waits for it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        opening = asyncio.create_task(EpisodicLog.open(path).__aenter__())
        done, _ = await asyncio.wait([opening], timeout=0.2)
        assert not done
        other.execute("COMMIT")
        log = await opening
    await log.aclose()


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("spared", [0, 1, 2, 3])
async def test_a_connection_that_cannot_be_made_closes_those_before_it(
    path: Path, filled: list[Episode], monkeypatch: pytest.MonkeyPatch, *, spared: int, read_only: bool
) -> None:
    """When the process runs out of file handles while it opens, the error is typed and no connection stays."""
    made, connect = count(), sqlite3.connect

    def connect_at_first(*args: Any, **keywords: Any) -> sqlite3.Connection:  # noqa: ANN401 - as sqlite3.connect
        if next(made) == spared:
            raise sqlite3.OperationalError(f"unable to open database file {spared}")  # noqa: EM102, TRY003
        db: sqlite3.Connection = connect(*args, **keywords)
        return db

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect_at_first)
        with pytest.raises(OpenError, match=f"unable to open database file {spared}"):
            await EpisodicLog.open(path, settings=Settings(readers=4), read_only=read_only).__aenter__()
    assert bytes_in(path.parent) == {"log.db": path.read_bytes()}
    async with EpisodicLog.open(path) as log:
        assert await log.newest_id() == 10


def test_after_every_refusal_the_process_ends_by_itself(tmp_path: Path) -> None:
    """No wrong path leaves a thread behind that would keep a script alive, and nothing is warned about."""
    for name, (make, _, _) in WRONG_FILES.items():
        make(tmp_path / name)
    done = run_script(
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


async def test_a_log_opened_for_reading_reads_and_changes_nothing(path: Path, filled: list[Episode]) -> None:
    """Every read works, every write is ReadOnlyError, the file stays as it is, and nothing is left beside it."""
    before = bytes_in(path.parent)
    async with EpisodicLog.open(path, read_only=True) as log:
        assert [e async for e in log.replay("s")] == filled
        assert len((await log.search("a", "refund", where=Filter(user_id="u"))).hits) == 10
        assert len(await log.sessions("a")) == 1
        with pytest.raises(ReadOnlyError, match="read_only=True"):
            await log.record("a", "s", "user", "x")
        with pytest.raises(ReadOnlyError, match="read_only=True"):
            await log.record_many([Draft("a", "s", "user", "x")])
        with pytest.raises(ReadOnlyError, match="read_only=True"):
            await log.resolve("a", "s", "success")
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
    ("modes", "expected"),
    [
        ((0o555, 0o644), "ReadOnlyError; (10, 10, 'fts'); ReadOnlyError"),
        ((0o555, 0o444), "ReadOnlyError; (10, 10, 'fts'); ReadOnlyError"),
        ((0o777, 0o444), "ReadOnlyError; (10, 10, 'fts'); (0, 0, 'fts')"),
        ((0o777, 0o000), "ReadOnlyError; OpenError; (0, 0, 'fts')"),
        ((0o000, 0o644), "OpenError; OpenError; OpenError"),
    ],
)
async def test_what_this_user_may_not_write_can_still_be_read(
    open_folder: Path, path: Path, filled: list[Episode], modes: tuple[int, int], expected: str
) -> None:
    """An unwritable file or folder is ReadOnlyError to write, and to read it needs neither a WAL nor a lock file."""
    folder_mode, file_mode = modes
    copy = open_folder / "log.db"
    shutil.copy(path, copy)
    copy.chmod(file_mode)
    open_folder.chmod(folder_mode)
    done = run_script(UNPRIVILEGED, open_folder, copy, path)
    open_folder.chmod(0o755)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (expected, "", 0)
    if folder_mode != 0o777:
        assert [file.name for file in open_folder.iterdir()] == ["log.db"]
    assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("odd", [None, 5, [], b"log.db"])
def test_what_is_no_path_is_refused_at_once(odd: Any) -> None:  # noqa: ANN401
    """The call itself says so, before anything is opened."""
    with pytest.raises(OpenError, match="path must be"):
        EpisodicLog.open(odd)
