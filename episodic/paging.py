"""Pages of a size that keeps memory flat whatever the episodes weigh."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeVar

from episodic.errors import RejectedError
from episodic.model import Episode

__all__ = ["next_limit", "pages"]

FIRST_LIMIT = 128
MOST_LIMIT = 512
PAGE_CHARACTERS = 2**20

# An engine bounds the weight of a page; one that passes it is asked for again, much smaller, and the next ones grow
# step by step: what weighs may be metadata, which is not looked at here.
SHRINK = 16
GROWTH = 4

CursorT = TypeVar("CursorT")


def next_limit(page: Sequence[Episode]) -> int:
    """Size the next page by the weight of the last one."""
    average = sum(len(e.content) for e in page) // len(page) + 1
    return max(1, min(MOST_LIMIT, PAGE_CHARACTERS // average))


async def pages(
    fetch: Callable[[CursorT, int], Awaitable[list[Episode]]],
    start: CursorT,
    cursor_of: Callable[[Episode], CursorT],
) -> AsyncIterator[list[Episode]]:
    """Fetch page after page until one is not full.

    Args:
        fetch: takes a cursor and a limit; returns the episodes after the cursor.
        start: where to begin.
        cursor_of: the cursor of an episode.
    """
    cursor, limit = start, FIRST_LIMIT
    while True:
        try:
            page = await fetch(cursor, limit)
        except RejectedError:
            if limit == 1:
                raise
            limit = max(1, limit // SHRINK)
            continue
        if page:
            yield page
        if len(page) < limit:
            return
        cursor, limit = cursor_of(page[-1]), min(next_limit(page), limit * GROWTH)
