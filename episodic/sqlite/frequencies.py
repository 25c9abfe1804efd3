"""How many episodes hold a word, remembered between searches.

Counting a word inside a scope costs about 1.5 ms at a million episodes, and a message has a dozen words or two. But a
log mostly grows, and people use the same words: what was counted once holds for the episodes up to then, and only the
new ones are counted after that. When a removal has ended, everything is counted anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

__all__ = ["Counted", "Frequencies", "Key"]

Key: TypeAlias = tuple[str, str, int]
"""The agent, the MATCH string, and the bound: a count that reached its bound says nothing of a higher one."""

# About 10 MB when it is full.
MOST_WORDS = 50_000

# A longer MATCH string, of a name of hundreds of characters, is counted anew each time.
MOST_CHARACTERS = 400


class Counted(NamedTuple):
    """How many episodes at a place of at most `upto` in the index hold a word."""

    episodes: int
    upto: int


NOTHING = Counted(0, 0)


class Frequencies:
    """Counts of one file, shared by its readers; the words that were asked for least recently are dropped.

    Attributes:
        removals: how many removals had ended when the words were counted.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: OrderedDict[Key, Counted] = OrderedDict()
        self.removals = 0

    def known(self, keys: Sequence[Key]) -> list[Counted]:
        """Return what is known of each key, in the same order."""
        for key in keys:
            if key in self._known:
                self._known.move_to_end(key)
        return [self._known.get(key, NOTHING) for key in keys]

    def forget(self, removals: int) -> None:
        """Begin anew, after as many removals."""
        self._known.clear()
        self.removals = removals

    def learn(self, key: Key, counted: Counted, removals: int) -> None:
        """Remember a count that was made after so many removals, unless a later one is known."""
        if removals != self.removals or len(key[1]) > MOST_CHARACTERS:
            return
        if self._known.get(key, NOTHING).upto > counted.upto:
            return
        self._known[key] = counted
        self._known.move_to_end(key)
        if len(self._known) > MOST_WORDS:
            self._known.popitem(last=False)
