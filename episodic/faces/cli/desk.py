"""The synthetic support desk of the demonstration, and what it shows."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import sys
import tempfile
import time
from array import array
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from episodic.corpus import Conversation, conversations
from episodic.errors import OpenError
from episodic.faces.cli.replaying import Transcript
from episodic.faces.cli.screen import Screen, name_text
from episodic.faces.cli.text import one_line, printable
from episodic.log import EpisodicLog
from episodic.model import Draft, Filter

__all__ = ["show"]

SEED = 1
RECALLERS = 8

# What a recaller does between two recalls, in seconds: it lets its model answer.
THINKING = 0.02

# The latest questions, for the recallers to choose from.
QUESTIONS = 500

QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
MAX_TOKENS = 300
ORDER = re.compile(r"ORD-\d+")
REFRESH = 0.2


async def show(seconds: float, count: int, keep: Path | None, *, as_json: bool) -> None:
    """Hold conversations on a real log, and show figures, a recall and a replay.

    Args:
        seconds: how long.
        count: how many conversations at once.
        keep: where to keep the log; None for nowhere.
        as_json: show the figures only, as JSON.

    Raises:
        OpenError: there is something at `keep` already, or no log can be there.
    """
    screen = Screen.open()
    with _place(keep) as path:
        async with EpisodicLog.open(path) as log:
            desk = _Desk(log, time.perf_counter() + seconds)
            if not as_json:
                screen.line(f"{count:,} conversations at once for {seconds:g} s, in {one_line(str(path))}")
                screen.flush()
            await desk.run(count)
            if as_json:
                screen.records([desk.report()])
                return
            await _print_recall(screen, desk)
            await _print_replay(screen, desk)
    if keep is not None:
        screen.line()
        screen.line(f"kept {one_line(str(keep))}; try `episodic stats --db {one_line(str(keep))}`")
    _print_report(screen, desk)


class _Ended(NamedTuple):
    """A conversation that came to its end.

    Attributes:
        is_told: whether its last turn says the outcome itself.
        question: what its customer may ask when coming back.
    """

    agent_id: str
    session_id: str
    user_id: str
    outcome: str
    is_told: bool
    question: str


class _Desk:
    """The conversations under way, and what was measured.

    Attributes:
        recorded: seconds that each record took until it was acknowledged.
        recalled: seconds that each recall took.
        ended: the conversations that came to their end.
        elapsed: seconds from the first word to the last.
    """

    def __init__(self, log: EpisodicLog, until: float) -> None:
        self.log = log
        self.recorded = array("d")
        self.recalled = array("d")
        self.ended: list[_Ended] = []
        self.elapsed = 0.0
        self._until = until
        self._customers = conversations(SEED)
        self._questions: deque[Draft] = deque(maxlen=QUESTIONS)
        self._chance = random.Random(SEED)  # noqa: S311 - nothing here is secret

    async def run(self, count: int) -> None:
        """Hold so many conversations at once until the time is over, then record how they ended."""
        began = time.perf_counter()
        try:
            async with asyncio.TaskGroup() as group:
                talking = [group.create_task(self._talk()) for _ in range(count)]
                recalling = [group.create_task(self._recall()) for _ in range(RECALLERS)]
                await self._watch(began, [*talking, *recalling])
        except ExceptionGroup as failed:
            # When the log fails, it fails for all of them.
            raise failed.exceptions[0] from failed
        self.elapsed = time.perf_counter() - began
        # A desk learns later how those ended whose last turn does not say it.
        for conversation in self.ended:
            if not conversation.is_told:
                await self.log.resolve(conversation.agent_id, conversation.session_id, conversation.outcome)

    def report(self) -> dict[str, object]:
        """Return the figures."""
        return {
            "episodes": len(self.recorded),
            "conversations_ended": len(self.ended),
            "seconds": round(self.elapsed, 3),
            "acknowledged_per_second": round(len(self.recorded) / self.elapsed),
            "record_ms": _quantiles(self.recorded),
            "recalls": len(self.recalled),
            "recall_ms": _quantiles(self.recalled),
        }

    async def _talk(self) -> None:
        while time.perf_counter() < self._until:
            conversation = next(self._customers)
            for turn in conversation.turns:
                began = time.perf_counter()
                if began >= self._until:
                    return
                await self._record(turn)
                self.recorded.append(time.perf_counter() - began)
                if turn.role == "user":
                    self._questions.append(turn)
            self.ended.append(_ended(conversation))

    async def _record(self, turn: Draft) -> None:
        await self.log.record(
            turn.agent_id,
            turn.session_id,
            turn.role,
            turn.content,
            user_id=turn.user_id,
            author=turn.author,
            outcome=turn.outcome,
            metadata=turn.metadata,
            timestamp=turn.timestamp,
        )

    async def _recall(self) -> None:
        while time.perf_counter() < self._until:
            if self._questions:
                asked = self._chance.choice(self._questions)
                began = time.perf_counter()
                await self.log.recall_context(asked.agent_id, asked.content, where=Filter(user_id=asked.user_id))
                self.recalled.append(time.perf_counter() - began)
            await asyncio.sleep(THINKING)

    async def _watch(self, began: float, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Show how it goes, where somebody looks."""
        if not sys.stderr.isatty():
            return
        columns = (BarColumn(), TextColumn("{task.description}", markup=False))
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("", total=self._until - began)
            while not all(task.done() for task in tasks):
                elapsed = time.perf_counter() - began
                rate = f"{len(self.recorded):,} episodes, {len(self.recorded) / elapsed:,.0f}/s"
                progress.update(bar, completed=elapsed, description=f"{rate}, {len(self.recalled):,} recalls")
                await asyncio.sleep(REFRESH)


