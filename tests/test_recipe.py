"""A database that follows the recipe is imported with nothing lost, and nothing in it or beside it is changed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from episodic import Episode, EpisodicLog, NotOurFileError, StorageError, TransferError
from episodic.sqlite.recipe import open_recipe
from episodic.transfer import import_file

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SECONDS = NOON.timestamp()

RECIPE = """
CREATE TABLE episodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    agent_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    timestamp REAL NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    metadata TEXT,
    outcome TEXT
);
CREATE VIRTUAL TABLE episodes_fts USING fts5 (content, agent_id UNINDEXED, episode_id UNINDEXED);
CREATE TRIGGER episodes_ai AFTER INSERT ON episodes BEGIN
    INSERT INTO episodes_fts (content, agent_id, episode_id) VALUES (new.content, new.agent_id, new.id);
END;
"""
# The same columns without types and constraints, so that any value stays what it is.
LOOSE = (
    "CREATE TABLE episodes (id INTEGER PRIMARY KEY, agent_id, session_id, timestamp, role, content, metadata, outcome)"
)
INSERT = (
    "INSERT INTO episodes (agent_id, session_id, timestamp, role, content, metadata, outcome) VALUES (?,?,?,?,?,?,?)"
)
ROW = ("bot", "s", SECONDS, "user", "hello", "{}", None)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A path in a folder of its own, for another program's database."""
    folder = tmp_path / "other"
    folder.mkdir()
    return folder / "memory.db"


def make(path: Path, script: str, rows: Sequence[Sequence[object]] = ()) -> None:
    """Make a database and close it."""
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(script)
        if rows:
            db.executemany(INSERT, rows)


async def imported(log: EpisodicLog, path: Path, **options: Any) -> list[Episode]:  # noqa: ANN401 - of import_file
    """Import a database, and return what came of it."""
    await import_file(log, path, **options)
    return [episode async for episode in log.scan()]


async def row(log: EpisodicLog, path: Path, **fields: object) -> Episode:
    """Import one row, which differs from `ROW` in some columns."""
    names = ("agent_id", "session_id", "timestamp", "role", "content", "metadata", "outcome")
    values = dict(zip(names, ROW, strict=True)) | fields
    make(path, LOOSE, [list(values.values())])
    [episode] = await imported(log, path)
    return episode


def fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    """Return what every file of a folder holds, and when it was changed."""
    return {f.name: (hashlib.sha256(f.read_bytes()).hexdigest(), f.stat().st_mtime_ns) for f in folder.iterdir()}


async def test_the_recipe_is_imported_field_by_field(log: EpisodicLog, source: Path) -> None:
    """What the log has a field for stands in that field, and nothing is added to the metadata."""
    rows = [
        ("bot", "s1", SECONDS + 0.25, "user", "hi", '{"intent": "billing", "n": 1.5}', None),
        ("bot", "s1", SECONDS + 1, "assistant", "hello", None, "success"),
        ("other", "s2", SECONDS - 1, "tool", "", "{}", "partial"),
    ]
    make(source, RECIPE, rows)
    first, second, third = await imported(log, source)
    assert first == Episode(
        1, "bot", "s1", None, None, NOON + timedelta(seconds=0.25), "user", "hi", None,
        {"intent": "billing", "n": 1.5}, None, archived=False,
    )  # fmt: skip
    assert (second.role, second.outcome, second.metadata) == ("assistant", "success", {})
    assert (third.agent_id, third.role, third.content, third.outcome) == ("other", "tool", "", "partial")


async def test_rows_come_in_the_order_of_their_ids(log: EpisodicLog, source: Path) -> None:
    """Neither the time nor the order of writing decides; negative ids and gaps are ids as well."""
    make(source, LOOSE)
    with closing(sqlite3.connect(source)) as db, db:
        for number in (5, -3, 2**62, 0, 4_000):
            db.execute("INSERT INTO episodes VALUES (?,?,?,?,?,?,?,?)", (number, *ROW[:4], str(number), *ROW[5:]))
    assert [e.content for e in await imported(log, source)] == ["-3", "0", "5", "4000", str(2**62)]


