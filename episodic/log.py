"""EpisodicLog, the facade: wires the writer, the readers and recall together."""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
import weakref
from types import TracebackType
from typing import Self

import anyio

from episodic.errors import ClosedError, OpenError, ReadOnlyError, SettingsError, WrongLoopError, shown
from episodic.events import Event, IndexHealed, OnEvent
from episodic.manners import Manners
from episodic.model import Stats
from episodic.ports import Readers
from episodic.reading import Reading
from episodic.recording import Recording
from episodic.removing import Removal, Removing
from episodic.settings import Settings
from episodic.sqlite.engine import Engine, open_engine
from episodic.upkeep import Remover, tidy_when_quiet
from episodic.writer import Writer

__all__ = ["EpisodicLog"]

logger = logging.getLogger("episodic")


class EpisodicLog(Recording, Reading, Removing):
    """An episodic log in one SQLite file, for any number of tasks of one event loop.

    Open it with `async with EpisodicLog.open(path) as log`. Writing goes through one queue and is acknowledged after
    the commit; reading goes through a pool and never waits for it.
    """

    def __init__(
        self, path: str | os.PathLike[str], settings: Settings, on_event: OnEvent | None, *, read_only: bool
    ) -> None:
        """Remember what to open; use `open`."""
        self._path = path
        self._settings = settings
        self._on_event = on_event
        self._read_only = read_only
        self._engine: Engine | None = None
        self._writer: Writer | None = None
        self._removal: Removal | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0
        self._closing = anyio.Event()
        self._is_closing = False

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        settings: Settings | None = None,
        read_only: bool = False,
        on_event: OnEvent | None = None,
    ) -> EpisodicLog:
        """Name a log to open; `async with` opens it, makes the file if there is none, and closes it.

        Args:
            path: the SQLite file. Its folder must exist, on a local disk.
            settings: how it behaves; the defaults suit a bot's backend.
            read_only: only read, as replay tools do; the file must exist, nothing in it is changed, and nothing is left
                beside it.
            on_event: called with each `events.Event` as it happens, in the log's event loop; it must return at once,
                and what it raises is logged.

        Raises:
            OpenError: when entered and there can be no log at `path`. NotOurFileError: something else is there.
                NewerFileError: a newer version wrote it. ReadOnlyError: it cannot be written.
        """
        if settings is not None and not isinstance(settings, Settings):
            msg = f"settings must be a Settings, not {type(settings).__name__}"
            raise SettingsError(msg)
        if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
            msg = f"path must be the text or Path of a file, not {shown(path)}"
            raise OpenError(msg)
        if on_event is not None and not callable(on_event):
            msg = f"on_event must be a function of one event, not {shown(on_event)}"
            raise SettingsError(msg)
        return cls(path, settings or Settings(), on_event, read_only=read_only)

    async def __aenter__(self) -> Self:
        """Open the log."""
        if self._keeper is not None:
            msg = f"{self._path}: the log is open already, or was; make another with EpisodicLog.open"
            raise ClosedError(msg)
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()
        opened: asyncio.Future[None] = self._loop.create_future()
        # A task of its own, not a task group of the caller's: the log may be closed from another task than the one
        # that opened it, and an error of the caller's passes through unwrapped. And a caller who gives up opening need
        # not wait for SQLite, which nothing cuts short: the keeper closes what it opens then.
        self._keeper = asyncio.create_task(self._keep(opened), name=f"episodic {os.fspath(self._path)}")
        try:
            await opened
        except asyncio.CancelledError:
            self._stop()
            raise
        except BaseException:
            self._keeper = None
            raise
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the log."""
        await self.aclose()

    def __repr__(self) -> str:
        """Show the live state."""
        if self._engine is None or self._keeper is None:
            return f"<EpisodicLog {os.fspath(self._path)!r} not open>"
        readers = self._engine.readers
        state = "closed" if self._keeper.done() else f"readers {readers.idle}/{readers.size} idle"
        if self._writer is not None and not self._keeper.done():
            state = f"queue {self._writer.queued_rows}/{self._settings.queue_rows}, {state}"
        return f"<EpisodicLog {self._engine.path!r} {state}>"

    async def aclose(self) -> None:
        """Take no more calls, commit what is queued, and close; safe to call twice, or to cancel: closing goes on.

        Calls that wait for room in the queue get ClosedError.
        """
        if self._keeper is None:
            return
        if self._keeper.done():
            if not self._keeper.cancelled():
                self._keeper.result()
            return
        self._check_place()
        self._stop()
        await asyncio.shield(self._keeper)

    def stats(self) -> Stats:
        """Return the state of the log at this moment; asks the file system for two sizes, and nothing else."""
        readers, engine, writer, removal = self._reading(), self._opened(), self._writer, self._removal
        return Stats(
            path=engine.path,
            mode=engine.mode,
            sqlite_version=engine.version,
            recorded=writer.recorded if writer else 0,
            batches=writer.batches if writer else 0,
            rejected=writer.rejected if writer else 0,
            removed=removal.remover.removed if removal else 0,
            largest_batch=writer.largest_batch if writer else 0,
            queued_rows=writer.queued_rows if writer else 0,
            queued_bytes=writer.queued_bytes if writer else 0,
            waiting=writer.waiting if writer else 0,
            in_flight=writer.in_flight if writer else 0,
            readers_idle=readers.idle,
            readers=readers.size,
            reindexed=engine.reindexed,
            file_bytes=engine.file_bytes(),
            wal_bytes=engine.wal_bytes(),
        )

    async def _keep(self, opened: asyncio.Future[None]) -> None:
        """Open, write until the log is closed, then close every connection, also when the event loop is torn down."""
        try:
            engine = await open_engine(self._path, self._settings, self._tell, read_only=self._read_only)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the caller gets it
            if not opened.done():
                opened.set_exception(exc)
            return
        except asyncio.CancelledError:
            opened.cancel()
            raise
        # Warns when the event loop ends without closing the log or, if that never ends, when the process does.
        unclosed = weakref.finalize(self, _warn_unclosed, engine.path)
        try:
            self._wire(engine)
            if not opened.done():
                opened.set_result(None)
            await self._work(engine)
        except asyncio.CancelledError:
            unclosed()
            raise
        finally:
            unclosed.detach()
            self._stop()
            await engine.aclose()

    async def _work(self, engine: Engine) -> None:
        if engine.store is None or self._writer is None or self._removal is None:
            await self._closing.wait()
            return
        upkeep = [
            asyncio.create_task(tidy_when_quiet(engine.store, self._writer)),
            asyncio.create_task(self._removal.remover.run()),
        ]
        try:
            await self._writer.run()
        finally:
            for task in upkeep:
                task.cancel()
            await asyncio.wait(upkeep)

    def _wire(self, engine: Engine) -> None:
        self._engine = engine
        if engine.store is not None:
            manners = Manners(engine.readers)
            self._writer = Writer(
                engine.store, self._settings, engine.clock, on_event=self._tell, give_way=manners.give_way
            )
            self._removal = Removal(engine.store, self._writer, Remover(engine.store))
        if engine.reindexed:
            self._tell(IndexHealed(engine.reindexed))
        if self._is_closing:
            self._stop()

    def _tell(self, event: Event) -> None:
        """Tell of an event; whoever listens must not come between a call and its answer."""
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            logger.exception("on_event failed with %r", event)

    def _stop(self) -> None:
        """Take no more calls; what is queued is still written."""
        self._is_closing = True
        self._closing.set()
        if self._writer is not None:
            self._writer.close()

    def _news(self) -> anyio.Event:
        return self._closing if self._writer is None else self._writer.committed

    def _opened(self) -> Engine:
        engine = self._engine
        if engine is None:
            msg = f"{self._path}: the log is not open; use `async with EpisodicLog.open(path) as log`"
            raise ClosedError(msg)
        self._check_place()
        if self._is_closing:
            msg = f"{engine.path}: the log is closed; open it again"
            raise ClosedError(msg)
        return engine

    def _reading(self) -> Readers:
        return self._opened().readers

    def _writing(self) -> Writer:
        return self._removing().writer

    def _removing(self) -> Removal:
        engine = self._opened()
        if self._removal is None:
            msg = f"{engine.path} was opened with read_only=True; nothing in it was changed"
            raise ReadOnlyError(msg)
        return self._removal

    def _check_place(self) -> None:
        """Refuse what would hang: connections belong to one event loop of one process."""
        if os.getpid() != self._process:
            msg = f"{os.fspath(self._path)}: the log was opened before a fork; open it after forking"
            raise WrongLoopError(msg)
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is not self._loop:
            msg = f"{os.fspath(self._path)}: the log was opened in another event loop; open it in this one"
            raise WrongLoopError(msg)


def _warn_unclosed(path: str) -> None:
    warnings.warn(f"{path}: the log was never closed; use `async with`", ResourceWarning, stacklevel=1)