@contextlib.contextmanager
def _place(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="episodic-demo-") as folder:
            yield Path(folder, "demo.db")
    elif keep.exists():
        msg = f"{keep} exists already; name a new file"
        raise OpenError(msg)
    else:
        yield keep


def _quantiles(seconds: Sequence[float]) -> dict[str, float | None]:
    """Return quantiles in milliseconds, None where nothing was measured."""
    ordered = sorted(seconds)
    return {
        name: round(ordered[int(share * (len(ordered) - 1))] * 1000, 2) if ordered else None
        for name, share in QUANTILES.items()
    }


def _print_report(screen: Screen, desk: _Desk) -> None:
    rows = [
        (Text(name), Text(f"{len(taken):,}"), *(Text(f"{value} ms") for value in _quantiles(taken).values()))
        for name, taken in (("record", desk.recorded), ("recall_context", desk.recalled))
    ]
    screen.line()
    screen.table(("", "[calls]", *(f"[{name}]" for name in QUANTILES)), rows)
    rate = len(desk.recorded) / desk.elapsed
    screen.line(
        Text(f"{rate:,.0f} episodes/s acknowledged", "bold"),
        f": {len(desk.recorded):,} in {desk.elapsed:.1f} s, {len(desk.ended):,} conversations ended",
    )


async def _print_recall(screen: Screen, desk: _Desk) -> None:
    """Show what a model would be told about the customer who came back most often."""
    times = Counter((ended.agent_id, ended.user_id) for ended in desk.ended)
    asking = max(reversed(desk.ended), key=lambda ended: times[ended.agent_id, ended.user_id], default=None)
    if asking is None:
        return
    context = await desk.log.recall_context(asking.agent_id, asking.question, where=Filter(user_id=asking.user_id))
    screen.line()
    screen.line("recall for user ", name_text(asking.user_id), ", who asks: ", Text(one_line(asking.question), "cyan"))
    screen.line(printable(context.render(MAX_TOKENS)))


async def _print_replay(screen: Screen, desk: _Desk) -> None:
    """Show a conversation that failed, which is why anybody replays one."""
    failed = (ended for ended in reversed(desk.ended) if ended.outcome == "failure" and not ended.is_told)
    ended = next(failed, None)
    if ended is None:
        return
    transcript = Transcript(screen)
    screen.line()
    async for episode in desk.log.replay(ended.session_id):
        transcript.turn(episode)
    await transcript.end(desk.log)


def _ended(conversation: Conversation) -> _Ended:
    """Keep of a conversation what is needed later; its turns would fill the memory."""
    order = next(filter(None, (ORDER.search(turn.content) for turn in conversation.turns)), None)
    return _Ended(
        conversation.agent_id,
        conversation.session_id,
        conversation.user_id,
        conversation.outcome,
        conversation.turns[-1].outcome is not None,
        f"Is there any news about {order[0]}?" if order else conversation.turns[0].content,
    )