async def test_a_column_may_be_called_as_a_rowid_is(log: EpisodicLog, source: Path) -> None:
    """A table's own `rowid` or `_rowid_` is a column like another one: kept, and not taken for the row's place."""
    make(source, LOOSE.replace("outcome", "outcome, rowid, _rowid_"))
    with closing(sqlite3.connect(source)) as db, db:
        for number, name in ((1, "z"), (2, "a")):
            db.execute("INSERT INTO episodes VALUES (?,?,?,?,?,?,?,?,?,?)", (number, *ROW, name, 7))
    found = await imported(log, source)
    assert [e.metadata["imported"] for e in found] == [{"rowid": "z", "_rowid_": 7}, {"rowid": "a", "_rowid_": 7}]


async def test_thousands_of_rows_come_once_each(log: EpisodicLog, source: Path) -> None:
    """Pages neither skip nor repeat, and large texts make them smaller instead of filling the memory."""
    make(source, RECIPE, [(*ROW[:4], f"{number}", *ROW[5:]) for number in range(4_501)])
    with closing(sqlite3.connect(source)) as db, db:
        db.executemany(INSERT, [(*ROW[:4], f"{number}" * 250_000, *ROW[5:]) for number in range(10, 40)])
    found = await imported(log, source)
    assert [e.content for e in found[:4_501]] == [str(number) for number in range(4_501)]
    assert [e.content[:2] for e in found[4_501:]] == [str(number) for number in range(10, 40)]


@pytest.mark.parametrize(
    ("role", "ours"),
    [
        ("human", "user"),
        ("Customer", "user"),
        ("ai", "assistant"),
        ("bot", "assistant"),
        ("AGENT", "assistant"),
        ("function", "tool"),
        ("developer", "system"),
        ("supervisor", "system"),
        ("", "system"),
        (None, "system"),
        (7, "system"),
        (b"user", "system"),
    ],
)
async def test_a_foreign_role_is_mapped_and_kept(log: EpisodicLog, source: Path, role: object, ours: str) -> None:
    """Who speaks is said in our words, and in the original ones beside it."""
    episode = await row(log, source, role=role)
    kept = {"hex": role.hex()} if isinstance(role, bytes) else role
    assert (episode.role, episode.metadata) == (ours, {"imported": {"role": kept}})


@pytest.mark.parametrize(
    ("outcome", "ours"),
    [("Success", "success"), ("solved", None), ("", None), (1, None), (" failure ", "failure")],
)
async def test_a_foreign_outcome_is_kept(log: EpisodicLog, source: Path, outcome: object, ours: str | None) -> None:
    """An outcome that we do not know is not guessed at."""
    episode = await row(log, source, outcome=outcome)
    assert (episode.outcome, episode.metadata) == (ours, {"imported": {"outcome": outcome}})


@pytest.mark.parametrize(
    "metadata",
    [
        *("", "null", "[1]", '"text"', "{", "{'a': 1}", '{"a": NaN}', '{"a": 1e999}', 5, 0.1),
        *('{"a": "\\u0000"}', '{"a": "\\ud83d"}', '{"a": 18446744073709551616}', '{"a":' * 300 + "1" + "}" * 300),
    ],
)
async def test_metadata_that_is_no_object_of_ours_is_kept_as_it_stands(
    log: EpisodicLog, source: Path, metadata: object
) -> None:
    """What cannot be read, or would not come back exactly, is kept as the text that it was."""
    assert (await row(log, source, metadata=metadata)).metadata == {"imported": {"metadata": metadata}}


async def test_metadata_in_bytes_is_read(log: EpisodicLog, source: Path) -> None:
    """Some write what their JSON library returns, bytes."""
    assert (await row(log, source, metadata=b'{"a": 1}')).metadata == {"a": 1}


async def test_what_is_kept_makes_way_for_metadata_of_that_name(log: EpisodicLog, source: Path) -> None:
    """A key that the row has itself is never overwritten."""
    episode = await row(log, source, metadata='{"imported": 1, "imported_": 2}', role="ai")
    assert episode.metadata == {"imported": 1, "imported_": 2, "imported__": {"role": "ai"}}


