"""Recording into a real file: receipts, all or none, isolation of what the database refuses, retries, time and ids."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from episodic import (
    BusyError,
    ConflictError,
    Draft,
    DraftError,
    Episode,
    EpisodicError,
    EpisodicLog,
    FilterError,
    NotFoundError,
    QueueFullError,
    RejectedError,
    Settings,
)
from episodic.ports import Append
from episodic.sqlite.connect import place
from episodic.sqlite.journal import MOST_BYTES
from episodic.sqlite.store import SqliteStore
from tests.conftest import Sql

OnConnect = Callable[[Callable[[sqlite3.Connection], object]], None]

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

# Each makes the database refuse an episode whose content is "bad", at another moment.
WHEN_BAD = "CREATE TRIGGER no {} INSERT ON episodes WHEN NEW.content = 'bad' BEGIN {}; END"
REFUSALS = {
    "abort": WHEN_BAD.format("BEFORE", "SELECT raise(ABORT, 'no')"),
    "abort after": WHEN_BAD.format("AFTER", "SELECT raise(ABORT, 'no')"),
    "rollback": WHEN_BAD.format("AFTER", "SELECT raise(ROLLBACK, 'no')"),
    "null": WHEN_BAD.format("AFTER", "UPDATE episodes SET role = NULL"),
    "check": WHEN_BAD.format("AFTER", "UPDATE episodes SET role = 'x'"),
    "unique": "CREATE UNIQUE INDEX one_bad ON episodes (content) WHERE content = 'bad'",
    "roll-up": (
        "CREATE TRIGGER no BEFORE INSERT ON sessions WHEN NEW.session_id = 'bad' BEGIN SELECT raise(ABORT, 'no'); END"
    ),
}


@pytest.fixture
def on_connect(monkeypatch: pytest.MonkeyPatch) -> OnConnect:
    """Have something done to each new connection, as another build or configuration of SQLite would be."""
    connect = sqlite3.connect

    def use(change: Callable[[sqlite3.Connection], object]) -> None:
        def connect_and_change(*args: Any, **keywords: Any) -> sqlite3.Connection:  # noqa: ANN401 - as sqlite3.connect
            db: sqlite3.Connection = connect(*args, **keywords)
            change(db)
            return db

        monkeypatch.setattr(sqlite3, "connect", connect_and_change)

    return use


def assert_unlocked(path: Path) -> None:
    """See that no connection has left a transaction open: another one gets the write lock without waiting."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        db.execute("BEGIN IMMEDIATE")


async def record_each(log: EpisodicLog, contents: list[str]) -> list[Episode | BaseException]:
    """Record each text in a call of its own, all at once."""
    calls = [log.record("a", "bad" if content == "bad" else "s", "user", content) for content in contents]
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_record_returns_what_is_committed(log: EpisodicLog, sql: Sql) -> None:
    """When record returns, another connection sees the episode, and the receipt is what a reader gets."""
    receipt = await log.record(
        "support-bot",
        "sess-1",
        "assistant",
        "The refund is on its way.",
        user_id="u42",
        author="billing desk",
        outcome="success",
        metadata={"intent": "billing", "tags": [1, None]},
        timestamp=NOON,
        event_id="msg-1",
    )
    assert sql("SELECT id, agent_id, content, event_id, timestamp FROM episodes") == [
        (1, "support-bot", "The refund is on its way.", "msg-1", int(NOON.timestamp()) * 1_000_000)
    ]
    assert receipt == Episode(
        1,
        "support-bot",
        "sess-1",
        "u42",
        "billing desk",
        NOON,
        "assistant",
        "The refund is on its way.",
        "success",
        {"intent": "billing", "tags": [1, None]},
        "msg-1",
        archived=False,
    )
    assert await log.get(1) == receipt


async def test_record_takes_what_a_draft_takes(log: EpisodicLog) -> None:
    """One call and the other with the same draft give the same episode but for its id and time."""
    draft = Draft("a", "s", "tool", "{}", user_id="u", author="t", outcome="failure", metadata={"k": 1}, event_id="e-1")
    given = {name: getattr(draft, name) for name in draft.__slots__}
    [many] = await log.record_many([draft])
    one = await log.record(**{**given, "event_id": "e-2"})
    for name in draft.__slots__:
        if name not in {"timestamp", "event_id"}:
            assert getattr(one, name) == getattr(many, name) == given[name]


