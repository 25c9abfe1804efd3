"""What others do with the same drafts: plain `sqlite3`, one commit per record, and two stores that people use today.

The first two fill the tables and the index of a file that `EpisodicLog` made, with its pragmas, so that the schema and
the settings of the index are the same. The other two keep tables of their own, without an index of words.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import TypeAlias

import aiosqlite
import orjson
from agents.extensions.memory import AsyncSQLiteSession
from langgraph.store.sqlite import AsyncSqliteStore

from episodic import Draft, EpisodicLog
from episodic.folding import indexed_text
from episodic.sqlite.connect import WRITER_PRAGMAS

__all__ = ["Write", "agents_sessions", "langgraph_store", "one_commit_each", "plain"]

# Rows in one transaction of plain sqlite3.
TRANSACTION = 2_000

PRAGMAS = ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", *WRITER_PRAGMAS)

Row: TypeAlias = "tuple[str | int | None, ...]"

Write: TypeAlias = Callable[[Draft], Awaitable[None]]
"""Stores one draft for a task, which waits until it is committed."""

INSERT = """
INSERT INTO episodes
    (agent_id, session_id, user_id, author, timestamp, role, content, outcome, metadata, event_id, folded)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

# What must follow the rows of a transaction; their ids begin with `log_state.next_id`.
FOLLOW_UP = (
    """
    INSERT INTO agents (agent_id, episodes)
    SELECT agent_id, count(*) FROM episodes WHERE id >= (SELECT next_id FROM log_state) GROUP BY agent_id
    ON CONFLICT (agent_id) DO UPDATE SET episodes = episodes + excluded.episodes
    """,
    """
    INSERT INTO episodes_fts (rowid, user, author, content)
    SELECT place, user, author, content FROM episodes_indexed WHERE id >= (SELECT next_id FROM log_state)
    ORDER BY place
    """,
    """
    INSERT INTO sessions (agent_id, session_id, user_id, first, last, episodes)
    SELECT agent_id, session_id, min(user_id), min(timestamp), max(timestamp), count(*)
    FROM episodes WHERE id >= (SELECT next_id FROM log_state) GROUP BY agent_id, session_id
    ON CONFLICT (agent_id, session_id) DO UPDATE SET
        user_id = coalesce(user_id, excluded.user_id),
        first = min(first, excluded.first),
        last = max(last, excluded.last),
        episodes = episodes + excluded.episodes
    """,
    "UPDATE log_state SET next_id = (SELECT max(id) + 1 FROM episodes)",
)

# The same for a single row, where a statement for each step would be a hop to the connection's thread for each.
FOLLOW_UP_BY_TRIGGER = f"""
CREATE TEMP TRIGGER follow_up AFTER INSERT ON main.episodes BEGIN {";".join(FOLLOW_UP)}; END
"""


@asynccontextmanager
async def plain(folder: Path) -> AsyncIterator[Callable[[Sequence[Draft]], None]]:
    """Open synchronous `sqlite3`: executemany in large transactions, nobody waiting, nothing else going on."""
    with closing(sqlite3.connect(await _make_log(folder / "plain.db"), isolation_level=None)) as db:
        for pragma in PRAGMAS:
            db.execute(pragma)

        def insert(drafts: Sequence[Draft]) -> None:
            for start in range(0, len(drafts), TRANSACTION):
                db.execute("BEGIN IMMEDIATE")
                db.executemany(INSERT, [_row_of(draft) for draft in drafts[start : start + TRANSACTION]])
                for statement in FOLLOW_UP:
                    db.execute(statement)
                db.execute("COMMIT")

        yield insert


@asynccontextmanager
async def one_commit_each(folder: Path) -> AsyncIterator[Write]:
    """Open one aiosqlite connection that tasks share: each inserts a row and commits it before the next may."""
    async with aiosqlite.connect(await _make_log(folder / "one_commit_each.db")) as db:
        for statement in (*PRAGMAS, FOLLOW_UP_BY_TRIGGER):
            await db.execute(statement)
        lock = asyncio.Lock()

        async def write(draft: Draft) -> None:
            async with lock:
                await db.execute(INSERT, _row_of(draft))
                await db.commit()

        yield write


@asynccontextmanager
async def langgraph_store(folder: Path) -> AsyncIterator[Write]:
    """Open LangGraph's AsyncSqliteStore, which batches what its tasks put; with the pragmas that ours has.

    Its own choice, a rollback journal that is synced at each commit, is several times as slow, and safer.
    """
    async with AsyncSqliteStore.from_conn_string(str(folder / "langgraph.db")) as store:
        await store.setup()
        for pragma in PRAGMAS:
            await store.conn.execute(pragma)
        keys = count()

        async def write(draft: Draft) -> None:
            value = {"role": draft.role, "content": draft.content, "user_id": draft.user_id, "metadata": draft.metadata}
            await store.aput((draft.agent_id, draft.session_id), str(next(keys)), value)

        yield write


@asynccontextmanager
async def agents_sessions(folder: Path) -> AsyncIterator[Write]:
    """Open OpenAI Agents' AsyncSQLiteSession, one for each conversation, as documented; it syncs each commit."""
    async with AsyncExitStack() as stack:
        sessions: dict[str, AsyncSQLiteSession] = {}

        async def write(draft: Draft) -> None:
            if draft.session_id not in sessions:
                sessions[draft.session_id] = session = AsyncSQLiteSession(draft.session_id, folder / "agents.db")
                stack.push_async_callback(session.close)
            await sessions[draft.session_id].add_items([{"role": "user", "content": draft.content}])

        yield write


async def _make_log(path: Path) -> Path:
    async with EpisodicLog.open(path):
        return path


def _row_of(draft: Draft) -> Row:
    """Turn a draft into what the table holds: times as integers, metadata as JSON text.

    orjson writes it, as it does for us: the standard library's json would cost the peer 2 µs more a row.
    """
    assert draft.timestamp is not None
    return (
        draft.agent_id,
        draft.session_id,
        draft.user_id,
        draft.author,
        int(draft.timestamp.timestamp() * 1_000_000),
        draft.role,
        draft.content,
        draft.outcome,
        orjson.dumps(draft.metadata, option=orjson.OPT_SORT_KEYS).decode(),
        draft.event_id,
        indexed_text(draft.author, draft.content),
    )
