"""From a file into the log: chunk after chunk, the next one being read while one is committed, memory flat."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from itertools import groupby
from typing import BinaryIO, NamedTuple, TypeVar

from anyio import to_thread

from episodic.errors import ConflictError, EpisodicError, NotFoundError, TransferError
from episodic.log import EpisodicLog
from episodic.transfer.item import BadLineError, Item
from episodic.transfer.progress import OnProgress, Progress, counted
from episodic.transfer.source import Format, Source, open_source

__all__ = ["import_file"]

# As many rows as one transaction takes, and at most this many bytes of them.
CHUNK_ROWS = 2_000
CHUNK_BYTES = 8 * 2**20

T = TypeVar("T")


async def import_file(
    log: EpisodicLog,
    source: str | os.PathLike[str] | BinaryIO,
    *,
    form: Format | None = None,
    agent_id: str | None = None,
    skip: int = 0,
    on_progress: OnProgress | None = None,
) -> Progress:
    """Import a file into a log, in its order.

    It may be episodic's own JSON lines, OpenAI chat as JSON lines, both also packed by gzip, or an SQLite database
    that follows the well-known recipe. Chunks are committed as they are read: what was imported before an error stays.
    When this is cancelled, what `on_progress` was told last is what is imported.

    Args:
        log: a log that is open for writing.
        source: a path, or a binary stream, which stays open.
        form: the source's format, "episodic", "openai" or "recipe"; None finds out by its content.
        agent_id: the agent of lines that name none; chats and rows without one take the file's name.
        skip: lines or rows to leave out at the beginning, to go on after an error.
        on_progress: called after each commit.

    Returns:
        What was done.

    Raises:
        TransferError: the source cannot be read, or a line of it cannot be recorded; says which, what is imported and
            how to go on.
        StorageError: the source is a database that cannot be read.
    """
    opened = await to_thread.run_sync(
        lambda: open_source(source, form=form, agent_id=agent_id, skip=skip), abandon_on_cancel=True
    )
    chunks = _Chunks(opened)
    importing = _Import(log, opened, skip, on_progress)
    try:
        while chunk := await chunks.following():
            await _finished(importing.store(chunk))
    finally:
        await chunks.stop()
    return importing.progress


class _Chunk(NamedTuple):
    """Some items, where the source stood behind them, and why there are no more, if that is an error."""

    items: Sequence[Item]
    position: int
    error: EpisodicError | None


class _Chunks:
    """The chunks of a source, each read in a thread while the caller deals with the one before."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ahead = asyncio.create_task(self._read())

    async def following(self) -> _Chunk | None:
        """Return the next chunk, or None behind the last."""
        chunk = await self._ahead
        if not chunk.items and chunk.error is None:
            return None
        self._ahead = asyncio.create_task(self._read())
        return chunk

    async def stop(self) -> None:
        """Read no more, and close the source; one that waits for another program is left to its thread."""
        self._ahead.cancel()
        with suppress(asyncio.CancelledError):
            await self._ahead
        if not (self._source.may_block and self._ahead.cancelled()):
            self._source.close()

    async def _read(self) -> _Chunk:
        return await to_thread.run_sync(_next_chunk, self._source, abandon_on_cancel=self._source.may_block)


class _Import:
    """One import under way.

    Attributes:
        progress: what is committed.
    """

    def __init__(self, log: EpisodicLog, source: Source, skip: int, on_progress: OnProgress | None) -> None:
        self._log = log
        self._source = source
        self._on_progress = on_progress
        self.progress = Progress(skip, 0, 0, 0, source.size)

    async def store(self, chunk: _Chunk) -> None:
        """Commit a chunk, and raise the error that ended it."""
        for is_ending, group in groupby(chunk.items, key=lambda item: item.ending is not None):
            items = list(group)
            await (self._resolve(items) if is_ending else self._record(items))
        self.progress = self.progress._replace(position=chunk.position)
        if self._on_progress is not None:
            self._on_progress(self.progress)
        if chunk.error is not None:
            bad = chunk.error.place if isinstance(chunk.error, BadLineError) else None
            raise self._stopped(chunk.error, "", bad) from chunk.error

    async def _record(self, items: Sequence[Item]) -> None:
        drafts = [draft for item in items for draft in item.drafts]
        try:
            await self._log.record_many(drafts)
        except ConflictError as exc:
            bad = _taken(items, exc)
            raise self._stopped(exc, self._named(bad, bad), bad, left_out=items[0].place) from exc
        except EpisodicError as exc:
            raise self._stopped(exc, self._named(items[0].place, items[-1].place)) from exc
        self._advance(items[-1], episodes=len(drafts))

    async def _resolve(self, items: Sequence[Item]) -> None:
        # All at once, since the log stores in one transaction what waits together.
        resolving = (self._log.resolve(*item.ending) for item in items if item.ending is not None)
        answers = await asyncio.gather(*resolving, return_exceptions=True)
        for item, answer in zip(items, answers, strict=True):
            if isinstance(answer, EpisodicError):
                bad = item.place if isinstance(answer, NotFoundError) else None
                raise self._stopped(answer, self._named(item.place, item.place), bad) from answer
            if isinstance(answer, BaseException):
                raise answer
            self._advance(item, outcomes=1)

    def _advance(self, item: Item, *, episodes: int = 0, outcomes: int = 0) -> None:
        done = self.progress
        self.progress = done._replace(
            lines=item.place, episodes=done.episodes + episodes, outcomes=done.outcomes + outcomes
        )

    def _named(self, first: int, last: int) -> str:
        unit = self._source.unit
        return f"{self._source.name}, {f'{unit} {first}' if first == last else f'{unit}s {first} to {last}'}: "

    def _stopped(
        self, reason: EpisodicError, named: str, bad: int | None = None, *, left_out: int | None = None
    ) -> TransferError:
        """Say what is imported and how to go on.

        Args:
            reason: what happened.
            named: to which lines, if that does not say so itself.
            bad: the line to blame, if it is one.
            left_out: the first line that was left out because of it, if not all before it are imported.
        """
        done, unit = self.progress, self._source.unit
        imported = f"{counted(done.episodes, 'episode')} of the {unit}s before are imported"
        said = f"{named}{reason}; {imported}: to go on there, "
        skip = f"skip {counted(done.lines, unit)} (--skip {done.lines})"
        if bad is None:
            return TransferError(f"{said}{skip}")
        if left_out is not None and left_out < bad:
            return TransferError(f"{said}take {unit} {bad} out and {skip}")
        return TransferError(f"{said}{skip}; to leave {unit} {bad} out, skip {bad} (--skip {bad})")


def _taken(items: Sequence[Item], error: ConflictError) -> int:
    """Return the line whose event id is taken."""
    key = (error.agent_id, error.event_id)
    return [item.place for item in items if key in {(d.agent_id, d.event_id) for d in item.drafts}][-1]


def _next_chunk(source: Source) -> _Chunk:
    """Read the next items, up to a chunk's bounds; an error comes after what was read before it."""
    items: list[Item] = []
    rows = weight = 0
    try:
        for item in source.items:
            items.append(item)
            rows += max(1, len(item.drafts))
            weight += item.weight
            if rows >= CHUNK_ROWS or weight >= CHUNK_BYTES:
                break
    except EpisodicError as exc:
        return _Chunk(items, source.position(), exc)
    return _Chunk(items, source.position(), None)


async def _finished(storing: Coroutine[None, None, T]) -> T:
    """Wait for what cannot be taken back, also when the caller is cancelled meanwhile."""
    task = asyncio.create_task(storing)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # taken note of, or asyncio would print it; whoever cancelled wants no other answer
        raise
