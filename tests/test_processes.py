"""Several processes on one file, and processes that are killed: what was acknowledged is there, once, in order."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from episodic import EpisodicLog
from tests.conftest import Sql

# Records for ever from many tasks, and writes each acknowledgement to a ledger outside the log, one line each.
RECORD_FOR_EVER = """
import asyncio, os, sys
from episodic import Draft, EpisodicLog, Settings

ledger = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
name = sys.argv[3]

def acknowledge(*episodes):
    os.write(ledger, "".join(f"{e.event_id} {e.id}\\n" for e in episodes).encode())

async def record(log, task):
    turn = 0
    while True:
        turn += 1
        event = f"{name}/{task}/{turn}"
        if task % 5:
            acknowledge(await log.record(f"a{task % 3}", f"s{task}", "user", f"refund {turn}", event_id=event))
        else:
            drafts = [Draft("a", f"s{task}", "user", f"many {turn} {n}", event_id=f"{event}/{n}") for n in range(3)]
            acknowledge(*await log.record_many(drafts))

async def main():
    async with EpisodicLog.open(sys.argv[1], settings=Settings(batch_rows=40)) as log:
        print("ready", flush=True)
        async with asyncio.TaskGroup() as group:
            for task in range(100):
                group.create_task(record(log, task))

asyncio.run(main())
"""

RECORD_SOME = """
import asyncio, json, sys
from episodic import EpisodicLog

async def main():
    name, count = sys.argv[2], int(sys.argv[3])
    print("ready", flush=True)
    sys.stdin.readline()
    async with EpisodicLog.open(sys.argv[1]) as log:
        async def record(n):
            e = await log.record(f"agent {n % 2}", f"s{n % 7}", "user", f"{name} {n}", event_id=f"{name}/{n}")
            return e.id, e.event_id
        receipts = [await record(0)]
        for start in range(1, count, 100):
            receipts += await asyncio.gather(*[record(n) for n in range(start, min(start + 100, count))])
    print(json.dumps(receipts))

asyncio.run(main())
"""

ENDING_BY_SIGNAL = """
import asyncio, os, signal, sys
from episodic import EpisodicLog

async def main():
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with EpisodicLog.open(sys.argv[1]) as log:
        tasks = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(5000)]
        await asyncio.sleep(0)
        print("ready", flush=True)
        await stop.wait()
    print(sum(not task.exception() for task in tasks), flush=True)

asyncio.run(main())
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a script in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(process: subprocess.Popen[str]) -> None:
    """Wait until a process says that it is ready."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def finish(process: subprocess.Popen[str]) -> str:
    """Wait until a process ends well, and return what it printed."""
    out, error = process.communicate(timeout=50)
    assert (process.returncode, error) == (0, "")
    return out


def together(processes: list[subprocess.Popen[str]]) -> list[list[tuple[int, str]]]:
    """Let processes go on at the same instant, once all are ready, and return the receipts of each."""
    for process in processes:
        wait_for(process)
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [[(number, event) for number, event in json.loads(finish(process))] for process in processes]


def stored(path: Path) -> list[tuple[int, str]]:
    """Read the id and event id of every row, by id, and see that the file and its index are whole."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        db.execute("INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('integrity-check', 1)")
        counts = db.execute(
            "SELECT (SELECT count(*) FROM episodes), (SELECT count(*) FROM episodes_fts_docsize), "
            "(SELECT sum(episodes) FROM sessions), (SELECT sum(episodes) FROM agents)"
        ).fetchone()
        assert len(set(counts)) == 1
        return db.execute("SELECT id, event_id FROM episodes ORDER BY id").fetchall()


async def test_what_was_acknowledged_survives_kill_9(path: Path, tmp_path: Path) -> None:
    """Killed in a burst, in each round: acknowledged ⊆ stored, nothing twice, calls whole, order kept, index whole."""
    ledger = tmp_path / "ledger"
    ledger.touch()
    rows: list[tuple[int, str]] = []
    for turn in range(6):
        known = len(ledger.read_text().splitlines())
        process = start(RECORD_FOR_EVER, path, ledger, turn)
        wait_for(process)
        while len(ledger.read_text().splitlines()) < known + 200 * (turn + 1):
            assert process.poll() is None
            time.sleep(0.005)  # noqa: ASYNC251 - nothing else runs in this loop
        process.send_signal(signal.SIGKILL)
        process.communicate()
        acknowledged = [line.split() for line in ledger.read_text().splitlines(keepends=True) if line.endswith("\n")]
        rows = stored(path)
        events = [event for _, event in rows]
        assert len(set(events)) == len(events)
        assert {(int(number), event) for event, number in acknowledged} <= set(rows)
        # Each task waited for its own acknowledgement, so that its rows stand in the order of its calls.
        last: dict[str, tuple[int, ...]] = {}
        for event in events:
            name, task, *place = event.split("/")
            position = tuple(map(int, place))
            assert last.get(f"{name}/{task}", ()) < position
            last[f"{name}/{task}"] = position
        calls = Counter(event.rpartition("/")[0] for event in events if event.count("/") == 3)
        assert set(calls.values()) == {3}
    async with EpisodicLog.open(path) as log:
        assert log.stats().reindexed == 0
        assert [(e.id, e.event_id) async for e in log.scan()] == rows
        times = [(e.timestamp, e.id) async for e in log.replay("s1")]
        assert times == sorted(times)


def test_six_processes_open_a_fresh_path_at_once(path: Path) -> None:
    """The schema is made once, all of them write, and none sees an error."""
    answers = together([start(RECORD_SOME, path, f"p{n}", 20) for n in range(6)])
    receipts = [receipt for answer in answers for receipt in answer]
    assert sorted(receipts) == stored(path)
    assert len(receipts) == 120
    assert [file.name for file in path.parent.iterdir()] == ["log.db"]


def test_four_processes_write_one_file_together(path: Path) -> None:
    """At full rate from four processes: no error, every receipt is its row, and every row is there once."""
    answers = together([start(RECORD_SOME, path, f"p{n}", 2_000) for n in range(4)])
    receipts = [receipt for answer in answers for receipt in answer]
    assert sorted(receipts) == stored(path)
    assert len({event for _, event in receipts}) == 8_000


def test_processes_that_write_one_file_take_turns(path: Path) -> None:
    """None goes on and on while another waits: their episodes lie among each other in the log, in small parts."""
    answers = together([start(RECORD_SOME, path, f"p{n}", 6_000) for n in range(2)])
    first, second = (sorted(number for number, _ in answer) for answer in answers)
    both = [
        number for number in sorted(first + second) if max(first[0], second[0]) < number < min(first[-1], second[-1])
    ]
    changes = sum((a in owners) != (b in owners) for owners in [set(first)] for a, b in pairwise(both))
    assert changes > len(both) / 100


def test_one_event_from_four_processes_is_one_row(path: Path) -> None:
    """A message that four workers received is stored once, and all four have its receipt."""
    answers = together([start(RECORD_SOME, path, "same", 500) for _ in range(4)])
    assert all(answer == answers[0] for answer in answers)
    assert sorted(answers[0]) == stored(path)


def test_a_signal_in_a_burst_loses_nothing(path: Path, sql: Sql) -> None:
    """When SIGTERM closes the log in the midst of thousands of calls, all that are acknowledged are in the file."""
    process = start(ENDING_BY_SIGNAL, path)
    wait_for(process)
    process.send_signal(signal.SIGTERM)
    assert finish(process) == "5000\n"
    assert sql("SELECT count(*) FROM episodes") == [(5_000,)]