@pytest.mark.parametrize(
    "timestamp",
    [
        NOON,
        NOON.astimezone(timezone(timedelta(hours=-9, minutes=-30))),
        NOON + timedelta(microseconds=1),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
    ],
)
async def test_a_time_is_kept_as_the_same_instant_in_utc(log: EpisodicLog, timestamp: datetime) -> None:
    """Any aware datetime comes back as the same instant, to the microsecond, in UTC."""
    receipt = await log.record("a", "s", "user", "x", timestamp=timestamp)
    stored = await log.get(receipt.id)
    assert receipt == stored
    assert (stored.timestamp, stored.timestamp.tzinfo) == (timestamp, UTC)


async def test_record_many_keeps_the_order_and_shares_one_transaction(log: EpisodicLog) -> None:
    """The receipts come in the order of the drafts, with ids in a row; any iterable will do, an empty one too."""
    receipts = await log.record_many(Draft("a", f"s{n % 3}", "user", f"{n}") for n in range(100))
    assert [(e.id, e.content) for e in receipts] == [(n + 1, f"{n}") for n in range(100)]
    assert log.stats().batches == 1
    assert await log.record_many([]) == []
    assert log.stats().batches == 1
    assert [e async for e in log.scan()] == receipts


async def test_record_many_names_the_draft_that_is_none(log: EpisodicLog) -> None:
    """What is no Draft is refused with its place, before anything is queued."""
    with pytest.raises(DraftError, match="draft 2 of 3 is a dict"):
        await log.record_many([Draft("a", "s", "user", "x"), {}, Draft("a", "s", "user", "y")])  # type: ignore[list-item]
    assert await log.newest_id() == 0


async def test_calls_made_in_order_are_in_that_order(log: EpisodicLog) -> None:
    """Two thousand tasks that record at once come out in the order in which they called."""
    receipts = await asyncio.gather(*[log.record("a", "s", "user", f"{n}") for n in range(2_000)])
    assert [e.id for e in receipts] == list(range(1, 2_001))
    assert [e async for e in log.replay("s")] == receipts


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_one_refused_row_of_a_hundred_fails_alone(log: EpisodicLog, path: Path, sql: Sql, refusal: str) -> None:
    """Whatever in the database refuses a row, its caller alone gets RejectedError; 99 are stored, the next works."""
    sql(refusal)
    if refusal == REFUSALS["unique"]:
        await log.record("a", "s", "user", "bad")
    contents = [f"{n}" for n in range(100)]
    contents[37] = "bad"
    before = await log.newest_id()
    answers = await record_each(log, contents)
    assert isinstance(answers.pop(37), RejectedError)
    assert [e.content for e in answers if isinstance(e, Episode)] == [c for c in contents if c != "bad"]
    assert_unlocked(path)
    assert (await log.record("a", "s", "user", "next")).content == "next"
    assert sorted(sql("SELECT content FROM episodes WHERE id > ?", before)) == sorted(
        (content,) for content in [*contents[:37], *contents[38:], "next"]
    )
    assert sql("SELECT sum(episodes) FROM sessions") == sql("SELECT count(*) FROM episodes")
    assert sql("SELECT sum(episodes) FROM agents") == sql("SELECT count(*) FROM episodes")
    assert sql("SELECT count(*) FROM episodes_fts_docsize") == sql("SELECT count(*) FROM episodes")
    assert log.stats().rejected == 1


async def test_a_refused_batch_leaves_no_snapshot_open(log: EpisodicLog, path: Path, sql: Sql) -> None:
    """When a batch fails behind the search index, nothing stays open that another process would have to wait for."""
    sql(REFUSALS["roll-up"])
    with pytest.raises(RejectedError):
        await log.record("a", "bad", "user", "x")
    sql("UPDATE log_state SET clock = clock + 1")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    assert (await log.record("a", "s", "user", "next")).content == "next"


