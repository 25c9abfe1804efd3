"""The commands that ask a log one question. They open it for reading only, and never make a file."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from episodic.context import Context, ContextItem
from episodic.faces.cli.exits import OK, NothingFoundError
from episodic.faces.cli.options import (
    Number,
    agent_option,
    awaited,
    chosen_agent,
    command,
    db_option,
    filter_options,
    json_option,
    limit_option,
)
from episodic.faces.cli.screen import Screen, lead, name_text, outcome_text, said, stamp
from episodic.faces.cli.text import excerpt, lasting, one_line, printable, printable_path, sized
from episodic.faces.cli.version import version
from episodic.found import Hit, SearchResult
from episodic.log import EpisodicLog
from episodic.model import OUTCOMES, AgentSummary, Filter, Session, Stats

__all__ = ["print_context", "recall", "recent", "search", "sessions", "stats"]

LARGEST = "the one with most episodes"
EXCERPT = 240
AGENTS_SHOWN = 20


@command("sessions")
@db_option
@agent_option(LARGEST)
@filter_options()
@limit_option(20, "Sessions")
@json_option
@awaited
async def sessions(*, db: Path, agent_id: str | None, where: Filter | None, limit: int, as_json: bool) -> int:
    """List an agent's sessions, the newest first."""
    async with EpisodicLog.open(db, read_only=True) as log:
        agent_id = await chosen_agent(log, agent_id)
        found = await log.sessions(agent_id, where, limit)
    if not found:
        raise _nothing(agent_id, where, "sessions")
    screen = Screen.open()
    if as_json:
        screen.records(found)
    else:
        screen.table(
            ("last episode", "[turns]", "within", "outcome", "session", "user"), list(map(_session_row, found))
        )
    return OK


@command("recent")
@db_option
@agent_option(LARGEST)
@filter_options()
@limit_option(20, "Episodes")
@click.option("--min-age", metavar="SECONDS", type=Number(min=0), default=0.0, help="Leave out what is younger.")
@json_option
@awaited
async def recent(
    *, db: Path, agent_id: str | None, where: Filter | None, limit: int, min_age: float, as_json: bool
) -> int:
    """Show an agent's newest episodes, newest first."""
    async with EpisodicLog.open(db, read_only=True) as log:
        agent_id = await chosen_agent(log, agent_id)
        found = await log.recent(agent_id, limit, min_age, where)
    if not found:
        raise _nothing(agent_id, where)
    screen = Screen.open()
    if as_json:
        screen.records(found)
    else:
        for episode in found:
            screen.turn(lead(episode), said(episode))
    return OK


@command("search")
@click.argument("query")
@db_option
@agent_option(LARGEST)
@filter_options()
@limit_option(10, "Hits")
@click.option("--explain", is_flag=True, help="Show how common each word is, what it was used for, and each score.")
@json_option
@awaited
async def search(
    *, query: str, db: Path, agent_id: str | None, where: Filter | None, limit: int, explain: bool, as_json: bool
) -> int:
    """Find the episodes that answer QUERY best; any text will do."""
    async with EpisodicLog.open(db, read_only=True) as log:
        agent_id = await chosen_agent(log, agent_id)
        found = await log.search(agent_id, query, limit, where)
    screen = Screen.open()
    if explain:
        _print_explained(screen, found, as_json=as_json)
    if not found.hits:
        raise _no_hits(found, agent_id, where)
    if explain:
        return OK
    if as_json:
        screen.records(found.hits)
    else:
        for place, hit in enumerate(found.hits, start=1):
            _print_hit(screen, place, hit)
    return OK


@command("recall")
@click.argument("message")
@db_option
@agent_option(LARGEST)
@filter_options()
@limit_option(5, "Episodes")
@click.option("--render", is_flag=True, help="Write the text for a model's prompt instead.")
@click.option(
    "--max-tokens", metavar="N", type=click.IntRange(min=0), default=800, show_default=True, help="Budget of that text."
)
@click.option("--prefer", type=click.Choice(sorted(OUTCOMES)), help="What had this outcome comes first.")
@json_option
@awaited
async def recall(
    *,
    message: str,
    db: Path,
    agent_id: str | None,
    where: Filter | None,
    limit: int,
    render: bool,
    max_tokens: int,
    prefer: str | None,
    as_json: bool,
) -> int:
    """Show what a model would be told about MESSAGE.

    Each episode with its reasons: how relevant, how recent, which words. A bot would ask for one --user.
    """
    async with EpisodicLog.open(db, read_only=True) as log:
        agent_id = await chosen_agent(log, agent_id)
        context = await log.recall_context(agent_id, message, limit, where, prefer=prefer)
        if not context.items and await log.recent(agent_id, 1, where=where):
            msg = f"agent {agent_id!r} has nothing but this message itself, which nobody has answered yet"
            raise NothingFoundError(msg)
    if not context.items:
        raise _nothing(agent_id, where)
    screen = Screen.open()
    text = context.render(max_tokens) if render else ""
    if render and not text:
        msg = f"{max_tokens} tokens are too few for any of the {len(context.items)} episodes found; raise --max-tokens"
        raise NothingFoundError(msg)
    if as_json:
        screen.records([{"text": text}] if render else context.items)
    elif render:
        screen.line(printable(text))
    else:
        print_context(screen, context)
    return OK


