"""Everything that takes episodes out of a log: out of every answer at once, out of the file a few at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from typing import NamedTuple

import anyio
import orjson

from episodic.errors import BusyError, DiskFullError, FilterError, RejectedError, shown
from episodic.model import Episode, Filter
from episodic.ports import Extent, Readers, Scope, Store
from episodic.reading import scope_of
from episodic.receipts import Erasure
from episodic.upkeep import Remover
from episodic.writer import Writer

__all__ = ["Removal", "Removing"]

# Ids that one look brings, and that one transaction withdraws, in 5 ms.
PAGE = 50_000
WITHDRAWN_AT_ONCE = 250

# Seconds between the attempts to empty the write-ahead log, so that recording goes on.
RESTS = (0.25, 0.5, 1.0, 2.0)

# Some texts of erased episodes are looked for in the files: so many, of so many episodes of a page, of up to this
# length; shorter ones may stand in a file by chance.
MOST_TEXTS, SAMPLES = 64, 32
LONGEST, SHORTEST = 120, 6


class Removal(NamedTuple):
    """Who takes part in a removal."""

    store: Store
    writer: Writer
    remover: Remover


class Removing(ABC):
    """The removing half of a log."""

    @abstractmethod
    def _reading(self) -> Readers:
        """Return the pool; raises when the log is not open here."""

    @abstractmethod
    def _removing(self) -> Removal:
        """Return who removes; raises when the log is not open for writing here."""

    async def retain(
        self,
        *,
        older_than: timedelta | datetime,
        agent_id: str | None = None,
        where: Filter | None = None,
        dry_run: bool = False,
    ) -> int:
        """Remove what happened before a time; nothing is ever removed by itself, so call it as often as you want it.

        What is due is taken out of every answer first, within seconds, and then removed a few episodes at a time, so
        that recording goes on; that takes minutes for a million. When the process ends meanwhile, the next open goes
        on. The space is used again; `maintenance.vacuum` gives it back to the disk.

        Args:
            older_than: how long ago, counted from now, or an instant with a time zone.
            agent_id: this agent's only.
            where: narrows it.
            dry_run: only count.

        Returns:
            How many episodes were removed, or would be.

        Raises:
            FilterError: an argument cannot be compared.
            ReadOnlyError: the log was opened for reading only.
            QueueFullError: no room in the queue within `Settings.submit_timeout`; call it once more.
            ClosedError: the log was closed meanwhile.
            StorageError: the database failed; what was withdrawn before is removed with the next removal, or once the
                log is opened again.
        """
        before = _instant(older_than)
        scope = scope_of(agent_id, where)
        held = scope.where or Filter()
        until = before if held.until is None else min(before, held.until)
        scope = Scope(scope.agent_id, replace(held, until=until))
        if dry_run:
            async with self._reading().borrow() as reader:
                return (await reader.extent(scope)).episodes
        removal = self._removing()
        await removal.writer.drained()
        count = 0
        async for ids in self._due(scope):
            count += await removal.writer.perform(partial(removal.store.withdraw, ids))
        await removal.remover.remove()
        return count

    async def erase(
        self,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        where: Filter | None = None,
        dry_run: bool = False,
    ) -> Erasure:
        """Erase everything in a scope that is in the log now: from every answer, the search index and the files.

        First the episodes leave every answer, then the log, a few at a time. Last the search index is merged and the
        file rewritten, for which recording waits in the queue, about 10 s for a million episodes, and as much room is
        needed on the disk as the file takes. Then the bytes of all files are looked through for some of the erased
        texts. An episode without a user is nobody's: erase its session, too, if it tells of one.

        Args:
            user_id: what is about this user.
            session_id: what is of this session.
            agent_id: what is of this agent.
            where: narrows it.
            dry_run: only count.

        Returns:
            A receipt. It says "pending" when the bytes cannot go yet, for a reader that keeps to an earlier state of
            the log or for want of room: call it once more after that.

        Raises:
            FilterError: an argument cannot be compared, or nothing narrows the scope.
            ReadOnlyError: the log was opened for reading only.
            QueueFullError: no room in the queue within `Settings.submit_timeout`; call it once more.
            ClosedError: the log was closed meanwhile.
            StorageError: the database failed; call it once more.
        """
        scope, names = _erasable(user_id, session_id, agent_id, where)
        if dry_run:
            async with self._reading().borrow() as reader:
                return Erasure("counted", *await reader.extent(scope))
        removal = self._removing()
        await removal.writer.drained()
        async with self._reading().borrow() as reader:
            extent = await reader.extent(scope)
        texts = set(names)
        count = 0
        async for ids in self._due(scope):
            if len(texts) < MOST_TEXTS:
                texts |= await self._texts(ids)
            count += await removal.writer.perform(partial(removal.store.withdraw, ids))
        await removal.remover.remove()
        wanted = islice(sorted(text for text in texts if len(text.encode()) >= SHORTEST), MOST_TEXTS)
        return await self._purged(removal, Extent(count, extent.sessions if count else 0), list(wanted))

    async def _due(self, scope: Scope) -> AsyncIterator[list[int]]:
        """Find what is in scope now, in parts for one transaction each; each must be withdrawn before the next."""
        async with self._reading().borrow() as reader:
            upto = await reader.newest_id()
        while True:
            async with self._reading().borrow() as reader:
                ids = await reader.due(scope, upto=upto, limit=PAGE)
            if not ids:
                return
            for first in range(0, len(ids), WITHDRAWN_AT_ONCE):
                yield ids[first : first + WITHDRAWN_AT_ONCE]

    async def _texts(self, ids: Sequence[int]) -> set[str]:
        """Choose texts of some of these episodes that can be looked for."""
        some = ids[:: -(-len(ids) // SAMPLES)]
        async with self._reading().borrow() as reader:
            return {text for episode in await reader.fetch(Scope(None, None), some) for text in _telling(episode)}

    async def _purged(self, removal: Removal, extent: Extent, texts: Sequence[str]) -> Erasure:
        """Leave no bytes of what is removed, look for some of it, and write the receipt."""
        async with self._reading().borrow() as reader:
            if not await reader.is_unclean():
                return Erasure("done", *extent)
        try:
            ended = await _insist(partial(removal.writer.perform, removal.store.purge))
        except (BusyError, DiskFullError, RejectedError) as exc:
            return Erasure("pending", *extent, reason=str(exc))
        residue = await removal.store.residue(texts)
        told = (residue.looked_at, len(texts), residue.held)
        if residue.found:
            reason = f"{residue.found} of {len(texts)} erased texts were found in it"
            return Erasure("pending", *extent, reason, *told)
        await removal.writer.perform(partial(removal.store.note_clean, ended))
        return Erasure("done", *extent, None, *told)


async def _insist(work: Callable[[], Awaitable[int]]) -> int:
    """Try again while somebody is in the way, with longer and longer rests."""
    for rest in RESTS:
        try:
            return await work()
        except BusyError:
            await anyio.sleep(rest)
    return await work()


def _instant(older_than: object) -> datetime:
    if isinstance(older_than, datetime) and older_than.utcoffset() is not None:
        return older_than
    if isinstance(older_than, timedelta) and older_than >= timedelta():
        try:
            return datetime.now(UTC) - older_than
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    msg = f"older_than must be a timedelta of at least 0, or a datetime with a time zone, not {shown(older_than)}"
    raise FilterError(msg)


def _erasable(
    user_id: str | None, session_id: str | None, agent_id: str | None, where: Filter | None
) -> tuple[Scope, list[str]]:
    """Build the scope of an erasure, which must be narrowed by something, and list the names in it."""
    scope = scope_of(agent_id, where)
    held = scope.where or Filter()
    for name, text, other in (("user_id", user_id, held.user_id), ("session_id", session_id, held.session_id)):
        if text is not None and other is not None and text != other:
            msg = f"the filter's {name} {other!r} is not {text!r}; leave one of them out"
            raise FilterError(msg)
    user, session = held.user_id if user_id is None else user_id, held.session_id if session_id is None else session_id
    scope = Scope(agent_id, replace(held, user_id=user, session_id=session))
    if scope == Scope(None, Filter()):
        msg = "an erasure of everything was asked for; name a user, a session or an agent, or delete the file"
        raise FilterError(msg)
    return scope, [name for name in (agent_id, user, session) if name]


def _telling(episode: Episode) -> Iterator[str]:
    """Return texts of an episode that tell what it was about."""
    # As they are stored.
    metadata = [orjson.dumps(value)[1:-1].decode() for value in episode.metadata.values() if isinstance(value, str)]
    for text in (episode.content, episode.author, episode.event_id, *metadata):
        if text:
            yield text[:LONGEST]