async def test_a_batch_behind_a_refused_one_is_not_busy(path: Path, sql: Sql, on_connect: OnConnect) -> None:
    """Another process that writes between a refused batch and the one in flight behind it makes that one no error."""
    meddled: list[str] = []

    def meddle(statement: str) -> None:
        if statement.startswith("INSERT INTO batch") and '"good"' in statement and not meddled:
            meddled.append(statement)
            other.execute("UPDATE log_state SET clock = clock + 1")

    on_connect(lambda db: db.set_trace_callback(meddle))
    async with EpisodicLog.open(path, settings=Settings(batch_rows=1)) as log:
        sql(REFUSALS["roll-up"])
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
            other.set_trace_callback(None)
            await log.record("a", "s", "user", "first")
            bad, good = await asyncio.gather(
                log.record("a", "bad", "user", "x"), log.record("a", "good", "user", "x"), return_exceptions=True
            )
    assert meddled
    assert isinstance(bad, RejectedError)
    assert isinstance(good, Episode)


async def test_a_refused_row_says_what_refused_it(log: EpisodicLog, sql: Sql) -> None:
    """The error holds the file and SQLite's own words, and says that nothing was stored."""
    sql(REFUSALS["abort"])
    with pytest.raises(RejectedError, match=r"nothing was stored.*no") as caught:
        await log.record("a", "s", "user", "bad")
    assert str(log.stats().path) in str(caught.value)
    assert isinstance(caught.value.__cause__, sqlite3.IntegrityError)


async def test_record_many_with_a_refused_row_stores_none(log: EpisodicLog, path: Path, sql: Sql) -> None:
    """A call and its result are written together or not at all."""
    sql(REFUSALS["abort"])
    with pytest.raises(RejectedError):
        await log.record_many([Draft("a", "s", "tool", "call"), Draft("a", "s", "tool", "bad")])
    assert sql("SELECT count(*) FROM episodes") == [(0,)]
    assert sql("SELECT count(*) FROM sessions") == [(0,)]
    assert_unlocked(path)


async def test_a_failure_that_fires_only_at_commit_fails_alone(path: Path, sql: Sql, on_connect: OnConnect) -> None:
    """With a constraint that is checked at COMMIT, nobody is told success who is not stored."""
    on_connect(lambda db: db.execute("PRAGMA foreign_keys = ON"))
    async with EpisodicLog.open(path) as log:
        sql("CREATE TABLE ledger (entry INTEGER REFERENCES ledger_of (id) DEFERRABLE INITIALLY DEFERRED)")
        sql("CREATE TABLE ledger_of (id INTEGER PRIMARY KEY)")
        sql(
            "CREATE TRIGGER book AFTER INSERT ON episodes WHEN NEW.content = 'bad' "
            "BEGIN INSERT INTO ledger VALUES (NEW.id); END"
        )
        contents = [f"{n}" for n in range(100)]
        contents[0] = contents[99] = "bad"
        answers = await record_each(log, contents)
        assert [isinstance(answer, RejectedError) for answer in answers] == [True, *[False] * 98, True]
        assert_unlocked(path)
        assert sql("SELECT count(*), sum(content = 'bad') FROM episodes") == [(98, 0)]
        assert sql("SELECT count(*) FROM ledger") == [(0,)]
        with pytest.raises(RejectedError):
            await log.record_many([Draft("a", "s", "user", "1"), Draft("a", "s", "user", "bad")])
        assert (await log.record("a", "s", "user", "next")).content == "next"
        assert sql("SELECT count(*) FROM episodes") == [(99,)]


async def test_when_every_commit_fails_every_waiter_is_told(path: Path, sql: Sql, on_connect: OnConnect) -> None:
    """A commit that fails whatever is in it is nobody's success, and leaves nothing behind."""
    on_connect(lambda db: db.execute("PRAGMA foreign_keys = ON"))
    async with EpisodicLog.open(path) as log:
        sql("CREATE TABLE ledger (entry INTEGER REFERENCES ledger_of (id) DEFERRABLE INITIALLY DEFERRED)")
        sql("CREATE TABLE ledger_of (id INTEGER PRIMARY KEY)")
        sql("CREATE TRIGGER book AFTER INSERT ON episodes BEGIN INSERT INTO ledger VALUES (NEW.id); END")
        answers = await record_each(log, [f"{n}" for n in range(50)])
        assert all(isinstance(answer, RejectedError) for answer in answers)
        assert sql("SELECT (SELECT count(*) FROM episodes) + (SELECT count(*) FROM sessions)") == [(0,)]
        sql("DROP TRIGGER book")
        assert (await log.record("a", "s", "user", "next")).id == 1