@command("stats")
@db_option
@json_option
@awaited
async def stats(*, db: Path, as_json: bool) -> int:
    """Say what a log holds, and how large it is."""
    async with EpisodicLog.open(db, read_only=True) as log:
        state, agents = log.stats(), await log.agents()
    screen = Screen.open()
    if as_json:
        screen.records([_stats_record(state, agents)])
        return OK
    _print_stats(screen, state, agents)
    return OK


def print_context(screen: Screen, context: Context) -> None:
    """Write recalled episodes, each with its reasons."""
    for place, item in enumerate(context.items, start=1):
        screen.line(f"{place:2}  ", lead(item.episode), Text(f"  {_reasons(item)}", "dim"))
        screen.turn(Text("  "), said(item.episode))


def _reasons(item: ContextItem) -> str:
    reasons = [f"score {item.score:.2f}"]
    if item.relevance_rank is not None:
        reasons.append(f"relevance {item.relevance_rank}")
    if item.recency_rank is not None:
        reasons.append(f"recency {item.recency_rank}")
    if item.preferred:
        reasons.append("preferred")
    if item.matched:
        reasons.append(f"holds {', '.join(map(one_line, item.matched))}")
    return ", ".join(reasons)


def _print_explained(screen: Screen, found: SearchResult, *, as_json: bool) -> None:
    if as_json:
        screen.records([found])
    else:
        screen.line(printable(found.explain()))


def _print_hit(screen: Screen, place: int, hit: Hit) -> None:
    part = excerpt(printable(hit.episode.content), hit.matched, EXCERPT)
    why = f"  score {hit.score:.2f}" + ("" if hit.matched else ", stands beside what was looked for")
    screen.line(f"{place:2}  ", lead(hit.episode), Text(why, "dim"))
    screen.turn(Text("  "), said(hit.episode, part.text, part.marks))


def _session_row(session: Session) -> tuple[Text, ...]:
    return (
        Text(stamp(session.last)),
        Text(str(session.episodes)),
        Text(lasting(session.last - session.first)),
        outcome_text(session.outcome, "-"),
        name_text(session.session_id),
        name_text(session.user_id),
    )


def _stats_record(state: Stats, agents: list[AgentSummary]) -> dict[str, object]:
    return {
        "path": printable_path(state.path),
        "version": version(),
        "sqlite_version": state.sqlite_version,
        "mode": state.mode,
        "file_bytes": state.file_bytes,
        "wal_bytes": state.wal_bytes,
        "episodes": sum(agent.episodes for agent in agents),
        "sessions": sum(agent.sessions for agent in agents),
        "agents": agents,
    }


def _print_stats(screen: Screen, state: Stats, agents: list[AgentSummary]) -> None:
    episodes, sessions = sum(agent.episodes for agent in agents), sum(agent.sessions for agent in agents)
    how = "by full-text index" if state.mode == "fts" else "by comparing text, since this SQLite has no FTS5"
    facts = {
        "log": one_line(state.path),
        "size": f"{sized(state.file_bytes)}, and {sized(state.wal_bytes)} of write-ahead log",
        "episodes": f"{episodes:,}",
        "sessions": f"{sessions:,}",
        "agents": f"{len(agents):,}",
        "search": how,
        "versions": f"episodic {version()}, SQLite {state.sqlite_version}",
    }
    for name, fact in facts.items():
        screen.line(Text(f"{name:<10}", "dim"), fact)
    if agents:
        screen.line()
        header = ("agent", "[episodes]", "[sessions]", "first episode", "last episode")
        screen.table(header, list(map(_agent_row, agents[:AGENTS_SHOWN])))
    if len(agents) > AGENTS_SHOWN:
        screen.line(f"and {len(agents) - AGENTS_SHOWN:,} more agents; --json has them all")


def _agent_row(agent: AgentSummary) -> tuple[Text, ...]:
    counts = (Text(f"{agent.episodes:,}"), Text(f"{agent.sessions:,}"))
    return (name_text(agent.agent_id), *counts, Text(stamp(agent.first)), Text(stamp(agent.last)))


def _nothing(agent_id: str, where: Filter | None, what: str = "episodes") -> NothingFoundError:
    narrowed = "" if where is None else " that the filter leaves"
    return NothingFoundError(f"agent {agent_id!r} has no {what}{narrowed}; run `episodic stats` to see all agents")


def _no_hits(found: SearchResult, agent_id: str, where: Filter | None) -> NothingFoundError:
    if not found.words:
        return NothingFoundError("there is nothing to look for: the query holds no letter and no digit")
    looked_at = "" if found.exhaustive else " among those that were looked through, the newest"
    return _nothing(agent_id, where, f"episodes with any of {', '.join(found.words)}{looked_at}")
