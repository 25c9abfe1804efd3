"""The store: the journal, and what keeps and clears the log beside taking in episodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import aiosqlite
import anyio
import orjson
from anyio import to_thread

from episodic.errors import BusyError, RejectedError
from episodic.events import OnEvent
from episodic.ports import Residue
from episodic.settings import Settings
from episodic.sqlite.connect import Place
from episodic.sqlite.copying import ENDED, NOTE_CLEAN, compact
from episodic.sqlite.fts import exists, merge_a_little
from episodic.sqlite.journal import SqliteJournal
from episodic.sqlite.residue import find_residue

__all__ = ["SqliteStore"]

WITHDRAW = """
INSERT INTO withdrawal (ids)
SELECT json_group_array(e.id)
FROM json_each(?) AS line CROSS JOIN episodes AS e ON e.id = line.value
WHERE e.id NOT IN (SELECT id FROM leaving)
RETURNING json_array_length(ids)
"""
# With none to remove there is no row, and no trigger runs.
REMOVE = """
INSERT INTO removal (upto, n)
SELECT upto, n
FROM (SELECT max(id) AS upto, count(*) AS n FROM (SELECT id FROM leaving ORDER BY id LIMIT ?))
WHERE n > 0
RETURNING n
"""
ARCHIVE = """
INSERT INTO surplus (agent_id, most)
SELECT agent_id, ? FROM agents
WHERE (
    SELECT count(*) FROM (
        SELECT 1 FROM episodes AS e INDEXED BY episodes_hot
        WHERE e.agent_id = agents.agent_id AND e.archived = 0 LIMIT (SELECT cap + 1 FROM hot)
    )
) > (SELECT cap FROM hot)
LIMIT 1
RETURNING true
"""

# What is removed lies all over the file: one that is folded in at this size takes 20 ms, at 40 MB up to a second.
REMOVING_FOLDED_AT = 4 * 2**20

# Seconds that one attempt to purge waits for others, while nothing is recorded.
PURGE_PATIENCE = 0.5

# Episodes that one piece of a removal takes out, 3 ms; and that one piece of archiving does.
REMOVED_AT_ONCE = 200
ARCHIVED_AT_ONCE = 500

PINNED = (
    "a reader or another writer keeps to an earlier state of the log, so that its write-ahead log cannot be emptied"
)


class SqliteStore(SqliteJournal):
    """A `ports.Store` over one SQLite file."""

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
        super().__init__(db, appending, where, settings, on_event, fts=fts)
        # Whoever holds it may be rewriting the file.
        self._pieces = anyio.Lock(fast_acquire=True)
        # How many removals had ended when the file was rewritten without what they removed, and could not be folded.
        self._rewritten_after = -1

    async def tidy(self) -> bool:
        """Archive what another writer has left hot, and merge a little of the search index; see `ports.Store.tidy`."""
        async with self._pieces:
            if self._has_surplus:
                self._has_surplus = False
                self._has_surplus = bool(
                    await self._write(partial(self._db.execute_fetchall, ARCHIVE, (ARCHIVED_AT_ONCE,)))
                )
                return True
            return self.fts and await self._write(partial(merge_a_little, self._db))

    async def withdraw(self, ids: Sequence[int]) -> int:
        """Take episodes out of every answer, in one transaction; see `ports.Store.withdraw`."""
        [(count,)] = await self._write(partial(self._db.execute_fetchall, WITHDRAW, (orjson.dumps(ids).decode(),)))
        return int(count)

    async def remove(self) -> int:
        """Remove some of what was withdrawn, in one transaction; see `ports.Store.remove`.

        Each piece leaves a segment of the index behind. Merged a little each time, they never come to the number at
        which FTS5 merges large ones at a stretch, which takes a second in a million episodes.
        """
        remove = partial(self._db.execute_fetchall, REMOVE, (REMOVED_AT_ONCE,))
        async with self._pieces:
            count = sum(int(n) for (n,) in await self._write(remove, folded_at=REMOVING_FOLDED_AT))
            if count and self.fts:
                await self._write(partial(merge_a_little, self._db), folded_at=REMOVING_FOLDED_AT)
        return count

    async def purge(self) -> int:
        """Rewrite the file without free space; see `ports.Store.purge`.

        The rewriting goes through the write-ahead log, which would grow by the whole file and stay so for as long as a
        reader is in the way: that is tried before. One that comes meanwhile leaves only the folding to be done again.
        """
        path = self._where.path
        if not self.fts and await exists(self._db):
            msg = "the file has a search index, which this SQLite cannot change: it has no FTS5"
            raise RejectedError(msg)
        async with self._pieces:
            if not await self._wal.fold(PURGE_PATIENCE):
                raise BusyError(PINNED)
            [(ended,)] = await self._db.execute_fetchall(ENDED)
            if ended != self._rewritten_after:
                compacted = await to_thread.run_sync(compact, path, PURGE_PATIENCE)
                self._rewritten_after = ended
                if not compacted.is_folded:
                    raise BusyError(PINNED)
            self._rewritten_after = -1
        return int(ended)

    async def note_clean(self, ended: int) -> None:
        """Note that no file holds bytes of removed episodes any more; see `ports.Store.note_clean`."""
        await self._write(partial(self._db.execute_fetchall, NOTE_CLEAN, (ended,)))

    async def residue(self, texts: Sequence[str]) -> Residue:
        """Look for texts in the bytes of every file; see `ports.Store.residue`."""
        return await find_residue(self._where, texts)
