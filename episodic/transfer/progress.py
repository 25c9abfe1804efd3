"""How far an import or an export has come."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

__all__ = ["OnProgress", "Progress", "counted"]


class Progress(NamedTuple):
    """How far it has come; the last one says what was done.

    Attributes:
        lines: lines or rows of the source that are dealt with, those skipped among them; for an export, lines written.
        episodes: episodes imported or exported.
        outcomes: sessions whose outcome went along.
        position: how far in the source, in the units of `size`.
        size: bytes or rows of the source, or episodes to export; None where that is not known beforehand.
    """

    lines: int
    episodes: int
    outcomes: int
    position: int
    size: int | None


def counted(number: int, unit: str) -> str:
    """Write how many there are: "1 line", "2,000 lines"."""
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


OnProgress: TypeAlias = Callable[[Progress], None]
