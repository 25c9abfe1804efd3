"""Every error that episodic raises. One base; each says what happened, to which thing, and what to do."""

from __future__ import annotations

__all__ = [
    "BusyError",
    "ClosedError",
    "ConflictError",
    "CorruptError",
    "DiskFullError",
    "DraftError",
    "EpisodicError",
    "FilterError",
    "NewerFileError",
    "NotFoundError",
    "NotOurFileError",
    "OpenError",
    "QueryError",
    "QueueFullError",
    "ReadOnlyError",
    "RejectedError",
    "SettingsError",
    "StorageError",
    "TransferError",
    "WrongLoopError",
    "shown",
]

MOST_SHOWN = 80


class EpisodicError(Exception):
    """Base of all errors of this package."""


class SettingsError(EpisodicError, ValueError):
    """A setting has a value that cannot work. Nothing was opened."""


class DraftError(EpisodicError, ValueError):
    """A draft was rejected before it was queued; nothing of it is stored."""


class FilterError(EpisodicError, ValueError):
    """A filter, a limit or a cursor cannot be applied exactly. Nothing was read."""


class QueryError(EpisodicError, ValueError):
    """A query is not text. Any text is a valid query."""


class ConflictError(EpisodicError):
    """This agent already has an episode with this event id and another body; nothing of the new one is stored.

    Attributes:
        agent_id: the agent.
        event_id: the event id that is taken.
        episode_id: id of the episode that holds it, or None when the two stood in one call of `record_many`.
    """

    def __init__(self, agent_id: str, event_id: str, episode_id: int | None) -> None:
        """Take the ids."""
        super().__init__(agent_id, event_id, episode_id)
        self.agent_id = agent_id
        self.event_id = event_id
        self.episode_id = episode_id

    def __str__(self) -> str:
        """Build the message from the ids."""
        holder = "another draft of the same call" if self.episode_id is None else f"episode {self.episode_id}"
        return (
            f"event id {self.event_id!r} of agent {self.agent_id!r} is taken by {holder} with another body; "
            "nothing was stored: send the first body again to get its receipt, or use a new event id"
        )


class NotFoundError(EpisodicError, LookupError):
    """The episode or session that was asked for by its id is not in the log, or not in the scope asked for."""


class QueueFullError(EpisodicError):
    """There was no room in the write queue within `Settings.submit_timeout`; nothing of the draft is stored."""


class ClosedError(EpisodicError):
    """The log is closed or closing; the call did nothing."""


class WrongLoopError(EpisodicError):
    """The log was opened in another event loop or before a fork; open it anew where it is used."""


class StorageError(EpisodicError):
    """The database failed. After a write, whether it is stored is unknown unless a subclass says otherwise.

    A retry with the same `event_id` is always safe.
    """


class OpenError(StorageError):
    """The database could not be opened; nothing was changed."""


class NotOurFileError(OpenError):
    """The file is no SQLite database, or one that another program made."""


class NewerFileError(OpenError):
    """The file was written by a newer version of episodic, which this one must not touch."""


class BusyError(StorageError):
    """Another process held the database for longer than `Settings.busy_timeout`; nothing was stored."""


class DiskFullError(StorageError):
    """There is no room on the disk; nothing was stored. Writing goes on by itself once there is room."""


class ReadOnlyError(StorageError):
    """The log was opened for reading only, or the file cannot be written; nothing was stored."""


class CorruptError(StorageError):
    """SQLite found a malformed page. Restore a backup, or recover the file with SQLite's `.recover`."""


class RejectedError(StorageError):
    """The database refused what was written, a constraint or a size limit; nothing of the call is stored."""


class TransferError(EpisodicError):
    """A line or row of an import cannot be read; the message names it, and what was imported before it stays."""


def shown(value: object) -> str:
    """Show a value in a message: its start, if it is long, and its type alone if it cannot be shown."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a stranger's repr, or an integer of thousands of digits
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 3]}..."


def own(error: EpisodicError) -> EpisodicError:
    """Copy an error for one more who waits for the same, since a raised one collects the traceback of who raises it."""
    copy = type(error)(*error.args)
    copy.__cause__ = error.__cause__
    return copy


def as_ours(error: Exception) -> EpisodicError:
    """Make an error of ours of one that nobody foresaw, on the way to who waits."""
    if isinstance(error, EpisodicError):
        return error
    ours = StorageError(
        f"writing failed with {error!r}; whether it was done is unknown: repeat the call, a record with its event_id"
    )
    ours.__cause__ = error
    return ours