async def test_a_text_too_large_for_the_database_fails_alone(path: Path, on_connect: OnConnect) -> None:
    """A text over SQLite's limit is refused for its caller; texts that fit one by one are stored, however many."""
    on_connect(lambda db: db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 200_000))
    async with EpisodicLog.open(path) as log:
        contents = [*["x" * 60_000] * 10, "huge" * 60_000, *["y" * 60_000] * 10]
        answers = await record_each(log, contents)
        assert isinstance(answers.pop(10), RejectedError)
        assert [len(e.content) for e in answers if isinstance(e, Episode)] == [60_000] * 20
        with pytest.raises(RejectedError):
            await log.record_many([Draft("a", "s", "user", "x" * 60_000)] * 10)
        assert len([e async for e in log.scan()]) == 20
        assert (await log.record("a", "s", "user", "next")).content == "next"


async def test_a_call_over_the_limit_of_one_text_is_refused_before_sqlite(path: Path) -> None:
    """What cannot travel as one text is refused with advice, and nothing of it is stored."""
    store = await SqliteStore.open(place(path, read_only=False), Settings(), lambda _event: None)
    with pytest.raises(RejectedError, match="split it"):
        await store.append([Append([b"[]"], MOST_BYTES + 1, 0, has_events=False)])
    await store.aclose()


async def test_a_large_text_is_kept_exactly(log: EpisodicLog) -> None:
    """A message of five megabytes is stored and comes back."""
    content = "grüße 👍 " * 500_000
    episode = await log.record("a", "s", "user", content)
    assert (await log.get(episode.id)).content == content


async def test_a_file_held_by_another_is_busy_in_time_and_works_again(path: Path) -> None:
    """Who holds the file for longer than busy_timeout makes record fail typed; nothing is stored; then it works."""
    async with EpisodicLog.open(path, settings=Settings(busy_timeout=0.1)) as log:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(BusyError, match="nothing was stored"):
                await log.record("a", "s", "user", "busy")
            with pytest.raises(BusyError):
                await log.resolve("a", "s", "success")
        assert (await log.record("a", "s", "user", "free")).id == 1
        assert [e.content async for e in log.scan()] == ["free"]
        assert log.stats().recorded == 1


async def test_a_held_file_fills_the_queue_and_no_more(path: Path) -> None:
    """While nothing can be committed, what is offered beyond the bound is QueueFullError; then all is as before."""
    async with EpisodicLog.open(path, settings=Settings(queue_rows=100, submit_timeout=0.05)) as log:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            queued = [asyncio.create_task(log.record("a", "s", "user", f"{n}")) for n in range(100)]
            await asyncio.sleep(0)
            refused = await asyncio.gather(
                *[log.record("a", "s", "user", "refused") for _ in range(2_000)], return_exceptions=True
            )
            assert {type(answer) for answer in refused} == {QueueFullError}
            assert (log.stats().queued_rows, log.stats().waiting) == (100, 0)
        assert [e.content for e in await asyncio.gather(*queued)] == [f"{n}" for n in range(100)]
        assert (await log.record("a", "s", "user", "next")).id == 101
        assert (log.stats().queued_rows, log.stats().queued_bytes) == (0, 0)


async def test_another_process_that_writes_between_our_batches_keeps_ids_right(log: EpisodicLog, path: Path) -> None:
    """Two logs on one file, turn and turn about, alone and at once: every receipt is the row that it names."""
    async with EpisodicLog.open(path) as other:
        receipts: list[Episode] = []
        for n in range(20):
            receipts.append(await log.record("a", "s", "user", f"ours {n}"))
            receipts += await other.record_many([Draft("a", "s", "user", f"theirs {n}.{m}") for m in range(3)])
            receipts.append(await log.record("a", "s", "user", f"ours again {n}", event_id=f"e{n}"))
        receipts += await asyncio.gather(
            *[who.record("b", f"s{n % 5}", "user", f"both {n}") for n in range(200) for who in (log, other)]
        )
        assert sorted(e.id for e in receipts) == list(range(1, 501))
        assert [e async for e in log.scan()] == sorted(receipts, key=lambda e: e.id)


