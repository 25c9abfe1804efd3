"""How a command ends: its exit code, and the line that says why."""

from __future__ import annotations

__all__ = ["INTERRUPTED", "NOTHING", "OK", "UNUSABLE", "USAGE", "ExitCodes", "NothingFoundError"]

OK = 0
NOTHING = 1
USAGE = 2
UNUSABLE = 3
INTERRUPTED = 130

ExitCodes = (
    f"Exit codes: {OK} ok, {NOTHING} nothing found, {USAGE} wrong usage, {UNUSABLE} the log or a file cannot be used, "
    f"{INTERRUPTED} interrupted."
)


class NothingFoundError(Exception):
    """There is nothing to show; the message says of what."""
