"""The options that commands share, and how their values are read."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ParamSpec, TypeVar

import click

from episodic.faces.cli.exits import ExitCodes, NothingFoundError
from episodic.faces.cli.screen import note
from episodic.log import EpisodicLog
from episodic.model import OUTCOMES, ROLES, Filter, Scalar

__all__ = [
    "Number",
    "agent_option",
    "awaited",
    "chosen_agent",
    "command",
    "db_option",
    "filter_options",
    "instant",
    "json_option",
    "limit_option",
]

P = ParamSpec("P")
T = TypeVar("T")

AGO = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def instant(_context: click.Context, _option: click.Parameter, text: str | None) -> datetime | None:
    """Read ISO 8601, in UTC if it has no zone, or how long ago."""
    if text is None:
        return None
    try:
        if ago := AGO.fullmatch(text.strip()):
            return datetime.now(UTC) - timedelta(seconds=float(ago[1]) * SECONDS[ago[2]])
        instant = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError) as exc:
        msg = f"{text!r} is no time: use 2026-01-05, 2026-01-05T09:00:00Z, or how long ago: 90s 30m 2h 7d"
        raise click.BadParameter(msg) from exc
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _scalars(_context: click.Context, _option: click.Parameter, texts: Sequence[str]) -> dict[str, Scalar]:
    """Read KEY=VALUE; the value is JSON's text, number, true, false or null, and else the text as it stands."""
    read: dict[str, Scalar] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or key in read:
            msg = f"{text!r} names a key for the second time" if equals else f"{text!r} has no value: write KEY=VALUE"
            raise click.BadParameter(msg)
        try:
            parsed = json.loads(value, parse_constant=str)
        except (ValueError, RecursionError):
            parsed = value
        if isinstance(parsed, list | dict):
            msg = f"{text!r} is a list or an object, which cannot be compared; as text it is written in JSON's quotes"
            raise click.BadParameter(msg)
        read[key] = parsed
    return read


class Number(click.FloatRange):
    """A number in a range, and a finite one."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what is no number, infinite ones too."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no number that can be used", param, ctx)
        return number


def command(name: str, *, exits: str = "") -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command whose help ends with the exit codes.

    Args:
        name: of the command.
        exits: what it has to say about them.
    """
    return click.command(name, epilog=f"{ExitCodes} {exits}".strip())


def awaited(function: Callable[P, Coroutine[None, None, T]]) -> Callable[P, T]:
    """Run a command's coroutine in an event loop of its own."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return asyncio.run(function(*args, **kwargs))

    return run


db_option = click.option(
    "--db",
    type=click.Path(path_type=Path),
    envvar="EPISODIC_DB",
    default="episodic.db",
    show_default=True,
    show_envvar=True,
    help="The log's file.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON lines, times in UTC.")


SESSION = click.option("--session", "session_id", metavar="ID", help="Of this session only.")
FILTERS = (
    click.option("--user", "user_id", metavar="ID", help="About this user only."),
    SESSION,
    click.option("--role", "roles", type=click.Choice(sorted(ROLES)), multiple=True, help="In this role; repeatable."),
    click.option("--outcome", type=click.Choice(sorted(OUTCOMES)), help="With this outcome, its own or its session's."),
    click.option(
        "--since",
        metavar="TIME",
        callback=instant,
        help="Not before: 2026-01-05T09:00Z (UTC without a zone), or 2h, 7d ago.",
    ),
    click.option("--until", metavar="TIME", callback=instant, help="Before this time."),
    click.option("--archived/--hot", default=None, help="Archived episodes only, or the others only."),
    click.option(
        "--meta",
        "metadata",
        metavar="KEY=VALUE",
        callback=_scalars,
        multiple=True,
        help='With exactly this metadata; 42, true, null and "42" are read as JSON, all else as text; repeatable.',
    ),
)


# The fields of a filter that are what their option says.
PLAIN = ("user_id", "session_id", "outcome", "since", "until", "archived")


def agent_option(otherwise: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make the option --agent.

    Args:
        otherwise: what is taken without it.
    """
    return click.option("--agent", "agent_id", metavar="ID", help=f"The agent; without it, {otherwise}.")


def limit_option(default: int | None, what: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make the option --limit.

    Args:
        default: how many without it; None for all.
        what: what is counted.
    """
    shown = default is not None
    return click.option(
        "--limit", metavar="N", type=click.IntRange(min=1), default=default, show_default=shown, help=f"{what} at most."
    )


def filter_options(*, session: bool = True) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Make the options that narrow a read; the command gets them as one argument, `where`.

    Args:
        session: whether --session is among them.
    """
    options = FILTERS if session else [option for option in FILTERS if option is not SESSION]

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.wraps(function)
        def narrowed(*args: object, roles: Sequence[str], metadata: Mapping[str, Scalar], **kwargs: object) -> T:
            fields = {name: kwargs.pop(name, None) for name in PLAIN}
            where = Filter(roles=roles or None, metadata=metadata or None, **fields)  # type: ignore[arg-type]
            return function(*args, where=None if where == Filter() else where, **kwargs)

        return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), narrowed)

    return decorate


async def chosen_agent(log: EpisodicLog, agent_id: str | None) -> str:
    """Return the agent that was named, or else the one with most episodes, and say so when there are others.

    Raises:
        NothingFoundError: none was named, and there is none.
    """
    if agent_id is not None:
        return agent_id
    agents = await log.agents()
    if not agents:
        msg = "the log is empty"
        raise NothingFoundError(msg)
    largest = agents[0].agent_id
    if len(agents) > 1:
        note(f"agent {largest!r}, the largest of {len(agents)}; choose another with --agent")
    return largest