async def test_a_batch_does_not_overtake_the_one_before_when_another_has_written(
    path: Path, on_connect: OnConnect
) -> None:
    """Where another process took just as many ids as the first of two batches in flight, they keep their order."""
    meddled: list[str] = []

    def meddle(statement: str) -> None:
        if statement.startswith("INSERT INTO batch") and '"first"' in statement and not meddled:
            meddled.append(statement)
            other.execute("UPDATE log_state SET next_id = next_id + 1, writer = 99")

    on_connect(lambda db: db.set_trace_callback(meddle))
    async with EpisodicLog.open(path, settings=Settings(batch_rows=1)) as log:
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
            other.set_trace_callback(None)
            await log.record("a", "s", "user", "before")
            first, second = await asyncio.gather(*[log.record("a", "s", "user", x) for x in ("first", "second")])
    assert meddled
    assert (first.id, second.id) == (3, 4)


async def test_after_another_has_written_a_batch_is_one_statement_again(path: Path, on_connect: OnConnect) -> None:
    """Ids that another process took are noticed once; from then on no batch is tried in vain."""
    statements: list[str] = []
    on_connect(lambda db: db.set_trace_callback(statements.append))
    async with EpisodicLog.open(path) as log, EpisodicLog.open(path) as other:
        await log.record("a", "s", "user", "x")
        await other.record("a", "s", "user", "x")
        await log.record("a", "s", "user", "x")
        statements.clear()
        for n in range(10):
            await log.record("a", "s", "user", f"{n}")
    # SQLite tells of a statement again for each one in its trigger.
    assert len({text for text in statements if "INSERT INTO batch" in text}) == 10


async def test_one_event_three_times_at_once_is_one_row_and_one_receipt(log: EpisodicLog) -> None:
    """A webhook that is delivered three times gives one episode, and all three callers its receipt."""
    calls = [log.record("a", "s", "user", "x", metadata={"b": 1, "a": 2}, event_id="e") for _ in range(3)]
    first, second, third = await asyncio.gather(*calls)
    assert first == second == third == await log.get(first.id)
    assert [e async for e in log.scan()] == [first]
    [session] = await log.sessions("a")
    assert session.episodes == 1


async def test_a_retry_gives_the_first_receipt_back(log: EpisodicLog, path: Path) -> None:
    """The same body later, also after reopening, through record or record_many, answers with the first id and time."""
    first = await log.record("a", "s", "user", "x", user_id="u", author="t", metadata={"k": [1]}, event_id="e")
    draft = Draft("a", "s", "user", "x", user_id="u", author="t", metadata={"k": (1,)}, event_id="e")
    assert await log.record_many([draft]) == [first]
    await log.aclose()
    async with EpisodicLog.open(path) as again:
        other, same = await again.record_many([Draft("a", "s", "user", "new"), draft])
        assert same == first
        assert other.id > first.id
        assert (
            await again.record("a", "s", "user", "x", user_id="u", author="t", metadata={"k": [1]}, event_id="e")
            == first
        )


@pytest.mark.parametrize(
    "change",
    [
        {"content": "other"},
        {"content": "X"},
        {"content": "x "},
        {"session_id": "other"},
        {"role": "assistant"},
        {"user_id": "other"},
        {"user_id": None},
        {"user_id": ""},
        {"author": None},
        {"outcome": "failure"},
        {"outcome": None},
        {"metadata": {"k": True}},
        {"metadata": {"k": 1.0}},
        {"metadata": None},
        {"timestamp": NOON + timedelta(microseconds=1)},
    ],
    ids=str,
)
async def test_one_event_id_with_another_body_is_a_conflict(log: EpisodicLog, change: dict[str, Any]) -> None:
    """Whichever field differs, the second body is refused with the holder's id, and the first stays as it is."""
    body: dict[str, Any] = {
        "agent_id": "a",
        "session_id": "s",
        "role": "user",
        "content": "x",
        "user_id": "u",
        "author": "t",
        "outcome": "success",
        "metadata": {"k": 1},
        "timestamp": NOON,
        "event_id": "e",
    }
    first = await log.record(**body)
    with pytest.raises(ConflictError, match=r"event id 'e' of agent 'a' is taken by episode 1") as caught:
        await log.record(**{**body, **change})
    assert (caught.value.agent_id, caught.value.event_id, caught.value.episode_id) == ("a", "e", 1)
    assert [e async for e in log.scan()] == [first]
    assert await log.record(**body) == first
    # Without a time of its own a retry takes the first one's.
    assert await log.record(**{**body, "timestamp": None}) == first


