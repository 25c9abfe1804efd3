"""episodic: an async episodic log for support bots, in one SQLite file.

`EpisodicLog` is the whole of it; the other names are what goes in and what comes out.
"""

from episodic.context import Context, ContextItem
from episodic.errors import (
    BusyError,
    ClosedError,
    ConflictError,
    CorruptError,
    DiskFullError,
    DraftError,
    EpisodicError,
    FilterError,
    NewerFileError,
    NotFoundError,
    NotOurFileError,
    OpenError,
    QueryError,
    QueueFullError,
    ReadOnlyError,
    RejectedError,
    SettingsError,
    StorageError,
    TransferError,
    WrongLoopError,
)
from episodic.found import Hit, Reasons, SearchResult, Term
from episodic.log import EpisodicLog
from episodic.model import AgentSummary, Draft, Episode, Filter, Session, Stats
from episodic.receipts import Erasure
from episodic.settings import Settings

__all__ = [
    "AgentSummary",
    "BusyError",
    "ClosedError",
    "ConflictError",
    "Context",
    "ContextItem",
    "CorruptError",
    "DiskFullError",
    "Draft",
    "DraftError",
    "Episode",
    "EpisodicError",
    "EpisodicLog",
    "Erasure",
    "Filter",
    "FilterError",
    "Hit",
    "NewerFileError",
    "NotFoundError",
    "NotOurFileError",
    "OpenError",
    "QueryError",
    "QueueFullError",
    "ReadOnlyError",
    "Reasons",
    "RejectedError",
    "SearchResult",
    "Session",
    "Settings",
    "SettingsError",
    "Stats",
    "StorageError",
    "Term",
    "TransferError",
    "WrongLoopError",
]
