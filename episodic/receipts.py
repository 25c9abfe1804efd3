"""What a log says of an erasure. Values only; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Erasure"]

BEYOND = (
    "Not reached from here: copies that were made of the log before (backups, exports, replicas, snapshots of a disk "
    "or of a machine), what a flash disk keeps behind the file system, and what a program that read the log has made "
    "of it."
)


@dataclass(frozen=True, slots=True)
class Erasure:
    """A receipt: what was erased, and what was checked after that.

    Attributes:
        state: "counted" for a dry run, which changes nothing; "done" when no file of the log holds anything of it any
            more; "pending" when the episodes are gone and their bytes cannot be yet.
        episodes: how many were erased, or would be.
        sessions: how many sessions lost episodes, or would.
        reason: why it is pending.
        looked_at: bytes of the log's files that were read to look for erased texts.
        looked_for: erased texts that were looked for, up to 64: the names that were asked for, and the beginnings of
            contents, authors, event ids and metadata of some episodes. What an earlier call has erased is not known
            any more.
        held: those of them that are there because what was not erased holds them, too.
    """

    state: Literal["counted", "done", "pending"]
    episodes: int
    sessions: int
    reason: str | None = None
    looked_at: int = 0
    looked_for: int = 0
    held: int = 0

    def __str__(self) -> str:
        """Tell it in sentences, with what an erasure cannot reach."""
        what = f"{self.episodes:,} episodes of {self.sessions:,} sessions"
        if self.state == "counted":
            return f"{what} would be erased; nothing was changed."
        if self.state == "pending":
            return (
                f"Pending: {what} are out of every answer, but bytes of them may still be in the file: {self.reason}. "
                f"Erase once more to go on. {BEYOND}"
            )
        if not self.looked_at:
            return f"Done: {what} are in this scope, and no bytes of removed ones in the file; nothing was changed."
        return (
            f"Done: {what} are erased. The search index was merged, the file rewritten without them and its "
            f"write-ahead log emptied. {self._looked()} {BEYOND}"
        )

    def _looked(self) -> str:
        if not self.looked_for:
            return "No text of them is known any more that could be looked for."
        if not self.held:
            return f"Of {self.looked_for:,} erased texts none was found among all {self.looked_at:,} bytes."
        return (
            f"Of {self.looked_for:,} erased texts {self.held:,} stand among all {self.looked_at:,} bytes, where what "
            "was not erased holds them, too."
        )