async def test_a_retry_without_a_time_is_no_conflict_and_with_another_one_is(log: EpisodicLog) -> None:
    """A body that left the time to the log is repeated without one; a time of its own must be the stored one."""
    first = await log.record("a", "s", "user", "x", event_id="e")
    assert await log.record("a", "s", "user", "x", event_id="e") == first
    assert await log.record("a", "s", "user", "x", event_id="e", timestamp=first.timestamp) == first
    with pytest.raises(ConflictError):
        await log.record("a", "s", "user", "x", event_id="e", timestamp=NOON)


async def test_a_conflict_in_a_hundred_fails_alone(log: EpisodicLog) -> None:
    """One call whose event id is taken leaves its neighbours, repeats among them, with their receipts."""
    taken = await log.record("a", "s", "user", "first", event_id="taken")
    calls = [log.record("a", "s", "user", f"{n}", event_id=f"e{n % 50}-{n % 2}") for n in range(100)]
    for call in calls[20:22]:
        call.close()
    calls[20] = log.record("a", "s", "user", "other", event_id="taken")
    calls[21] = log.record("a", "s", "user", "first", event_id="taken")
    answers = await asyncio.gather(*calls, return_exceptions=True)
    conflicts = [answer for answer in answers if isinstance(answer, BaseException)]
    assert all(isinstance(answer, ConflictError) for answer in conflicts)
    assert isinstance(answers[20], ConflictError)
    assert answers[20].episode_id == taken.id
    assert answers[21] == taken


async def test_record_many_with_a_conflict_inside_stores_none(log: EpisodicLog, sql: Sql) -> None:
    """Whether the other body is in the log or in the same call, the whole call is refused and says which id it is."""
    await log.record("a", "s", "user", "first", event_id="taken")
    fresh = Draft("a", "new", "user", "fresh")
    with pytest.raises(ConflictError, match=r"'taken'.*episode 1") as caught:
        await log.record_many([fresh, Draft("a", "s", "user", "other", event_id="taken"), fresh])
    assert caught.value.episode_id == 1
    with pytest.raises(ConflictError, match=r"'e'.*another draft of the same call") as caught:
        await log.record_many([fresh, *(Draft("a", "s", "user", text, event_id="e") for text in ("one", "two"))])
    assert caught.value.episode_id is None
    assert sql("SELECT content FROM episodes") == [("first",)]
    assert sql("SELECT session_id, episodes FROM sessions") == [("s", 1)]


async def test_a_conflict_names_the_event_that_is_at_fault(log: EpisodicLog) -> None:
    """A repeat that leaves the time to the log is none, so that the conflict behind it is the one that is told."""
    repeated = [Draft("a", "s", "user", "same", event_id="innocent", timestamp=time) for time in (NOON, None)]
    with pytest.raises(ConflictError) as caught:
        await log.record_many([*repeated, *(Draft("a", "s", "user", text, event_id="guilty") for text in ("1", "2"))])
    assert caught.value.event_id == "guilty"
    first, second = await log.record_many(repeated)
    assert first == second


async def test_repeats_inside_one_call_share_a_receipt(log: EpisodicLog) -> None:
    """The same draft twice in one call is one episode, and the others get the ids that their rows have."""
    twice = Draft("a", "s", "user", "twice", event_id="e")
    drafts = [Draft("a", "s", "user", "1"), twice, Draft("a", "s", "user", "2"), twice, Draft("a", "s", "user", "3")]
    receipts = await log.record_many(drafts)
    assert receipts[1] == receipts[3]
    assert [e async for e in log.scan()] == [receipts[0], receipts[1], receipts[2], receipts[4]]
    assert (await log.sessions("a"))[0].episodes == 4


async def test_event_ids_are_unique_per_agent_only(log: EpisodicLog) -> None:
    """Two agents may use one event id for different things; an empty event id is an event id."""
    one = await log.record("a", "s", "user", "one", event_id="e")
    two = await log.record("A", "s", "user", "two", event_id="e")
    assert one.id != two.id
    empty = await log.record("a", "s", "user", "empty", event_id="")
    assert await log.record("a", "s", "user", "empty", event_id="") == empty
    with pytest.raises(ConflictError):
        await log.record("a", "s", "user", "other", event_id="")


