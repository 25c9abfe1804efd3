"""A disk that is full or broken: typed errors that say what is known, reads go on, and writing recovers by itself.

Each scenario runs in a process of its own, before whose file system `failing_disk.c` stands.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from errno import EIO, ENOSPC
from pathlib import Path

import pytest

from episodic import DiskFullError, Draft, Episode, EpisodicLog, Settings, StorageError
from episodic.events import Checkpointed, Event
from episodic.maintenance import diagnose

ROOT = Path(__file__).parents[1]
FULL = Settings(durability="full")
FILE, WAL, EITHER = 0, 1, 2
OLD = datetime(2020, 1, 1, tzinfo=UTC)
MEBIBYTE = 2**20
NOTHING_STORED = r"the disk is full; nothing was stored: make room, writing goes on by itself"
UNKNOWN = "whether it is stored is unknown"


class Disk:
    """What the process's disk does, as failing_disk.c is told."""

    def __init__(self, order: Path) -> None:
        """Begin with a disk that is well."""
        self.order = order

    @contextmanager
    def fails(self, kind: str, error: int, file: int) -> Iterator[None]:
        """Have calls fail inside the block."""
        self.order.write_text(f"{kind} {error} {file}")
        try:
            yield
        finally:
            self.order.unlink()


Scenario = Callable[[Path, Disk], Awaitable[None]]
SCENARIOS: dict[str, Scenario] = {}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """failing_disk.c, compiled."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or sys.platform != "linux":
        pytest.skip("a library that makes a disk fail needs a C compiler and Linux")
    library = tmp_path_factory.mktemp("failing") / "failing_disk.so"
    source = Path(__file__).with_name("failing_disk.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def play(scenario: str, path: Path, library: Path) -> subprocess.CompletedProcess[str]:
    """Run a scenario on a failing disk."""
    order = path.with_name("order")
    preloaded = {"LD_PRELOAD": str(library), "FAILING_DISK_FILE": str(path), "FAILING_DISK_ORDER": str(order)}
    env = os.environ | preloaded | {"PYTHONPATH": str(ROOT)}
    code = f"from tests.test_faults import main; main({scenario!r}, {os.fspath(path)!r}, {os.fspath(order)!r})"
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)


def main(scenario: str, path: str, order: str) -> None:
    """Be the process of a scenario."""
    asyncio.run(SCENARIOS[scenario](Path(path), Disk(Path(order))))  # type: ignore[arg-type]


def on_failing_disk(scenario: Scenario) -> Callable[[Path, Path], None]:
    """Make a test of a scenario."""
    name = scenario.__name__
    SCENARIOS[name] = scenario

    def test(path: Path, library: Path) -> None:
        done = play(name, path, library)
        assert done.returncode == 0, done.stderr

    test.__doc__ = scenario.__doc__
    return test


async def contents(log: EpisodicLog) -> list[str]:
    """Return what is said in the one session."""
    return [episode.content async for episode in log.replay("s")]


async def expect_sound(path: Path) -> None:
    """Check a closed log: no fault in it, its index word for word."""
    assert [finding for finding in await diagnose(path, deep=True) if finding.state == "fault"] == []


def say(log: EpisodicLog, content: str) -> Awaitable[Episode]:
    """Record one episode whose content is its event id, too."""
    return log.record("a", "s", "user", content, event_id=content)


@on_failing_disk
async def test_a_committed_batch_is_acknowledged_whatever_becomes_of_the_look_at_the_write_ahead_log(
    path: Path, disk: Disk
) -> None:
    """Where it cannot be read to see how long it is, that is logged, and who records has the answer."""
    async with EpisodicLog.open(path) as log:
        await say(log, "before")
        with disk.fails("r", EIO, WAL):
            assert (await log.record("a", "s", "user", "meanwhile")).id == 2
        assert await contents(log) == ["before", "meanwhile"]
        assert await log.retain(older_than=timedelta()) == 2
    await expect_sound(path)


@on_failing_disk
async def test_a_full_disk_stores_nothing_and_writing_goes_on_when_there_is_room(path: Path, disk: Disk) -> None:
    """Each call says that nothing was stored, reads go on meanwhile, and with room the same log writes again."""
    async with EpisodicLog.open(path) as log:
        await say(log, "before")
        with disk.fails("w", ENOSPC, EITHER):
            for _ in range(3):
                with pytest.raises(DiskFullError, match=NOTHING_STORED):
                    await say(log, "refund")
                assert await contents(log) == ["before"]
                assert (await log.search("a", "refund")).hits == ()
        stored = await say(log, "refund")
        assert (await say(log, "refund")).id == stored.id
        assert await contents(log) == ["before", "refund"]
        assert (await log.search("a", "refund")).hits[0].episode == stored
    await expect_sound(path)


@on_failing_disk
async def test_hundreds_that_met_a_full_disk_are_stored_once_when_they_try_again(path: Path, disk: Disk) -> None:
    """Nobody is told of a success that was none, nobody waits for ever, and a retry stores each exactly once."""
    async with EpisodicLog.open(path) as log:
        await say(log, "before")
        texts = [f"call {n}" for n in range(300)]
        with disk.fails("w", ENOSPC, WAL):
            failed = await asyncio.gather(*(say(log, text) for text in texts), return_exceptions=True)
        assert {type(answer) for answer in failed} == {DiskFullError}
        await asyncio.gather(*(say(log, text) for text in texts * 2))
        assert sorted(await contents(log)) == sorted(["before", *texts])
    await expect_sound(path)


@on_failing_disk
async def test_a_sync_that_fails_leaves_unknown_what_a_retry_settles(path: Path, disk: Disk) -> None:
    """The commit may be on the disk or not: the error says so, and a retry by event id stores it once."""
    async with EpisodicLog.open(path, settings=FULL) as log:
        await say(log, "before")
        with disk.fails("s", EIO, WAL):
            for _ in range(2):
                with pytest.raises(StorageError, match=UNKNOWN):
                    await say(log, "during")
            assert "before" in await contents(log)
        await say(log, "during")
        await say(log, "after")
        assert await contents(log) == ["before", "during", "after"]
    await expect_sound(path)


@on_failing_disk
async def test_a_write_that_fails_leaves_unknown_what_a_retry_settles(path: Path, disk: Disk) -> None:
    """So it is when the disk fails in the middle of a write, of one draft as of many."""
    async with EpisodicLog.open(path) as log:
        await say(log, "before")
        many = [Draft("a", "s", "user", f"part {n}", event_id=f"part {n}") for n in range(400)]
        with disk.fails("w", EIO, WAL):
            with pytest.raises(StorageError, match=UNKNOWN):
                await say(log, "during")
            with pytest.raises(StorageError, match=UNKNOWN):
                await log.record_many(many)
            assert await contents(log) == ["before"]
        await say(log, "during")
        await log.record_many(many)
        assert await contents(log) == ["before", "during", *(draft.content for draft in many)]
    await expect_sound(path)


async def fold_on_failing_disk(path: Path, disk: Disk, kind: str, error: int) -> None:
    """Fill the write-ahead log while the database's file fails, and again when it is well."""
    events: list[Event] = []
    async with EpisodicLog.open(path, on_event=events.append) as log:

        async def fill() -> None:
            for _ in range(3):
                await log.record_many([Draft("a", "s", "user", "x" * MEBIBYTE) for _ in range(15)])

        with disk.fails(kind, error, FILE):
            await fill()
            assert not any(isinstance(event, Checkpointed) for event in events)
            assert len(await contents(log)) == 45
        await fill()
        assert any(isinstance(event, Checkpointed) for event in events)
        assert len(await contents(log)) == 90
    assert not path.with_name("log.db-wal").exists()


