"""The commands that follow a conversation or the log itself, turn by turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Coroutine
from datetime import datetime, timedelta
from pathlib import Path

import click
from rich.text import Text

from episodic.faces.cli.exits import OK, NothingFoundError
from episodic.faces.cli.options import (
    Number,
    agent_option,
    awaited,
    command,
    db_option,
    filter_options,
    json_option,
    limit_option,
)
from episodic.faces.cli.screen import Screen, lead, name_text, note, outcome_text, role_text, said
from episodic.faces.cli.text import lasting
from episodic.log import EpisodicLog
from episodic.model import Episode, Filter
from episodic.transfer.progress import counted

__all__ = ["Transcript", "replay", "tail"]

# A pause as long as this is worth a line of its own.
LONG_PAUSE = timedelta(minutes=10)

# Nobody waits longer for the next turn, however long the customer took; in seconds.
LONGEST_WAIT = 3.0

# How often `tail` looks whether somebody still reads it.
LOOK_SECONDS = 0.5

DATE = "%Y-%m-%d"
CLOCK = "%H:%M:%S"


@command("replay")
@click.argument("session")
@db_option
@agent_option("all agents that share the session")
@filter_options(session=False)
@limit_option(None, "Turns")
@click.option(
    "--speed",
    metavar="X",
    type=Number(min=0, min_open=True),
    help=f"Play it X times as fast as it happened, waiting at most {LONGEST_WAIT:g} s for a turn.",
)
@json_option
@awaited
async def replay(
    *,
    session: str,
    db: Path,
    agent_id: str | None,
    where: Filter | None,
    limit: int | None,
    speed: float | None,
    as_json: bool,
) -> int:
    """Read a session as a transcript.

    Oldest turn first, times in UTC. A session that several agents share is read whole.
    """
    screen = Screen.open()
    transcript = Transcript(screen)
    async with EpisodicLog.open(db, read_only=True) as log:
        turns = _limited(log.replay(session, agent_id=agent_id, where=where), limit)
        count = 0
        async for episode in turns if speed is None else _played(turns, speed, screen):
            count += 1
            if as_json:
                screen.records([episode])
            else:
                transcript.turn(episode)
        if not as_json:
            await transcript.end(log)
    if not count:
        raise _no_session(session, agent_id, where)
    return OK


@command("tail", exits="Ctrl-C is how it ends.")
@db_option
@agent_option("all of them")
@filter_options()
@click.option(
    "-n",
    "--last",
    metavar="N",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="So many of the newest come first.",
)
@json_option
@awaited
async def tail(*, db: Path, agent_id: str | None, where: Filter | None, last: int, as_json: bool) -> int:
    """Follow the log as it grows.

    Shows what other programs write, too, in the order in which it is committed.
    """
    screen = Screen.open()
    async with EpisodicLog.open(db, read_only=True) as log:
        newest = await log.newest_id()
        for episode in await _newest(log, agent_id, where, last, newest):
            _show(screen, episode, agent=agent_id is None, as_json=as_json)
        screen.flush()
        if missing := await _missing(log, agent_id, where):
            note(f"the log holds no episode of {missing} yet; waiting for the first")

        async def follow() -> None:
            async for episode in log.follow(newest, agent_id=agent_id, where=where):
                _show(screen, episode, agent=agent_id is None, as_json=as_json)
                screen.flush()

        await _while_read(screen, follow())
    return OK


class Transcript:
    """A session on the screen, turn by turn: its head, the days, the pauses, and how it ended."""

    def __init__(self, screen: Screen) -> None:
        """Begin with nothing.

        Args:
            screen: where to write.
        """
        self._screen = screen
        self._previous: Episode | None = None
        self._shown: Counter[str] = Counter()

    def turn(self, episode: Episode) -> None:
        """Write one turn."""
        previous, self._previous = self._previous, episode
        if previous is None:
            user = () if episode.user_id is None else (Text("  user ", "dim"), name_text(episode.user_id))
            agent = (Text("  agent ", "dim"), name_text(episode.agent_id))
            self._screen.line(Text("session ", "dim"), name_text(episode.session_id), *agent, *user)
        if previous is None or previous.timestamp.date() != episode.timestamp.date():
            self._screen.line(Text(episode.timestamp.strftime(DATE), "dim"))
        elif episode.timestamp - previous.timestamp >= LONG_PAUSE:
            self._screen.line(Text(f"({lasting(episode.timestamp - previous.timestamp)} later)", "dim"))
        if previous is not None and previous.agent_id != episode.agent_id:
            self._screen.line(Text("now agent ", "dim"), name_text(episode.agent_id))
        self._shown[episode.agent_id] += 1
        clock = Text(episode.timestamp.strftime(CLOCK), "dim")
        self._screen.turn(Text("  ").join([clock, role_text(episode)]), said(episode))

    async def end(self, log: EpisodicLog) -> None:
        """Write how the session ended with each of its agents."""
        if self._previous is None:
            return
        for agent_id, shown in self._shown.items():
            whose = (" with ", name_text(agent_id)) if len(self._shown) > 1 else ()
            for session in await log.sessions(agent_id, Filter(session_id=self._previous.session_id), 1):
                of_all = "" if shown == session.episodes else f"shown {shown:,} of "
                took = f", {of_all}{counted(session.episodes, 'turn')} in {lasting(session.last - session.first)}"
                self._screen.line("ended", *whose, ": ", outcome_text(session.outcome, "not resolved"), took)


async def _limited(turns: AsyncIterator[Episode], limit: int | None) -> AsyncIterator[Episode]:
    left = limit
    async for episode in turns:
        yield episode
        if left is not None:
            left -= 1
            if not left:
                return


async def _played(turns: AsyncIterator[Episode], speed: float, screen: Screen) -> AsyncIterator[Episode]:
    """Let each turn wait as long as it did, divided by the speed."""
    latest: datetime | None = None
    async for episode in turns:
        if latest is not None:
            screen.flush()
            await asyncio.sleep(min((episode.timestamp - latest).total_seconds() / speed, LONGEST_WAIT))
        latest = episode.timestamp
        yield episode


async def _newest(log: EpisodicLog, agent_id: str | None, where: Filter | None, limit: int, upto: int) -> list[Episode]:
    """Return the newest episodes of one or all agents, the newest last, none that `follow` will bring."""
    if not limit:
        return []
    agents = [agent_id] if agent_id is not None else [agent.agent_id for agent in await log.agents()]
    found = [episode for agent in agents for episode in await log.recent(agent, limit, where=where)]
    found = [episode for episode in found if episode.id <= upto]
    return sorted(found, key=lambda episode: (episode.timestamp, episode.id))[-limit:]


async def _missing(log: EpisodicLog, agent_id: str | None, where: Filter | None) -> str | None:
    """Name the agent or session that is to be followed and has no episode yet: it may be a slip, or about to begin."""
    if agent_id is not None and not await log.recent(agent_id, limit=1):
        return f"agent {agent_id!r}"
    if where is None or where.session_id is None:
        return None
    async for _ in log.replay(where.session_id, agent_id=agent_id):
        return None
    session = f"session {where.session_id!r}"
    return session if agent_id is None else f"{session} of agent {agent_id!r}"


async def _while_read(screen: Screen, following: Coroutine[None, None, None]) -> None:
    """Follow until nobody reads the output any more, which a log without news would never find out."""
    task = asyncio.create_task(following)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=LOOK_SECONDS)
            if not screen.is_read():
                raise BrokenPipeError
        await task
    finally:
        task.cancel()


def _show(screen: Screen, episode: Episode, *, agent: bool, as_json: bool) -> None:
    if as_json:
        screen.records([episode])
    else:
        screen.turn(lead(episode, agent=agent), said(episode))


def _no_session(session_id: str, agent_id: str | None, where: Filter | None) -> NothingFoundError:
    whose = "there is no" if agent_id is None else f"agent {agent_id!r} has no"
    narrowed = "" if where is None else " with turns that the filter leaves"
    return NothingFoundError(f"{whose} session {session_id!r}{narrowed}; `episodic sessions` lists those that exist")
