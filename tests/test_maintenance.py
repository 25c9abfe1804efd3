"""Copies that can be trusted, an examination that changes nothing, repair, and giving back free space."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from episodic import BusyError, CorruptError, Draft, Episode, EpisodicLog, NotOurFileError, OpenError
from episodic.maintenance import back_up, diagnose, repair, restore, vacuum
from tests.conftest import Call, Sql
from tests.test_healing import intact


@pytest.fixture
async def filled(path: Path) -> list[Episode]:
    """A closed log of some episodes, and what they are."""
    async with EpisodicLog.open(path) as log:
        drafts = [Draft(f"a{n % 3}", f"s{n % 7}", "user", f"refund {n} " * 20, user_id=f"u{n}") for n in range(500)]
        episodes = await log.record_many(drafts)
        await log.resolve("a0", "s0", "success")
    return episodes


async def episodes_in(path: Path) -> list[Episode]:
    """Read a log."""
    async with EpisodicLog.open(path, read_only=True) as log:
        return [episode async for episode in log.scan()]


async def test_a_backup_restores_what_there_was(path: Path, tmp_path: Path, filled: list[Episode]) -> None:
    """A copy is one file of its owner's, and a log made of it is the log, index and outcomes included."""
    copy, again = tmp_path / "copy.db", tmp_path / "again.db"
    assert await back_up(path, copy) == len(filled)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert await restore(copy, again) == len(filled)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["again.db", "copy.db", "log.db"]
    assert await episodes_in(again) == filled
    assert intact(again)
    async with EpisodicLog.open(again) as log:
        assert log.stats().reindexed == 0
        assert (await log.sessions("a0", limit=100))[-1].outcome in {"success", None}
        assert len((await log.search("a1", "refund 4")).hits) > 0
        assert (await log.record("a0", "s0", "user", "on we go")).id == len(filled) + 1


async def test_a_backup_is_of_one_moment_while_others_write(path: Path, tmp_path: Path) -> None:
    """Batches that are committed during the copy are wholly in it or wholly absent, and none waits for it."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"before {n}") for n in range(2_000)])
        stop = asyncio.Event()

        async def write() -> None:
            while not stop.is_set():
                await log.record_many([Draft("a", "s", "user", "during")] * 10)

        writing = asyncio.create_task(write())
        for place in range(5):
            await back_up(path, tmp_path / f"copy{place}.db")
        stop.set()
        await writing
    for place in range(5):
        copied = await episodes_in(tmp_path / f"copy{place}.db")
        assert (len(copied) - 2_000) % 10 == 0
        assert intact(tmp_path / f"copy{place}.db")


async def test_a_backup_never_overwrites(path: Path, tmp_path: Path, filled: list[Episode]) -> None:
    """What stands at the target stays, and so does the log itself."""
    other = tmp_path / "other.db"
    other.write_text("precious", "ascii")
    for target in (other, path):
        with pytest.raises(OpenError, match="exists already; name a file that does not"):
            await back_up(path, target)
    assert other.read_text("ascii") == "precious"
    assert await episodes_in(path) == filled


async def test_a_backup_of_what_is_no_log_is_refused(tmp_path: Path) -> None:
    """Another program's database, a text and nothing at all are told apart from a log; no copy is left."""
    with closing(sqlite3.connect(tmp_path / "other.db")) as db, db:
        db.execute("CREATE TABLE notes (text)")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be read as one" * 20, "ascii")
    for name, error in (("other.db", NotOurFileError), ("text.db", NotOurFileError), ("nothing.db", OpenError)):
        with pytest.raises(error, match=name):
            await back_up(tmp_path / name, tmp_path / "copy.db")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.db", "text.db"]


async def test_a_damaged_log_gives_no_backup(path: Path, tmp_path: Path, filled: list[Episode]) -> None:
    """A page that is overwritten, or an index that is another log's, is found out before the copy counts."""
    assert filled
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO episodes_fts (episodes_fts) VALUES ('delete-all')")
    with pytest.raises(CorruptError, match="`episodic doctor --repair` makes it anew"):
        await back_up(path, tmp_path / "copy.db")
    with path.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(os.urandom(2 * 4096))
    with pytest.raises(CorruptError, match="the database is damaged; restore a backup"):
        await back_up(path, tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir()] == ["log.db"]


