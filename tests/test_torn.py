"""Bytes that something else has torn: a log, its file or its write-ahead log, answers rightly or says what is wrong."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from episodic import EpisodicLog, Filter, NotFoundError, StorageError
from episodic.maintenance import diagnose

PAGE = 4096
SESSIONS, TURNS = 8, 40
VICTIM = f"""
import asyncio, os, signal, sys
from episodic import EpisodicLog, Settings

async def main():
    settings = Settings(durability="full", batch_rows=7)
    async with EpisodicLog.open(sys.argv[1], settings=settings) as log:
        for turn in range({TURNS}):
            for session in range({SESSIONS}):
                said = f"turn {{turn}} of s{{session}}"
                await log.record("a", f"s{{session}}", "user", said, user_id=f"u{{session}}")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


class Victim(NamedTuple):
    """What a killed process has left."""

    file: bytes
    wal: bytes


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Victim:
    """A log whose every commit is in the write-ahead log alone."""
    path = tmp_path_factory.mktemp("victim") / "log.db"
    command = [sys.executable, "-W", "error", "-c", VICTIM, str(path)]
    assert subprocess.run(command, timeout=60, check=False).returncode == -signal.SIGKILL
    left = Victim(path.read_bytes(), path.with_name("log.db-wal").read_bytes())
    assert len(left.wal) > 100 * PAGE
    return left


@pytest.fixture(scope="module")
def folded(tmp_path_factory: pytest.TempPathFactory, victim: Victim) -> Victim:
    """The same log, all of it in the file."""
    path = tmp_path_factory.mktemp("folded") / "log.db"
    lay(path, victim)
    # Another program's connection folds it in when it closes.
    code = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT * FROM log_state'); db.close()"
    subprocess.run([sys.executable, "-c", code, path], check=True)
    return Victim(path.read_bytes(), b"")


def lay(path: Path, left: Victim) -> None:
    """Put the files where a log opens them."""
    path.write_bytes(left.file)
    path.with_name("log.db-shm").unlink(missing_ok=True)
    wal = path.with_name("log.db-wal")
    wal.unlink(missing_ok=True)
    if left.wal:
        wal.write_bytes(left.wal)


def flipped(data: bytes, at: int) -> bytes:
    """Flip one bit, or rather eight."""
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def cut(wal: bytes, draw: random.Random) -> bytes:
    """Lose the end."""
    return wal[: draw.randrange(len(wal))]


def turned(wal: bytes, draw: random.Random) -> bytes:
    """Change one byte."""
    return flipped(wal, draw.randrange(len(wal)))


def emptied(wal: bytes, draw: random.Random) -> bytes:
    """Have zeros from some place on, as a file system leaves what it has not written yet."""
    at = draw.randrange(len(wal))
    return wal[:at] + bytes(len(wal) - at)


def garbled(wal: bytes, draw: random.Random) -> bytes:
    """Have somebody else's bytes at the end."""
    at = draw.randrange(len(wal))
    return wal[:at] + draw.randbytes(len(wal) - at)


def lengthened(wal: bytes, draw: random.Random) -> bytes:
    """Have somebody else's bytes behind the end."""
    return wal + draw.randbytes(draw.randrange(1, 3 * PAGE))


async def stored(log: EpisodicLog) -> list[str]:
    """Return what was said, in order."""
    return [episode.content async for episode in log.scan()]


EVERYTHING = [f"turn {turn} of s{session}" for turn in range(TURNS) for session in range(SESSIONS)]


@pytest.mark.parametrize("tear", [cut, turned, emptied, garbled, lengthened])
@pytest.mark.parametrize("seed", range(6))
async def test_a_torn_write_ahead_log_leaves_the_commits_before_the_tear(
    path: Path, victim: Victim, tear: Callable[[bytes, random.Random], bytes], seed: int
) -> None:
    """What is there is a beginning of what was recorded, in order, complete in every answer; and writing goes on."""
    draw = random.Random(f"{tear.__name__} {seed}")
    lay(path, victim._replace(wal=tear(victim.wal, draw)))
    try:
        async with EpisodicLog.open(path, read_only=True) as log:
            seen = await stored(log)
    except StorageError:
        # A beginning without a schema is no log yet.
        seen = []
    assert seen == EVERYTHING[: len(seen)]
    async with EpisodicLog.open(path) as log:
        assert await stored(log) == seen
        again = await log.record("a", "s0", "user", "again")
        assert again.id == len(seen) + 1
        assert [e.content async for e in log.replay("s0", agent_id="a")] == [*seen[::SESSIONS], "again"]
        found = await log.search("a", "turn", limit=len(EVERYTHING) + 1)
        assert sorted(hit.episode.content for hit in found.hits if hit.matched) == sorted(seen)
    assert not [finding for finding in await diagnose(path, deep=True) if finding.state == "fault"]


async def test_a_write_ahead_log_that_is_gone_leaves_no_log_that_seems_whole(path: Path, victim: Victim) -> None:
    """Without the file beside it nothing was written yet, and that is said instead of an empty answer."""
    lay(path, victim._replace(wal=b""))
    with pytest.raises(StorageError, match="no log was written to it yet"):
        async with EpisodicLog.open(path, read_only=True):
            pass


async def use(log: EpisodicLog) -> None:
    """Ask everything that reads a page."""
    async for _ in log.scan():
        pass
    for number in range(SESSIONS):
        async for _ in log.replay(f"s{number}", agent_id="a"):
            pass
    await log.agents()
    await log.sessions("a", limit=SESSIONS)
    await log.recent("a", limit=50)
    await log.search("a", "turn s3")
    await log.recall_context("a", "what was turn 7 of s5", where=Filter(user_id="u5"))
    for number in (1, TURNS, SESSIONS * TURNS):
        await log.get(number)
        await log.around(number)


@pytest.mark.parametrize("tear", ["byte", "zeros", "noise", "end"])
@pytest.mark.parametrize("seed", range(8))
async def test_a_torn_file_is_told_by_a_typed_error_or_harms_nothing(
    path: Path, folded: Victim, tear: str, seed: int
) -> None:
    """Whatever page is torn, each call ends with an answer or with an error of ours, reading and writing."""
    draw = random.Random(f"{tear} {seed}")
    at = draw.randrange(len(folded.file) // PAGE) * PAGE
    file = {
        "byte": flipped(folded.file, at + draw.randrange(PAGE)),
        "zeros": folded.file[:at] + bytes(PAGE) + folded.file[at + PAGE :],
        "noise": folded.file[:at] + draw.randbytes(PAGE) + folded.file[at + PAGE :],
        "end": folded.file[: at + draw.randrange(PAGE)],
    }[tear]
    messages: list[str] = []
    for read_only in (True, False):
        lay(path, Victim(file, b""))
        try:
            async with EpisodicLog.open(path, read_only=read_only) as log:
                if not read_only:
                    await log.record("a", "s0", "user", "again")
                await use(log)
        except (StorageError, NotFoundError) as exc:
            messages.append(str(exc))
    lay(path, Victim(file, b""))
    await diagnose(path, deep=True)
    assert not [message for message in messages if "\n" in message or "turn" in message]


@pytest.mark.parametrize("part", range(8))
async def test_the_doctor_sees_a_page_of_zeros(path: Path, folded: Victim, part: int) -> None:
    """Where a page in use has no content, somebody who asks is told that the file is damaged."""
    start = len(folded.file) // PAGE * part // 8 * PAGE
    lay(path, Victim(folded.file[:start] + bytes(PAGE) + folded.file[start + PAGE :], b""))
    assert [finding for finding in await diagnose(path, deep=True) if finding.state == "fault"]