@on_failing_disk
async def test_a_full_disk_while_folding_fails_no_commit(path: Path, disk: Disk) -> None:
    """What was committed is safe in the write-ahead log; it is folded in later."""
    await fold_on_failing_disk(path, disk, "w", ENOSPC)
    await expect_sound(path)


@on_failing_disk
async def test_a_sync_that_fails_while_folding_fails_no_commit(path: Path, disk: Disk) -> None:
    """Nor does a disk that cannot say whether the file itself is written."""
    await fold_on_failing_disk(path, disk, "s", EIO)
    await expect_sound(path)


@on_failing_disk
async def test_a_log_that_cannot_fold_when_it_closes_keeps_its_write_ahead_log(path: Path, disk: Disk) -> None:
    """Closing on a full disk is no error, and the next one who opens the file finds everything."""
    async with EpisodicLog.open(path) as log:
        await say(log, "before")
        disk.order.write_text(f"w {ENOSPC} {FILE}")
    disk.order.unlink()
    async with EpisodicLog.open(path) as log:
        assert await contents(log) == ["before"]
    await expect_sound(path)


@on_failing_disk
async def test_a_retention_that_meets_a_full_disk_goes_on_with_the_next(path: Path, disk: Disk) -> None:
    """It says that the disk is full, loses no episode that is not due, and the next one ends what it began."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"old {n}", timestamp=OLD) for n in range(900)])
        await say(log, "new")
        with disk.fails("w", ENOSPC, WAL):
            with pytest.raises(DiskFullError, match="the disk is full"):
                await log.retain(older_than=datetime(2021, 1, 1, tzinfo=UTC))
            assert len(await contents(log)) == 901
        assert await log.retain(older_than=datetime(2021, 1, 1, tzinfo=UTC)) == 900
        assert await contents(log) == ["new"]
    await expect_sound(path)


@on_failing_disk
async def test_an_erasure_without_room_is_pending_until_there_is(path: Path, disk: Disk) -> None:
    """Out of every answer at once; the receipt says why the bytes are still there, and with room they go."""
    async with EpisodicLog.open(path) as log:
        await log.record("a", "s", "user", "my secret is xylophone", user_id="u")
        await say(log, "other")
        with disk.fails("w", ENOSPC, FILE):
            receipt = await log.erase(user_id="u")
            assert (receipt.state, receipt.episodes) == ("pending", 1)
            assert receipt.reason is not None
            assert "the disk is full" in receipt.reason
            assert await contents(log) == ["other"]
        receipt = await log.erase(user_id="u")
        assert receipt.state == "done"
        assert not any(b"xylophone" in file.read_bytes() for file in path.parent.iterdir())
    await expect_sound(path)


@on_failing_disk
async def test_a_log_cannot_be_made_on_a_full_disk_and_can_be_later(path: Path, disk: Disk) -> None:
    """The error names the disk, and what it leaves is in nobody's way."""
    with disk.fails("w", ENOSPC, EITHER):
        for _ in range(2):
            with pytest.raises(DiskFullError, match="the disk is full"):
                async with EpisodicLog.open(path):
                    pass
    async with EpisodicLog.open(path) as log:
        await say(log, "after")
        assert await contents(log) == ["after"]
    await expect_sound(path)


