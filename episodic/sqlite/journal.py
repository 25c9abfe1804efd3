"""The writing connection: opens and heals the file, and takes in batches, each in one statement."""

from __future__ import annotations

import logging
import secrets
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Self, TypeVar

import aiosqlite
import orjson

from episodic.errors import ConflictError, CorruptError, RejectedError, StorageError
from episodic.events import OnEvent
from episodic.ports import Append, Appended, Repeat, Resolve
from episodic.settings import Settings
from episodic.sqlite.connect import (
    DAMAGED,
    Place,
    code_of,
    configure_writer,
    connect_writer,
    has_fts5,
    read_sql,
    run_script,
    statements,
    translated,
)
from episodic.sqlite.fts import prepare_index
from episodic.sqlite.migrate import identify, migrate
from episodic.sqlite.turns import POLL, Turns
from episodic.sqlite.wal import FOLDED_AT, WriteAheadLog

__all__ = ["MOST_BYTES", "SqliteJournal", "metadata_member"]

# One step without an answer, for a batch whose ids are known beforehand: each return from SQLite to Python waits for
# the interpreter, up to 5 ms beside a busy event loop, and this statement does so half as often as one that answers.
APPEND_EXPECTED = "INSERT INTO batch (doc, n, first_id, clock, has_events, writer) VALUES (?, ?, ?, ?, false, ?)"
STALE_MARK = "episodic: stale ids"

# The row that comes back is computed after the trigger has run, in the same transaction: the next id, the clock, and
# the rows that stood in the log before.
APPEND = """
INSERT INTO batch (doc, n, clock, has_events, writer) VALUES (?, ?, ?, ?, ?)
RETURNING
    (SELECT next_id FROM log_state),
    (SELECT clock FROM log_state),
    CASE WHEN has_events THEN (
        SELECT json_group_array(json_array(line.key, e.id, e.timestamp))
        FROM json_each(doc) AS line
        CROSS JOIN episodes AS e ON e.agent_id = line.value ->> 0 AND e.event_id = line.value ->> 9
        WHERE e.id <> (SELECT next_id FROM log_state) - n + line.key
    ) END
"""
CONFLICT_MARK = "episodic: event conflict"
HOLDER = """
SELECT id, timestamp, session_id, user_id, author, role, content, outcome, metadata
FROM episodes WHERE agent_id = ? AND event_id = ?
"""
READ_ANYTHING = "SELECT 1 FROM log_state"
RESOLVE = """
UPDATE sessions SET outcome = line.value ->> 2
FROM json_each(?) AS line
WHERE sessions.agent_id = line.value ->> 0 AND sessions.session_id = line.value ->> 1
RETURNING sessions.agent_id, sessions.session_id
"""

# SQLite's own bound on one text is 10^9 bytes, and a batch travels as one.
MOST_BYTES = 900_000_000

logger = logging.getLogger("episodic")

AnswerT = TypeVar("AnswerT")


