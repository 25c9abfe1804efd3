"""The full-text index: made, compared with the log, healed; and the one place that builds a MATCH string."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import NamedTuple

import aiosqlite

from episodic.folding import ANY_ENDING, spelled
from episodic.ports import Scope
from episodic.sqlite.connect import has_fts5, read_sql, run_script, statements, translated

__all__ = ["has_index", "is_told_apart", "match", "prepare_index"]

logger = logging.getLogger("episodic")

EXISTS = "SELECT count(*) FROM sqlite_schema WHERE name = 'episodes_fts'"

# `_docsize` holds one row for each indexed episode; the index itself would read through to the log.
LOGGED = "SELECT count(*), total(id) FROM episodes"
INDEXED = "SELECT count(*), total(id) FROM episodes_fts_docsize"
ORPHANS = """
SELECT EXISTS (SELECT 1 FROM episodes_fts_docsize AS d WHERE NOT EXISTS (SELECT 1 FROM episodes AS e WHERE e.id = d.id))
"""
MISSING = """
SELECT count(*) FROM episodes AS e WHERE NOT EXISTS (SELECT 1 FROM episodes_fts_docsize AS d WHERE d.id = e.id)
"""
INDEX_MISSING = """
INSERT INTO episodes_fts (rowid, scope, author, content)
SELECT id, scope, author, content FROM episodes_indexed AS e
WHERE NOT EXISTS (SELECT 1 FROM episodes_fts_docsize AS d WHERE d.id = e.id)
"""
REBUILD = "INSERT INTO episodes_fts (episodes_fts) VALUES ('rebuild')"


# FTS5 keeps no more of a word than this, so that names which begin alike for so long are one to it.
MOST_BYTES = 32_768


class _Census(NamedTuple):
    episodes: int
    total_of_ids: float


async def prepare_index(db: aiosqlite.Connection, path: Path) -> int:
    """Make the index if there is none, and heal it if it differs from the log.

    Returns:
        How many episodes were indexed now: 0 when the index was whole.
    """
    with translated(path):
        if await _is_whole(db):
            return 0
        await db.execute("BEGIN IMMEDIATE")
        try:
            healed = await _heal(db, path)
            await db.commit()
        except BaseException:
            await db.rollback()
            raise
    return healed


async def has_index(db: aiosqlite.Connection) -> bool:
    """Tell whether words can be looked up: the build has FTS5 and the file an index."""
    [(exists,)] = await db.execute_fetchall(EXISTS)
    return bool(exists) and await has_fts5(db)


def match(scope: Scope, word: str) -> str:
    """Build the MATCH string of one word inside a scope; quotes everything that came from a person.

    Args:
        scope: the agent and, if the filter names one, the user.
        word: folded text without NUL characters; what is no letter or digit in it separates the parts of a phrase, and
            an asterisk at its end stands for any ending.
    """
    scoped = "" if scope.agent_id is None else f'scope : "{_scope_token(scope)}" AND '
    return f"{scoped}{{author content}} : {_phrase(word)}"


def is_told_apart(scope: Scope) -> bool:
    """Tell whether the index knows a scope's agent and user from all others."""
    return scope.agent_id is not None and len(_scope_token(scope)) <= MOST_BYTES


def _scope_token(scope: Scope) -> str:
    """Name a scope as episodes_indexed does: one word for the agent, or one for the agent and the user."""
    agent = (scope.agent_id or "").encode().hex()
    user_id = None if scope.where is None else scope.where.user_id
    return f"a{agent}0" if user_id is None else f"u{agent}x{user_id.encode().hex()}0"


def _phrase(word: str) -> str:
    text = spelled(word.removesuffix(ANY_ENDING)).replace('"', '""')
    return f'"{text}" *' if word.endswith(ANY_ENDING) else f'"{text}"'


async def _is_whole(db: aiosqlite.Connection) -> bool:
    [(exists,)] = await db.execute_fetchall(EXISTS)
    return bool(exists) and await _census(db, LOGGED) == await _census(db, INDEXED)


async def _census(db: aiosqlite.Connection, question: str) -> _Census:
    return _Census(*next(iter(await db.execute_fetchall(question))))


async def _heal(db: aiosqlite.Connection, path: Path) -> int:
    """Bring the index to the log, under the write lock, so that of several processes one does it."""
    [(exists,)] = await db.execute_fetchall(EXISTS)
    if not exists:
        await run_script(db, statements(read_sql("index")))
    elif await _is_whole(db):
        return 0
    [(orphans,)] = await db.execute_fetchall(ORPHANS)
    if orphans:
        # What an orphan was indexed by is not known any more, so it cannot be taken out alone.
        logged = await _census(db, LOGGED)
        logger.warning("%s: the search index holds deleted episodes; indexing all %d anew", path, logged.episodes)
        await db.execute(REBUILD)
        return logged.episodes
    [(missing,)] = await db.execute_fetchall(MISSING)
    if missing:
        logger.warning("%s: the search index lacks %d episodes; indexing them", path, missing)
        await db.execute(INDEX_MISSING)
    return int(missing)