@on_failing_disk
async def test_a_log_opens_on_a_full_disk_and_can_be_read(path: Path, disk: Disk) -> None:
    """Whoever comes to look at two in the morning need not make room first."""
    async with EpisodicLog.open(path) as log:
        await say(log, "before")
    with disk.fails("w", ENOSPC, EITHER):
        async with EpisodicLog.open(path, read_only=True) as log:
            assert await contents(log) == ["before"]
        async with EpisodicLog.open(path) as log:
            assert await contents(log) == ["before"]
            with pytest.raises(DiskFullError, match=NOTHING_STORED):
                await say(log, "during")


@on_failing_disk
async def test_a_read_that_fails_is_an_error_and_never_an_empty_answer(path: Path, disk: Disk) -> None:
    """Every call says that the disk failed; when it is well again, the same log answers."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"turn {n} " + "y" * 500) for n in range(3_000)])
    async with EpisodicLog.open(path) as log:
        with disk.fails("r", EIO, FILE):
            for call in (contents(log), log.recent("a"), log.search("a", "turn"), log.recall_context("a", "turn")):
                with pytest.raises(StorageError):
                    await call
        assert len(await contents(log)) == 3_000
        assert len((await log.search("a", "turn")).hits) == 10
        await say(log, "after")
    await expect_sound(path)


async def die_behind_a_failed_sync(path: Path, disk: Disk) -> None:
    """Be told that an outcome is unknown, and be killed."""
    log = EpisodicLog.open(path, settings=FULL)
    await log.__aenter__()
    await say(log, "before")
    with disk.fails("s", EIO, WAL):
        with pytest.raises(StorageError, match=UNKNOWN):
            await say(log, "during")
        os.kill(os.getpid(), signal.SIGKILL)


SCENARIOS[die_behind_a_failed_sync.__name__] = die_behind_a_failed_sync


async def test_a_retry_after_a_failed_sync_and_a_kill_stores_once(path: Path, library: Path) -> None:
    """The next process that is asked by the same event id answers, whether the row had reached the disk or not."""
    assert play("die_behind_a_failed_sync", path, library).returncode == -signal.SIGKILL
    async with EpisodicLog.open(path) as log:
        assert set(await contents(log)) <= {"before", "during"}
        await say(log, "during")
        await say(log, "before")
        assert sorted(await contents(log)) == ["before", "during"]
    await expect_sound(path)


FILLING = """
import asyncio, pathlib, shutil, sys
from episodic import DiskFullError, EpisodicLog

async def main(folder):
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(2**21))
    async with EpisodicLog.open(folder / "log.db") as log:
        acknowledged = 0
        for number in range(100_000):
            text = f"{number} " + "z" * 5_000
            try:
                await log.record("a", "s", "user", text, event_id=str(number))
            except DiskFullError as exc:
                assert "nothing was stored" in str(exc), exc
                break
            acknowledged += 1
        assert [e.id async for e in log.replay("s")] == list(range(1, acknowledged + 1))
        ballast.unlink()
        await log.record("a", "s", "user", text, event_id=str(number))
    async with EpisodicLog.open(folder / "log.db") as log:
        assert len([e async for e in log.replay("s")]) == acknowledged + 1
    print(acknowledged)

asyncio.run(main(pathlib.Path(sys.argv[1])))
"""


def test_a_file_system_that_really_fills_up_loses_nothing(tmp_path: Path) -> None:
    """On a small disk of its own: all that was acknowledged is there, and with room the same log goes on."""
    room = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    mount = 'mount -t tmpfs -o size=8m none "$1"'
    if (
        not shutil.which("unshare")
        or subprocess.run([*room, mount, "sh", tmp_path], capture_output=True, check=False).returncode
    ):
        pytest.skip("this system does not let us mount a small disk")
    command = [*room, f'{mount} && exec "$2" -W error -c "$3" "$1"', "sh", str(tmp_path), sys.executable, FILLING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_the_index_of_what_a_broken_disk_left_is_whole(path: Path, library: Path) -> None:
    """FTS5's strict check agrees with the doctor after the worst of the scenarios."""
    done = play("test_a_write_that_fails_leaves_unknown_what_a_retry_settles", path, library)
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)")