async def test_a_backup_that_is_cancelled_leaves_nothing(path: Path, tmp_path: Path) -> None:
    """Cancelled in the middle of a large copy, it ends at its next step and takes away what it has written."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", "x" * 1_000_000)] * 40)
    steps: list[int] = []
    loop = asyncio.get_running_loop()

    def on_pages(done: int, _total: int) -> None:
        steps.append(done)
        if len(steps) == 1:
            loop.call_soon_threadsafe(copying.cancel)
            # The next step finds out.
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0.05), loop).result()

    copying = asyncio.create_task(back_up(path, tmp_path / "copy.db", on_pages=on_pages))
    with suppress(asyncio.CancelledError):
        await copying
    assert copying.cancelled()
    assert [file.name for file in tmp_path.iterdir()] == ["log.db"]
    assert len(steps) == 1


def states(findings: list[tuple[str, str, str]]) -> dict[str, str]:
    """Say how each thing was found."""
    return {name: state for name, state, _ in findings}


async def test_a_healthy_log_has_no_fault_and_is_not_touched(path: Path, filled: list[Episode]) -> None:
    """Every check has its answer, the file stays as it is, and nothing is left beside it."""
    assert filled
    before = path.read_bytes()
    found = states([*await diagnose(path)])
    deep = states([*await diagnose(path, deep=True)])
    assert found == deep
    expected = "sqlite disk access wal room file journal pages free counts removed ids index"
    assert " ".join(found) == expected
    assert {state for name, state in found.items() if name not in {"sqlite", "disk", "room"}} == {"ok"}
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


FAULTS: dict[str, tuple[str, str]] = {
    "an index row": ("DELETE FROM episodes_fts_docsize WHERE id & 0xFFFFFF = 4", "index"),
    "a roll-up": ("UPDATE sessions SET episodes = episodes + 1 WHERE session_id = 's1'", "counts"),
    "an id": ("UPDATE log_state SET next_id = 3", "ids"),
    "the state": ("DELETE FROM log_state", "ids"),
    "the version": ("PRAGMA user_version = 99", "file"),
    "the owner": ("PRAGMA application_id = 7", "file"),
}


@pytest.mark.parametrize(("damage", "name"), FAULTS.values(), ids=FAULTS.keys())
async def test_each_fault_is_found_under_its_name(
    path: Path, sql: Sql, filled: list[Episode], damage: str, name: str
) -> None:
    """What is wrong is a fault, with what to do."""
    assert filled
    sql(damage)
    faults = [finding for finding in await diagnose(path) if finding.state == "fault"]
    assert [finding.name for finding in faults] == [name]


async def test_words_that_are_not_those_of_the_episodes_need_a_deep_look(
    path: Path, sql: Sql, filled: list[Episode]
) -> None:
    """An episode that was changed behind the index counts as indexed; only its words tell, and repair mends it."""
    sql("UPDATE episodes SET content = 'something else' WHERE id = 4")
    assert states([*await diagnose(path)])["index"] == "ok"
    assert states([*await diagnose(path, deep=True)])["index"] == "fault"
    assert await repair(path) == len(filled)
    assert states([*await diagnose(path, deep=True)])["index"] == "ok"
    assert intact(path)


async def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    """A text is no database, and an examination says so instead of failing."""
    (tmp_path / "log.db").write_text("no database at all, but long enough to be read as one" * 20, "ascii")
    assert states([*await diagnose(tmp_path / "log.db")])["file"] == "fault"
    with pytest.raises(OpenError, match="there is no log"):
        await diagnose(tmp_path / "missing.db")


async def test_others_that_may_read_a_log_are_warned_of(path: Path, filled: list[Episode]) -> None:
    """A log holds what customers said: its file is for its owner."""
    assert filled
    path.chmod(0o644)
    assert states([*await diagnose(path)])["access"] == "warning"


async def test_a_vacuum_gives_free_space_back(path: Path, sql: Sql, filled: list[Episode]) -> None:
    """What was deleted takes no room any more, and everything else is there."""
    sql("CREATE TABLE ballast (text)")
    sql("INSERT INTO ballast VALUES (?)", "x" * 5_000_000)
    sql("DROP TABLE ballast")
    assert states([*await diagnose(path)])["free"] == "warning"
    before, after, is_folded = await vacuum(path)
    assert is_folded
    assert before - after >= 5_000_000
    assert path.stat().st_size == after
    assert states([*await diagnose(path)])["free"] == "ok"
    assert await episodes_in(path) == filled
    assert intact(path)


async def test_what_needs_the_log_to_itself_says_who_is_in_the_way(path: Path, filled: list[Episode]) -> None:
    """While another program holds the file nothing is changed, and the error is typed."""
    assert filled
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BusyError):
            await vacuum(path, busy_timeout=0.05)
        with pytest.raises(BusyError):
            await repair(path, busy_timeout=0.05)


@pytest.mark.usefixtures("filled")
def test_the_commands_do_what_they_say(call: Call, path: Path, tmp_path: Path) -> None:
    """Backup, restore, vacuum and doctor, as a person and as a script run them."""
    run: Callable[..., str] = lambda *given: call(*given, "--db", str(path)).stdout  # noqa: E731
    assert run("backup", "copy.db").startswith("backed up 500 episodes, ")
    assert call("restore", "copy.db", "--db", "again.db").stdout.startswith("restored 500 episodes, ")
    assert " before, " in run("vacuum")
    assert "word by word" in run("doctor", "--deep")
    done = call("backup", "copy.db", "--db", str(path))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO episodes_fts (episodes_fts) VALUES ('delete-all')")
    assert call("doctor", "--db", str(path)).returncode == 3
    repaired = call("doctor", "--repair", "--db", str(path))
    assert (repaired.returncode, "made anew from 500 episodes" in repaired.stdout) == (0, True)
    assert intact(path)
    assert "nothing was changed" in run("doctor", "--repair")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE episodes SET content = 'changed behind the index' WHERE id = 7")
    assert "--repair makes it anew" in call("doctor", "--deep", "--db", str(path)).stdout
    assert "made anew from 500 episodes" in run("doctor", "--repair")
    assert intact(path)
    missing = call("vacuum", "--db", "missing.db")
    assert (missing.returncode, missing.stdout, "there is no log at" in missing.stderr) == (3, "", True)
    assert (tmp_path / "again.db").exists()