@pytest.mark.parametrize(
    ("timestamp", "instant"),
    [
        (int(SECONDS), NOON),
        (int(SECONDS) * 1000 + 5, NOON + timedelta(milliseconds=5)),
        (SECONDS * 1000 + 0.5, NOON + timedelta(microseconds=500)),
        ("2026-01-05 12:00:00", NOON),
        ("2026-01-05T13:00:00.000001+01:00", NOON + timedelta(microseconds=1)),
        (str(SECONDS), NOON),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
async def test_a_time_in_any_unit_is_read(log: EpisodicLog, source: Path, timestamp: object, instant: datetime) -> None:
    """Seconds, milliseconds and ISO text all occur; a text without a zone is in UTC, as SQLite writes it."""
    episode = await row(log, source, timestamp=timestamp)
    assert (episode.timestamp, episode.metadata) == (instant, {})


async def test_a_row_without_a_readable_time_stays_between_its_neighbours(log: EpisodicLog, source: Path) -> None:
    """It gets the time of the row before, also when the import goes on behind that row, and its own is kept."""
    times = ["never", SECONDS, "soon", None, float("inf"), SECONDS + 9, b"\xff"]
    make(source, LOOSE, [(*ROW[:2], time, *ROW[3:]) for time in times])
    found = await imported(log, source)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert [e.timestamp for e in found] == [epoch, NOON, NOON, NOON, NOON, *[NOON + timedelta(seconds=9)] * 2]
    kept = [e.metadata.get("imported") for e in found]
    originals = ["never", None, "soon", "null", {"real": "inf"}, None, {"hex": "ff"}]
    assert kept == [None if one is None else {"timestamp": None if one == "null" else one} for one in originals]
    await import_file(log, source, skip=2)
    assert [e.timestamp async for e in log.scan(after=7)] == [e.timestamp for e in found[2:]]


async def test_text_that_the_log_cannot_hold_is_kept_escaped(log: EpisodicLog, source: Path) -> None:
    """NUL characters, bytes that are no UTF-8, blobs and numbers are shown as text and kept as they were."""
    make(source, LOOSE, [(*ROW[:4], content, *ROW[5:]) for content in ("a\0b", b"\x00\xff", 5, 0.5, None)])
    with closing(sqlite3.connect(source)) as db, db:
        db.execute(INSERT.replace("?,?,?,?,?,?,?", "'bot','s',0,'user',CAST(x'61ff62' AS TEXT),NULL,NULL"))
    found = await imported(log, source)
    assert [e.content for e in found] == ["a\ufffdb", "\ufffd\ufffd", "5", "0.5", "", "a\ufffdb"]
    kept = [e.metadata["imported"]["content"] for e in found]  # type: ignore[index,call-overload]
    assert kept == [{"json": '"a\\u0000b"'}, {"hex": "00ff"}, 5, 0.5, None, {"json": '"a\\udcffb"'}]
    assert json.loads(kept[0]["json"]) == "a\0b"
    assert json.loads(kept[-1]["json"]).encode("utf-8", "surrogateescape") == b"a\xffb"


async def test_missing_ids_get_a_name_and_odd_ones_are_kept(log: EpisodicLog, source: Path) -> None:
    """A row without an agent belongs to the file's name or to the agent given; the empty name is a name."""
    make(source, LOOSE, [(None, None, *ROW[2:]), ("", "", *ROW[2:]), (1, 2.5, *ROW[2:])])
    found = await imported(log, source)
    assert [(e.agent_id, e.session_id) for e in found] == [("memory", ""), ("", ""), ("1", "2.5")]
    kept = [e.metadata.get("imported") for e in found]
    assert kept == [{"agent_id": None, "session_id": None}, None, {"agent_id": 1, "session_id": 2.5}]
    await import_file(log, source, agent_id="given")
    assert (await log.get(4)).agent_id == "given"


async def test_columns_of_other_variants_are_used_or_kept(log: EpisodicLog, source: Path) -> None:
    """Older files lack outcome or metadata, others have more; a user is a user, and the rest goes into the metadata."""
    table = """CREATE TABLE Episodes (ID INTEGER PRIMARY KEY, Agent_Id, session_id, user_id, Timestamp, role, content,
        importance REAL, "odd ""name" BLOB, tokens INT, twice INT GENERATED ALWAYS AS (tokens * 2))"""
    make(source, table)
    with closing(sqlite3.connect(source)) as db, db:
        db.execute("INSERT INTO episodes VALUES (1, 'bot', 's', 'u1', ?, 'user', 'x', 0.5, x'00', NULL)", (SECONDS,))
    [episode] = await imported(log, source)
    assert (episode.user_id, episode.outcome) == ("u1", None)
    assert episode.metadata == {"imported": {"importance": 0.5, 'odd "name': {"hex": "00"}}}


async def test_an_id_that_is_not_the_place_of_its_row_is_kept(log: EpisodicLog, source: Path) -> None:
    """Ids are given anew; one that is a text of its own may be referred to elsewhere."""
    make(source, LOOSE.replace("id INTEGER PRIMARY KEY", "id TEXT PRIMARY KEY"))
    with closing(sqlite3.connect(source)) as db, db:
        db.execute("INSERT INTO episodes VALUES ('b-1',?,?,?,?,?,?,?)", ROW)
    [episode] = await imported(log, source)
    assert episode.metadata == {"imported": {"id": "b-1"}}


anything = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
odd_texts = st.text(st.sampled_from('a\0{}"\\é😀\n'), max_size=6)
cells = anything.filter(lambda value: not isinstance(value, str) or value.isprintable()) | odd_texts


@given(st.lists(st.tuples(*[cells] * 7), min_size=1, max_size=6))
@example([(None,) * 7])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_row_is_refused_and_every_value_is_still_there(rows: list[tuple[Any, ...]]) -> None:
    """Whatever SQLite can hold in these columns comes out as the field it went into, or beside it as it was."""

    async def check(folder: Path) -> None:
        make(folder / "m.db", LOOSE, rows)
        async with EpisodicLog.open(folder / "log.db") as log:
            found = await imported(log, folder / "m.db")
        with closing(sqlite3.connect(folder / "m.db")) as db:
            stored = list(db.execute("SELECT * FROM episodes ORDER BY id"))
        for episode, (_, agent_id, session_id, _, role, content, _, outcome) in zip(found, stored, strict=True):
            # The last key of ours is the one that the row's own metadata left free.
            kept = next((v for k, v in reversed(episode.metadata.items()) if k.rstrip("_") == "imported"), {})
            assert isinstance(kept, dict)
            for name, value in (
                ("agent_id", agent_id),
                ("session_id", session_id),
                ("role", role),
                ("content", content),
            ):
                assert value == getattr(episode, name) or value == back(kept[name])
            assert outcome == episode.outcome or outcome == back(kept["outcome"])

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(check(Path(folder)))


def back(kept: Any) -> object:  # noqa: ANN401 - whatever JSON holds
    """Return the value that was kept."""
    match kept:
        case {"json": text}:
            return json.loads(text)
        case {"hex": digits}:
            return bytes.fromhex(digits)
        case {"real": digits}:
            return float(digits)
        case _:
            return kept


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_nothing_in_the_file_or_beside_it_changes(log: EpisodicLog, source: Path, mode: str) -> None:
    """A database that nobody has open is left as it was found, without a lock file or a log beside it."""
    make(source, f"PRAGMA journal_mode = {mode}; {RECIPE}", [ROW])
    before = fingerprint(source.parent)
    assert len(await imported(log, source)) == 1
    assert fingerprint(source.parent) == before
    assert list(before) == ["memory.db"]


@pytest.mark.parametrize("mode", ["delete", "wal"])
async def test_a_file_that_is_being_written_is_read_beside_its_writer(
    log: EpisodicLog, source: Path, mode: str
) -> None:
    """What was there at the start is imported once each, and the program that owns the file never waits long."""
    make(source, f"PRAGMA journal_mode = {mode}; {RECIPE}", [(*ROW[:4], str(n), *ROW[5:]) for n in range(6_000)])
    stop, started, written = threading.Event(), threading.Event(), 0

    def write() -> None:
        nonlocal written
        with closing(sqlite3.connect(source, timeout=20)) as db:
            while not stop.is_set():
                with db:
                    written += db.executemany(INSERT, [(*ROW[:4], "late", *ROW[5:])] * 20).rowcount
                started.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        await asyncio.to_thread(started.wait)
        found = await imported(log, source)
    finally:
        stop.set()
        writer.join()
    assert [e.content for e in found[:6_000]] == [str(n) for n in range(6_000)]
    assert {e.content for e in found[6_000:]} == {"late"}
    with closing(sqlite3.connect(source)) as db:
        assert db.execute("SELECT count(*) FROM episodes").fetchone() == (6_000 + written,)


def test_what_a_writer_commits_while_a_page_is_read_is_seen(source: Path) -> None:
    """A file in WAL mode that nobody had open is read again when somebody opens it to write."""
    make(source, f"PRAGMA journal_mode = wal; {RECIPE}", [(*ROW[:4], str(n), *ROW[5:]) for n in range(5_000)])
    rows = open_recipe(source).rows()
    seen = [next(rows)]
    with closing(sqlite3.connect(source)) as db, db:
        db.execute("UPDATE episodes SET content = content || ' changed'")
    seen += rows
    contents = [str(row.values[5]) for row in seen]
    assert [text.removesuffix(" changed") for text in contents] == [str(n) for n in range(5_000)]
    assert contents[-1] == "4999 changed"


# Opens a file as somebody who is not root, whom no permission stops, and says how many rows it has.
COUNT_ROWS = """
import os, sys
from pathlib import Path
from episodic import OpenError
from episodic.sqlite.recipe import open_recipe
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    print(len(list(open_recipe(Path(sys.argv[1])).rows())))
except OpenError as exc:
    print(exc)
"""


def count_locked_up(path: Path) -> str:
    """Let another process read a file whose folder cannot be written."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file in path.parent.glob(f"{path.name}*"):
            if not file.name.endswith("-shm"):
                (folder / file.name).write_bytes(file.read_bytes())
                (folder / file.name).chmod(0o444)
        folder.chmod(0o555)
        command = [sys.executable, "-c", COUNT_ROWS, str(folder / path.name)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        folder.chmod(0o755)
    return done.stdout


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_a_read_only_folder_is_read(source: Path, mode: str) -> None:
    """A backup on a read-only disk is imported like any other."""
    make(source, f"PRAGMA journal_mode = {mode}; {RECIPE}", [ROW])
    assert count_locked_up(source) == "1\n"


def test_a_read_only_folder_with_a_log_to_recover_says_what_to_do(source: Path) -> None:
    """What stands in a write-ahead log is never left out without a word."""
    make(source, f"PRAGMA journal_mode = wal; {RECIPE}", [ROW])
    with closing(sqlite3.connect(source)) as db, db:
        db.execute(INSERT, ROW)
        db.commit()
        assert "copy it and the files beside it to a folder that you can write" in count_locked_up(source)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("CREATE TABLE notes (id)", "has no table `episodes`"),
        ("CREATE VIEW episodes AS SELECT 1 AS id", "has no table `episodes`"),
        ("CREATE TABLE episodes (id, agent_id, session_id, timestamp, role)", "has no column content"),
        (LOOSE + " WITHOUT ROWID", "has no table `episodes` with rowids"),
        (LOOSE.replace("outcome", "outcome, rowid, _rowid_, oid"), "rename one"),
    ],
)
async def test_another_database_is_refused_by_name(log: EpisodicLog, source: Path, script: str, reason: str) -> None:
    """Each database that does not follow the recipe gets a sentence that says why, and nothing is imported."""
    make(source, script)
    with pytest.raises(NotOurFileError, match=reason):
        await import_file(log, source)


async def test_a_log_of_ours_is_not_a_recipe(log: EpisodicLog, path: Path) -> None:
    """Its own export is the way to bring it over, and the message says so."""
    await log.record("bot", "s", "user", "x")
    with pytest.raises(NotOurFileError, match="episodic export"):
        await import_file(log, path)


async def test_a_damaged_database_is_an_error_that_says_so(log: EpisodicLog, source: Path) -> None:
    """What was read before the damage stays imported."""
    make(source, RECIPE, [(*ROW[:4], "x" * 500, *ROW[5:])] * 5_000)
    content = bytearray(source.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 200_000] = b"\xee" * 200_000
    source.write_bytes(content)
    with pytest.raises((TransferError, StorageError), match="damaged"):
        await import_file(log, source)
    (source.parent / "text.db").write_bytes(b"SQLite format 3\0" + os.urandom(5_000))
    with pytest.raises(StorageError, match=r"text\.db"):
        await import_file(log, source.parent / "text.db")
    with pytest.raises(NotOurFileError, match="no SQLite database"):
        await import_file(log, Path(__file__), form="recipe")


async def test_an_empty_database_imports_as_nothing(log: EpisodicLog, source: Path) -> None:
    """A recipe without rows is no error."""
    make(source, RECIPE)
    assert await imported(log, source) == []
