"""What every format is read into: one item for each line or row, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from episodic.errors import TransferError
from episodic.model import Draft

__all__ = ["BadLineError", "Ending", "Flaw", "Hints", "Item"]


class Flaw(ValueError):  # noqa: N818 - it never leaves this package
    """Why a line or row cannot be read; its place is added by who reads the source."""


class BadLineError(TransferError):
    """One line cannot be recorded; those behind it can still be read.

    Attributes:
        place: its number in the source, from 1.
    """

    def __init__(self, message: str, place: int) -> None:
        """Take the message as it is."""
        super().__init__(message, place)
        self.place = place

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[0])


class Ending(NamedTuple):
    """How a session ended."""

    agent_id: str
    session_id: str
    outcome: str | None


class Item(NamedTuple):
    """One line or row.

    Attributes:
        place: its number in the source, from 1.
        drafts: the episodes it holds, in order.
        ending: how a session ended, if that is what it says; then it holds no episodes.
        weight: about how many bytes it takes in memory.
    """

    place: int
    drafts: Sequence[Draft]
    ending: Ending | None
    weight: int


class Hints(NamedTuple):
    """What the source itself does not say.

    Attributes:
        agent_id: the agent of lines that name none, if one was given.
        stem: the file's name without its suffixes.
    """

    agent_id: str | None
    stem: str

    @property
    def agent(self) -> str:
        """The agent of lines that name none; the empty text is one, too."""
        return self.stem if self.agent_id is None else self.agent_id
