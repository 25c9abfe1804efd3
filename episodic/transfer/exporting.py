"""From the log into episodic's own JSON lines: everything or what a filter leaves, then how the sessions ended."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from anyio import to_thread

from episodic.errors import TransferError
from episodic.log import EpisodicLog
from episodic.model import Filter
from episodic.transfer.jsonl import encode, encode_ending
from episodic.transfer.progress import OnProgress, Progress

__all__ = ["export_file"]

CHUNK_LINES = 2_000

# A third of the time of gzip's own default, 9, for a file a twentieth larger.
GZIP_LEVEL = 6

T = TypeVar("T")


async def export_file(
    log: EpisodicLog,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    agent_id: str | None = None,
    where: Filter | None = None,
    on_progress: OnProgress | None = None,
) -> Progress:
    """Export a log as episodic's own JSON lines, which `import_file` reads.

    The episodes that it holds when this begins, in the order of their ids; then, for each session among them whose
    outcome is known, a line that says so.

    Args:
        log: an open log.
        target: a path, which gets the whole file at once and only when it is complete, packed by gzip if its name ends
            in .gz; or a binary stream, which stays open.
        agent_id: this agent only.
        where: narrows it.
        on_progress: called after each chunk.

    Returns:
        What was done.

    Raises:
        TransferError: the target cannot be written, or is the log itself.
        FilterError: an argument cannot be compared.
        StorageError: the log cannot be read.
    """
    everything = agent_id is None and where is None
    size = sum(agent.episodes for agent in await log.agents()) if everything else None
    progress = Progress(0, 0, 0, 0, size)
    newest = 0
    with _opened(target, log.stats().path) as stream:
        # A pipe that nobody reads must not keep a cancelled export waiting.
        may_block = not isinstance(target, str | os.PathLike)
        async for episodes in _batched(log.scan(agent_id=agent_id, where=where)):
            await to_thread.run_sync(stream.write, b"".join(map(encode, episodes)), abandon_on_cancel=may_block)
            newest = episodes[-1].id
            progress = _further(progress, on_progress, episodes=len(episodes))
        # Sessions that began meanwhile are left out as their episodes are.
        async for sessions in _batched(log.resolved(agent_id=agent_id, where=where, upto=newest)):
            await to_thread.run_sync(stream.write, b"".join(map(encode_ending, sessions)), abandon_on_cancel=may_block)
            progress = _further(progress, on_progress, outcomes=len(sessions))
    return progress


# The log's own files: what is not in the first yet stands in the others.
OWN_SUFFIXES = ("", "-wal", "-shm", "-journal")


def _further(progress: Progress, on_progress: OnProgress | None, *, episodes: int = 0, outcomes: int = 0) -> Progress:
    done = Progress(
        progress.lines + episodes + outcomes,
        progress.episodes + episodes,
        progress.outcomes + outcomes,
        progress.position + episodes,
        progress.size,
    )
    if on_progress is not None:
        on_progress(done)
    return done


async def _batched(items: AsyncIterator[T]) -> AsyncIterator[list[T]]:
    batch: list[T] = []
    async for item in items:
        batch.append(item)
        if len(batch) == CHUNK_LINES:
            yield batch
            batch = []
    if batch:
        yield batch


def _opened(target: str | os.PathLike[str] | BinaryIO, own: str) -> AbstractContextManager[BinaryIO]:
    if not isinstance(target, str | os.PathLike):
        return nullcontext(target)
    path = os.path.realpath(target)
    if path.removeprefix(os.path.realpath(own)) in OWN_SUFFIXES:
        msg = f"{os.fspath(target)} is a file of the log itself; name another one"
        raise TransferError(msg)
    return _replaced(Path(path))


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    """Write a file beside its place and put it there once it is complete; only its owner can read it."""
    try:
        if path.exists() and not path.is_file():
            # A device or a pipe is written to, never replaced.
            with path.open("wb") as stream:
                yield stream
            return
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                with _packed(file, path) as stream:
                    yield stream
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as exc:
        msg = f"{path} cannot be written: {exc.strerror or exc}"
        raise TransferError(msg) from exc


def _packed(file: BinaryIO, path: Path) -> AbstractContextManager[BinaryIO]:
    if path.suffix != ".gz":
        return nullcontext(file)
    # Without a name and a time in it, the same log gives the same bytes.
    packed = gzip.GzipFile("", "wb", GZIP_LEVEL, file, mtime=0)
    return cast("AbstractContextManager[BinaryIO]", packed)
