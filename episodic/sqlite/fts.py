"""The full-text index: made, compared with the log, healed; and the one place that builds a MATCH string."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import aiosqlite

from episodic.folding import ANY_ENDING, spelled
from episodic.sqlite.connect import has_fts5, read_sql, run_script, statements, translated

__all__ = [
    "HAS_INDEX",
    "ID_BITS",
    "ID_MASK",
    "exists",
    "has_index",
    "is_told_apart",
    "match",
    "merge_a_little",
    "prepare_index",
]

logger = logging.getLogger("episodic")

HAS_INDEX = "SELECT count(*) FROM sqlite_schema WHERE name = 'episodes_fts'"

# An episode's place in the index is its agent's number in the upper bits and its own id in the lower; see index.sql.
ID_BITS = 36
ID_MASK = 2**ID_BITS - 1

# `_docsize` holds one row for each indexed episode; the index itself would read through to the log.
LOGGED = "SELECT count(*), total(id) FROM episodes"
INDEXED = f"SELECT count(*), total(id & {ID_MASK}) FROM episodes_fts_docsize"  # noqa: S608 - constants only
ORPHANS = f"""
SELECT EXISTS (
    SELECT 1 FROM episodes_fts_docsize AS d
    WHERE NOT EXISTS (
        SELECT 1 FROM episodes AS e CROSS JOIN agents AS a ON a.agent_id = e.agent_id
        WHERE e.id = d.id & {ID_MASK} AND a.number = d.id >> {ID_BITS}
    )
)
"""  # noqa: S608 - constants only
MISSING = """
SELECT count(*) FROM episodes_indexed AS i
WHERE NOT EXISTS (SELECT 1 FROM episodes_fts_docsize AS d WHERE d.id = i.place)
"""
INDEX_MISSING = """
INSERT INTO episodes_fts (rowid, user, author, content)
SELECT place, user, author, content FROM episodes_indexed AS i
WHERE NOT EXISTS (SELECT 1 FROM episodes_fts_docsize AS d WHERE d.id = i.place)
ORDER BY place
"""
# What builds without FTS5 have written since the index was last compared with the log.
LEFT_OUT = "SELECT unindexed FROM log_state"
SETTLE = "UPDATE log_state SET unindexed = 0"
REBUILD = "INSERT INTO episodes_fts (episodes_fts) VALUES ('rebuild')"
# Pages of the index that one step of merging writes: about 5 ms, 15 ms at the most.
MERGE = "INSERT INTO episodes_fts (episodes_fts, rank) VALUES ('merge', 64)"
CHANGES = "SELECT total_changes()"

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


async def merge_a_little(db: aiosqlite.Connection) -> bool:
    """Merge segments of the index, of which every search reads each; tell whether there is more to merge.

    A step that found nothing to merge counts as less than two changes (the FTS5 manual, "The 'merge' command").
    """
    [(before,)] = await db.execute_fetchall(CHANGES)
    await db.execute_fetchall(MERGE)
    [(after,)] = await db.execute_fetchall(CHANGES)
    return int(after) - int(before) > 1


async def exists(db: aiosqlite.Connection) -> bool:
    """Tell whether the file has an index."""
    [(found,)] = await db.execute_fetchall(HAS_INDEX)
    return bool(found)


async def has_index(db: aiosqlite.Connection) -> bool:
    """Tell whether words can be looked up: the build has FTS5 and the file an index."""
    return await exists(db) and await has_fts5(db)


def match(user_id: str | None, word: str, beside: Sequence[str] = ()) -> str:
    """Build the MATCH string of one word; quotes everything that came from a person.

    Args:
        user_id: only what is about this user.
        word: folded text without NUL characters; what is no letter or digit in it separates the parts of a phrase, and
            an asterisk at its end stands for any ending.
        beside: only where one of these words stands, too.
    """
    terms = [f"{{author content}} : {_phrase(word)}"]
    if user_id is not None:
        terms.insert(0, f'user : "{_user_token(user_id)}"')
    if beside:
        terms.append(f"{{author content}} : ({' OR '.join(map(_phrase, beside))})")
    return " AND ".join(terms)


def is_told_apart(user_id: str | None) -> bool:
    """Tell whether the index knows a user from all others."""
    return user_id is None or len(_user_token(user_id)) <= MOST_BYTES


def _user_token(user_id: str) -> str:
    """Name a user as episodes_indexed does."""
    return f"u{user_id.encode().hex()}0"


def _phrase(word: str) -> str:
    text = spelled(word.removesuffix(ANY_ENDING)).replace('"', '""')
    return f'"{text}" *' if word.endswith(ANY_ENDING) else f'"{text}"'


async def _is_whole(db: aiosqlite.Connection) -> bool:
    if not await exists(db) or await _census(db, LOGGED) != await _census(db, INDEXED):
        return False
    [(left_out,)] = await db.execute_fetchall(LEFT_OUT)
    return not left_out


async def _census(db: aiosqlite.Connection, question: str) -> _Census:
    return _Census(*next(iter(await db.execute_fetchall(question))))


async def _heal(db: aiosqlite.Connection, path: Path) -> int:
    """Bring the index to the log, under the write lock, so that of several processes one does it."""
    if not await exists(db):
        await run_script(db, statements(read_sql("index")))
    elif await _is_whole(db):
        return 0
    await db.execute(SETTLE)
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
