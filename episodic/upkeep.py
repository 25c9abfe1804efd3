"""What is done for a log beside the calls of its users: tidying while nobody writes, and removing what is withdrawn.

Knows the port, no SQL.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from episodic.errors import ClosedError, EpisodicError, as_ours, own
from episodic.ports import Store
from episodic.writer import Writer

__all__ = ["Remover", "tidy_when_quiet"]

# Nobody has written for so long: whoever writes next waits a few milliseconds for a piece that is under way.
QUIET_SECONDS = 0.5

AnswerT = TypeVar("AnswerT")

logger = logging.getLogger("episodic")


async def tidy_when_quiet(store: Store, writer: Writer) -> None:
    """Have the store tidied piece by piece while nobody writes; runs until it is cancelled.

    Args:
        store: what is tidied.
        writer: who writes to it.
    """
    while True:
        committed = writer.committed
        with anyio.move_on_after(QUIET_SECONDS):
            await committed.wait()
        try:
            while not committed.is_set() and not writer.queued_rows and await _rested(store.tidy):
                pass
        except Exception as exc:  # noqa: BLE001 - whatever it is, the log is as good as before
            logger.warning(
                "tidying failed, searches stay as quick as they are; it is tried again after writing: %s", exc
            )
        await committed.wait()


class Remover:
    """Removes what is withdrawn, piece by piece between what others write, also what an earlier process has left.

    Attributes:
        removed: episodes that were removed.
    """

    def __init__(self, store: Store) -> None:
        """Take the store; nothing is removed until `run` runs."""
        self._store = store
        self._waiting: list[asyncio.Future[None]] = []
        self._work = anyio.Event()
        self._is_running = True
        self.removed = 0

    async def run(self) -> None:
        """Remove whatever there is to remove, and then what each call of `remove` is about, until it is cancelled."""
        waiting: list[asyncio.Future[None]] = []
        try:
            while True:
                self._work = anyio.Event()
                # Who comes meanwhile may have withdrawn something behind the last piece.
                waiting, self._waiting = self._waiting, []
                _end(waiting, await self._pass())
                if not self._waiting:
                    await self._work.wait()
        finally:
            self._is_running = False
            _end([*waiting, *self._waiting], _closed())

    async def remove(self) -> None:
        """Wait until everything that was withdrawn before is removed.

        Raises:
            ClosedError: the log was closed meanwhile.
            StorageError: the store failed; what is left is removed at the next call, or once the log is opened again.
        """
        if not self._is_running:
            raise _closed()
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(ended)
        self._work.set()
        await ended

    async def _pass(self) -> EpisodicError | None:
        """Remove until there is nothing more; return what went wrong."""
        try:
            while count := await _rested(self._store.remove):
                self.removed += count
        except Exception as exc:  # noqa: BLE001 - whatever it is, the waiters get it, and the next removal its chance
            logger.warning("removing withdrawn episodes failed; it is tried again with the next removal: %s", exc)
            return as_ours(exc)
        return None


async def _rested(piece: Callable[[], Awaitable[AnswerT]]) -> AnswerT:
    """Do one piece, and rest for as long as it took, so that others come to their turn; return its answer."""
    begun = anyio.current_time()
    answer = await piece()
    await anyio.sleep(anyio.current_time() - begun)
    return answer


def _end(waiting: list[asyncio.Future[None]], error: EpisodicError | None) -> None:
    for one in waiting:
        if one.done():
            continue
        if error is None:
            one.set_result(None)
        else:
            one.set_exception(own(error))


def _closed() -> ClosedError:
    return ClosedError("the log was closed; what is withdrawn and still there is removed once it is opened again")