async def test_times_never_run_backwards_when_the_clock_does(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the clock jumps back an hour, and across reopening, each episode is later than the one before it."""
    now = time.time_ns()
    receipts: list[Episode] = []
    for jump in (0, -3_600, -7_200, 5):
        monkeypatch.setattr(time, "time_ns", lambda jump=jump: now + jump * 10**9)
        async with EpisodicLog.open(path) as log:
            receipts += await asyncio.gather(*[log.record("a", "s", "user", f"{jump} {n}") for n in range(50)])
            receipts += await log.record_many([Draft("a", "s", "user", f"{jump} many {n}") for n in range(3)])
            assert [e async for e in log.replay("s")] == receipts
    assert all((one.timestamp, one.id) < (two.timestamp, two.id) for one, two in pairwise(receipts))
    assert receipts[-1].timestamp - receipts[0].timestamp < timedelta(seconds=6)


async def test_a_time_that_a_caller_gives_does_not_move_the_logs_own(log: EpisodicLog) -> None:
    """An episode from the future does not push those that follow it there."""
    future = await log.record("a", "s", "user", "x", timestamp=datetime(2999, 1, 1, tzinfo=UTC))
    assert (await log.record("a", "s", "user", "y")).timestamp < future.timestamp


async def test_calls_keep_their_order_around_a_refused_one(
    path: Path, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a batch is halved to find a bad call the next one is committed first; the order is that of the calls."""
    monkeypatch.setattr(time, "time_ns", lambda: 10**18)
    async with EpisodicLog.open(path, settings=Settings(batch_rows=10)) as log:
        sql(REFUSALS["abort"])
        contents = [f"{n}" for n in range(100)]
        contents[5] = contents[25] = "bad"
        await record_each(log, contents)
        assert [e.content async for e in log.replay("s")] == [content for content in contents if content != "bad"]


async def test_ids_are_never_reused(path: Path, sql: Sql) -> None:
    """After the highest row is deleted and the file reopened, the next episode gets an id that none has had."""
    async with EpisodicLog.open(path) as log:
        await log.record_many([Draft("a", "s", "user", f"{n}") for n in range(5)])
    sql("DELETE FROM episodes WHERE id >= 4")
    async with EpisodicLog.open(path) as log:
        assert (await log.record("a", "s", "user", "next")).id == 6
        sql("DELETE FROM episodes")
        assert (await log.record("a", "s", "user", "next")).id == 7


async def test_a_refused_batch_takes_no_ids(log: EpisodicLog, sql: Sql) -> None:
    """The id of a row is that of its place in the order of commits; what was rolled back leaves no trace in it."""
    sql(REFUSALS["abort"])
    with pytest.raises(RejectedError):
        await log.record("a", "s", "user", "bad")
    assert (await log.record("a", "s", "user", "good")).id == 1


async def test_resolve_says_how_a_session_ended(log: EpisodicLog) -> None:
    """An outcome is set, replaced and taken back; the episodes of the session keep their own."""
    episode = await log.record("a", "s", "user", "x", outcome="partial")
    for outcome in ("success", "failure", None, "partial"):
        await log.resolve("a", "s", outcome)
        assert [session.outcome for session in await log.sessions("a")] == [outcome]
    assert await log.get(episode.id) == episode


async def test_resolve_comes_after_what_was_recorded_before_it(log: EpisodicLog) -> None:
    """Called right behind a record that is still under way, resolve finds its session; what follows keeps it."""
    await asyncio.gather(
        *[log.record("a", "s", "user", f"{n}") for n in range(500)],
        log.resolve("a", "s", "success"),
        *[log.record("a", "s", "user", f"{n}") for n in range(500)],
    )
    [session] = await log.sessions("a")
    assert (session.outcome, session.episodes) == ("success", 1_000)


@pytest.mark.parametrize(("agent_id", "session_id"), [("a", "other"), ("other", "s"), ("A", "s"), ("a", ""), ("", "s")])
async def test_resolving_a_session_that_is_not_there_is_an_error(
    log: EpisodicLog, agent_id: str, session_id: str
) -> None:
    """Both ids must be those of a session; another agent's session is not one's own."""
    await log.record("a", "s", "user", "x")
    with pytest.raises(NotFoundError, match="check both ids"):
        await log.resolve(agent_id, session_id, "success")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("a", "s", "done"), DraftError),
        (("a", "s", 1), DraftError),
        (("a", "s", ["success"]), DraftError),
        (("a\0", "s", "success"), FilterError),
        (("a", "\ud83d", "success"), FilterError),
        ((None, "s", "success"), FilterError),
    ],
)
async def test_resolve_refuses_what_it_cannot_record(
    log: EpisodicLog, arguments: tuple[Any, Any, Any], error: type[EpisodicError]
) -> None:
    """A wrong outcome or an id that is no text is refused by the call itself."""
    with pytest.raises(error):
        await log.resolve(*arguments)


