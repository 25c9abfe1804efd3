"""What is done for a log while nobody writes to it. Knows the port, no SQL."""

from __future__ import annotations

import logging

import anyio

from episodic.errors import StorageError
from episodic.ports import Store
from episodic.writer import Writer

__all__ = ["tidy_when_quiet"]

# Nobody has written for so long: whoever writes next waits a few milliseconds for a piece that is under way.
QUIET_SECONDS = 0.5

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
        while not committed.is_set() and not writer.queued_rows and await _tidied(store):
            pass
        await committed.wait()


async def _tidied(store: Store) -> bool:
    """Do one piece, and rest for as long as it took, so that other processes and readers come to their turn."""
    begun = anyio.current_time()
    try:
        more = await store.tidy()
    except StorageError as exc:
        logger.warning("tidying failed, searches stay as quick as they are; it is tried again after writing: %s", exc)
        return False
    await anyio.sleep(anyio.current_time() - begun)
    return more
