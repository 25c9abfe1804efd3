"""What an examination of a log says. Values only; no I/O."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        name: what.
        state: "ok"; "warning" for what may become a fault; "fault"; or "unknown" when it could not be seen.
        text: what was seen, and what to do.
    """

    name: str
    state: Literal["ok", "warning", "fault", "unknown"]
    text: str