async def test_a_session_belongs_to_the_first_user_however_it_was_batched(log: EpisodicLog) -> None:
    """The user of a session is the first whom it was about, in one transaction or in several."""
    users = [None, "zoe", "adam", "maria"]
    await log.record_many([Draft("a", "together", "user", "x", user_id=user) for user in users])
    for user in users:
        await log.record("a", "apart", "user", "x", user_id=user)
    assert [(session.session_id, session.user_id) for session in await log.sessions("a")] == [
        ("apart", "zoe"),
        ("together", "zoe"),
    ]


async def test_the_roll_up_of_sessions_is_what_the_episodes_say(log: EpisodicLog, sql: Sql) -> None:
    """First, last and count of each session are those of its episodes, whatever the order of their times."""
    times = [NOON + timedelta(minutes=minutes) for minutes in (5, -3, 99, 0, 5)]
    await log.record_many([Draft("a", f"s{n % 2}", "user", "x", timestamp=times[n]) for n in range(3)])
    for n in range(3, 5):
        await log.record("a", f"s{n % 2}", "user", "x", timestamp=times[n])
    for session in await log.sessions("a"):
        own = [e.timestamp async for e in log.replay(session.session_id)]
        assert (session.first, session.last, session.episodes) == (min(own), max(own), len(own))
    assert sql("SELECT agent_id, episodes FROM agents") == [("a", 5)]


async def test_stats_count_what_happened(log: EpisodicLog, path: Path, sql: Sql) -> None:
    """Acknowledged rows, transactions, refusals and the largest batch since the log was opened."""
    sql(REFUSALS["abort"])
    await log.record("a", "s", "user", "1")
    await log.record_many([Draft("a", "s", "user", f"{n}") for n in range(7)])
    with pytest.raises(RejectedError):
        await log.record("a", "s", "user", "bad")
    stats = log.stats()
    assert (stats.recorded, stats.batches, stats.rejected, stats.largest_batch) == (8, 2, 1, 7)
    assert (stats.queued_rows, stats.queued_bytes, stats.waiting, stats.in_flight) == (0, 0, 0, 0)
    assert (stats.path, stats.mode, stats.reindexed) == (str(path), "fts", 0)
    assert stats.sqlite_version == sqlite3.sqlite_version
    assert (stats.file_bytes, stats.wal_bytes) == (path.stat().st_size, Path(f"{path}-wal").stat().st_size)


async def test_sessions_that_end_together_are_resolved_in_one_transaction(log: EpisodicLog) -> None:
    """What is said in a row of how sessions ended is one batch; the last word holds, an unknown session fails."""
    await log.record_many([Draft("a", f"s{n}", "user", "hello") for n in range(50)])
    before = log.stats().batches
    calls = [log.resolve("a", f"s{n}", outcome) for n in range(50) for outcome in ("failure", "success")]
    answers = await asyncio.gather(*calls, log.resolve("a", "nowhere", None), return_exceptions=True)
    assert answers[:-1] == [None] * 100
    assert isinstance(answers[-1], NotFoundError)
    assert log.stats().batches - before <= 2
    assert {session.outcome for session in await log.sessions("a", limit=50)} == {"success"}


@pytest.mark.parametrize("odd", [None, 5])
async def test_what_is_no_collection_of_drafts_is_refused(log: EpisodicLog, odd: Any) -> None:  # noqa: ANN401
    """An error of ours, before anything is queued."""
    with pytest.raises(DraftError, match="must be several Drafts"):
        await log.record_many(odd)


async def test_a_message_stays_short_whatever_it_shows(log: EpisodicLog) -> None:
    """A value of megabytes does not end up in somebody's log of errors."""
    with pytest.raises(FilterError) as caught:
        await log.get("x" * 1_000_000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200