class SqliteJournal:
    """A `ports.Journal` over one SQLite file.

    Attributes:
        fts: whether SQLite has FTS5.
        reindexed: episodes that the search index lacked at open and was given.
        clock: the latest time that the log had given at open, in microseconds.
    """

    def __init__(
        self,
        db: aiosqlite.Connection,
        appending: aiosqlite.Cursor,
        where: Place,
        settings: Settings,
        on_event: OnEvent,
        *,
        fts: bool,
    ) -> None:
        """Wrap a connection that `open` has prepared."""
        self._db = db
        self._where = where
        self._settings = settings
        self._wal = WriteAheadLog(db, where, POLL, on_event)
        self._turns = Turns(settings.busy_timeout)
        self.fts = fts
        self.reindexed = 0
        self.clock = 0
        # One for all batches: a cursor that is made for each dies in the event loop's thread, and resets there the
        # statement that the next batch runs in the connection's. Until then the loop stands still, and what comes of
        # it may be "bad parameter or other API misuse".
        self._appending = appending
        # Rows handed to SQLite since open, and what must be added to get the id of the next one: that changes when
        # another process writes or a batch is refused.
        self._handed = 0
        self._shift = 1
        self._number = secrets.randbelow(2**62) + 1
        self._version = 0
        # Whether a writer without the cap may have left hot what is to be archived.
        self._has_surplus = settings.hot_cap is not None

    @classmethod
    async def open(cls, where: Place, settings: Settings, on_event: OnEvent) -> Self:
        """Open the file, make or migrate its schema, and heal its index.

        Args:
            where: the file.
            settings: how it is written.
            on_event: told of checkpoints.

        Raises:
            OpenError: when it cannot be a log of ours.
        """
        db = await connect_writer(where, busy_timeout=settings.busy_timeout)
        try:
            with translated(where.path):
                await identify(db, where.path)
                await configure_writer(
                    db, where, busy_timeout=settings.busy_timeout, full=settings.durability == "full"
                )
                await migrate(db, where.path)
                store = cls(db, await db.cursor(), where, settings, on_event, fts=await has_fts5(db))
                await store._prepare()
        except BaseException:
            await db.close()
            raise
        return store

    async def append(self, operations: Sequence[Append]) -> Appended:
        """Store the rows of all operations in one transaction; see `ports.Store.append`."""
        rows = [row for operation in operations for row in operation.rows]
        size = sum(operation.size for operation in operations)
        if size > MOST_BYTES:
            msg = f"one call holds {size} bytes, at most {MOST_BYTES} fit; nothing was stored: split it"
            raise RejectedError(msg)
        has_events = any(operation.has_events for operation in operations)
        clock = max(operation.clock for operation in operations)
        doc = (b"[%b]" % b",".join(rows)).decode()
        place = self._handed
        self._handed += len(rows)
        first_id = place + self._shift
        if not has_events and await self._append_expected(doc, len(rows), first_id, clock):
            return Appended(first_id, {}, clock)
        try:
            append = partial(self._db.execute_fetchall, APPEND, (doc, len(rows), clock, has_events, self._number))
            answer = await self._write(append)
        except RejectedError as exc:
            # Which event it is matters once the call at fault stands alone.
            if CONFLICT_MARK in str(exc) and len(operations) == 1:
                raise await self._conflict(rows) from None
            raise
        [(next_id, clock, repeats)] = answer
        first_id = next_id - len(rows)
        if self._shift != first_id - place:
            self._shift = first_id - place
            await self._look_around()
        return Appended(first_id, _repeats(repeats), clock)

    async def _look_around(self) -> None:
        """Find out whether another process has written: that, or a batch that was refused, shifts the ids."""
        try:
            [(version,)] = await self._db.execute_fetchall("PRAGMA data_version")
        except sqlite3.Error as exc:
            # The batch is in, whatever comes of this.
            logger.warning("%s: whether others write to it cannot be seen: %s", self._where.path, exc)
            return
        if version != self._version:
            self._version = version
            self._turns.saw_another()
            self._has_surplus = True

    async def _append_expected(self, doc: str, n: int, first_id: int, clock: int) -> bool:
        """Store rows under the ids that are expected to be free; tell whether they were."""
        try:
            # Of the ways to run one statement, the one that asks SQLite least afterwards.
            row = (doc, n, first_id, clock, self._number)
            await self._write(partial(self._appending.executemany, APPEND_EXPECTED, [row]))
        except RejectedError as exc:
            if STALE_MARK in str(exc):
                return False
            raise
        return True

    async def _write(self, run: Callable[[], Awaitable[AnswerT]], *, folded_at: int = FOLDED_AT) -> AnswerT:
        """Run a statement that writes, and fold the write-ahead log in when it has become large.

        Args:
            run: runs it.
            folded_at: how large, in bytes.
        """
        answer = await self._written(run)
        await self._wal.keep_short(folded_at)
        return answer

    async def _written(self, run: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
        """Run a statement that writes.

        A statement that fails once it has reached the search index can leave the connection's snapshot open: SQLite
        rolls back before FTS5 lets go of its last read. As soon as another process writes, nothing can be written from
        that snapshot, and SQLite says busy at once. The next statement, whatever it reads, ends it.
        """
        with translated(self._where.path, writing=True):
            try:
                return await self._turns.take(run)
            except sqlite3.Error as exc:
                await self._db.execute_fetchall(READ_ANYTHING)
                if code_of(exc) != sqlite3.SQLITE_BUSY_SNAPSHOT:
                    raise
            return await self._turns.take(run)

    async def resolve(self, operations: Sequence[Resolve]) -> list[bool]:
        """Set how sessions ended, in one transaction; see `ports.Store.resolve`."""
        last = {(agent_id, session_id): outcome for agent_id, session_id, outcome in operations}
        doc = orjson.dumps([(*session, outcome) for session, outcome in last.items()]).decode()
        found = set(await self._write(partial(self._db.execute_fetchall, RESOLVE, (doc,))))
        return [(operation.agent_id, operation.session_id) in found for operation in operations]

    async def aclose(self) -> None:
        """Fold the write-ahead log into the file, as far as nobody reads from it just now, and close the connection.

        The last connection to close would do it, but a tool that follows the log may stay open for days.
        """
        try:
            await self._wal.fold(0)
        except StorageError as exc:
            logger.warning(
                "%s: the write-ahead log beside it is needed, it could not be folded in: %s", self._where.path, exc
            )
        finally:
            self._wal.close()
            try:
                # One that is open keeps the connection from letting go of the file.
                await self._appending.close()
            finally:
                await self._db.close()

    async def _prepare(self) -> None:
        state = list(await self._db.execute_fetchall("SELECT next_id, clock FROM log_state"))
        if len(state) != 1:
            msg = f"{self._where.path}: {DAMAGED} (log_state has {len(state)} rows)"
            raise CorruptError(msg)
        [(self._shift, self.clock)] = state
        if self.fts:
            self.reindexed = await prepare_index(self._db, self._where.path)
        for key in self._settings.indexed_metadata:
            await self._db.execute(_metadata_index(key))
        for script in ("append", "remove", "indexing" if self.fts else "no_indexing"):
            await run_script(self._db, statements(read_sql(script)))
        if self._settings.hot_cap is not None:
            await run_script(self._db, statements(read_sql("archive")))
            await self._db.execute("INSERT INTO hot (cap) VALUES (?)", (self._settings.hot_cap,))
        await self._db.execute(f"PRAGMA busy_timeout = {POLL * 1_000:.0f}")
        [(self._version,)] = await self._db.execute_fetchall("PRAGMA data_version")

    async def _conflict(self, rows: Sequence[bytes]) -> ConflictError:
        """Find the row of a refused batch whose event id has another body, in the log or else in an earlier row."""
        earlier: dict[tuple[str, str], list[object]] = {}
        for row in map(orjson.loads, rows):
            agent_id, event_id, was_given = row[0], row[9], row[10]
            if event_id is None:
                continue
            # As HOLDER has them.
            body = [row[4], *row[1:4], *row[5:9]]
            with translated(self._where.path):
                held = list(await self._db.execute_fetchall(HOLDER, (agent_id, event_id)))
            if held and _differs(list(held[0][1:]), body, was_given=was_given):
                return ConflictError(agent_id, event_id, held[0][0])
            if _differs(earlier.setdefault((agent_id, event_id), body), body, was_given=was_given):
                return ConflictError(agent_id, event_id, None)
        msg = "an event id was taken with another body, and freed since; nothing was stored: try again"
        raise RejectedError(msg)


def _differs(first: list[object], second: list[object], *, was_given: bool) -> bool:
    """Compare two bodies, each with its time in front; a time that the log gave to the second is none of its own."""
    return first[1:] != second[1:] or (was_given and first[0] != second[0])


def metadata_member(key: str) -> str:
    """Return the SQL expression of an indexed metadata key; `Settings` has checked that it holds no quote."""
    return f"metadata ->> '$.\"{key}\"'"


def _metadata_index(key: str) -> str:
    member = metadata_member(key)
    # In hexadecimal: names of indexes know no upper and lower case, keys do.
    return (
        f"CREATE INDEX IF NOT EXISTS episodes_by_metadata_{key.encode().hex()} "
        f"ON episodes (agent_id, {member}, timestamp) WHERE {member} IS NOT NULL"
    )


def _repeats(answer: str | None) -> dict[int, Repeat]:
    return {} if answer is None else {line: Repeat(number, micros) for line, number, micros in orjson.loads(answer)}
