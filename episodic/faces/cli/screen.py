"""Standard output and standard error: transcripts, tables, JSON lines, notes and progress.

On a terminal text is coloured and wrapped; elsewhere it is plain, a line for a line. What comes from a log reaches
either only through `text.printable`, and never as markup.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

import orjson
from rich.console import Console
from rich.text import Text

from episodic.faces.cli.text import Span, ascii_json, one_line, printable
from episodic.model import Episode

__all__ = [
    "DATE",
    "Screen",
    "json_output",
    "lead",
    "name_text",
    "note",
    "outcome_text",
    "prepare_streams",
    "role_text",
    "said",
    "stamp",
]

ROLE_STYLES = {"user": "cyan", "assistant": "green", "tool": "magenta", "system": "yellow"}
OUTCOME_STYLES = {"success": "green", "partial": "yellow", "failure": "bold red"}
MARK = "bold reverse"

ROLE_WIDTH = max(map(len, ROLE_STYLES))
DATE = "%Y-%m-%d"
STAMP = "%Y-%m-%d %H:%M:%S"

# A terminal narrower than this gets the text on lines of its own.
LEAST_ROOM = 30
INDENT = 4


def prepare_streams() -> None:
    """Let no character stop the output: what the terminal's encoding lacks is spelled out."""
    # A stream that whoever started us closed is None, and its number would go to the next file that is opened.
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - open to the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115 - the same
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def note(message: str) -> None:
    """Say one line on standard error."""
    sys.stderr.write(f"episodic: {one_line(message.strip())}\n")
    sys.stderr.flush()


def json_output() -> BinaryIO:
    """Return standard output for lines of JSON: on a terminal with escapes for what it would obey, else as they are."""
    return cast("BinaryIO", _TerminalJson()) if sys.stdout.isatty() else sys.stdout.buffer


class _TerminalJson:
    """A terminal that is written lines of JSON, as far as a binary stream is needed for that."""

    def write(self, lines: bytes) -> int:
        sys.stdout.buffer.write(ascii_json(lines))
        return len(lines)


def stamp(instant: datetime) -> str:
    """Write a time in UTC to the second."""
    return instant.strftime(STAMP)


def outcome_text(outcome: str | None, otherwise: str = "") -> Text:
    """Write an outcome in its colour."""
    return Text(outcome or otherwise, OUTCOME_STYLES.get(outcome or "", "dim"))


def said(episode: Episode, content: str | None = None, marks: Sequence[Span] = ()) -> Text:
    """Write what an episode says: its author, its text, its outcome.

    Args:
        episode: the episode.
        content: a part of its text to show instead of the whole.
        marks: where in that part to set marks.
    """
    text = Text()
    if episode.author is not None:
        text.append(f"{one_line(episode.author)}: ", "bold")
    body = Text(printable(episode.content) if content is None else content)
    for start, end in marks:
        body.stylize(MARK, start, end)
    text.append_text(body)
    if episode.outcome is not None:
        text.append("  [").append_text(outcome_text(episode.outcome)).append("]")
    return text


def lead(episode: Episode, *, agent: bool = False) -> Text:
    """Write what stands before an episode in a list of several sessions: when, in which session, in which role.

    Args:
        episode: the episode.
        agent: whether to name the agent, too.
    """
    names = [name_text(episode.session_id)]
    if agent:
        names.insert(0, name_text(episode.agent_id))
    return Text("  ").join([Text(stamp(episode.timestamp), "dim"), *names, role_text(episode)])


def name_text(name: str | None) -> Text:
    """Write an id, or a dash where there is none."""
    return Text("-", "dim") if name is None else Text(one_line(name))


def role_text(episode: Episode) -> Text:
    """Write a role in its colour, as wide as the widest."""
    return Text(episode.role.ljust(ROLE_WIDTH), ROLE_STYLES.get(episode.role, ""))


class _Console(Console):
    """A console that leaves a broken pipe to us."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


@dataclass(frozen=True, slots=True)
class Screen:
    """Standard output.

    Attributes:
        console: the terminal, or None where there is none.
    """

    console: Console | None

    @classmethod
    def open(cls) -> Screen:
        """Find out what standard output is."""
        console = _Console(highlight=False, markup=False, emoji=False)
        return cls(console if console.is_terminal else None)

    def line(self, *parts: Text | str) -> None:
        """Write one line."""
        self._write(Text.assemble(*parts))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[Text]]) -> None:
        """Write rows in columns; numbers, which are what a header in brackets stands above, to the right."""
        right = [name.startswith("[") for name in header]
        head = [Text(name.strip("[]"), "dim") for name in header]
        widths = [max(cell.cell_len for cell in column) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            line = Text()
            for cell, width, is_number in zip(row, widths, right, strict=True):
                gap = " " * (width - cell.cell_len)
                line.append_text(Text.assemble(gap, cell) if is_number else Text.assemble(cell, gap)).append("  ")
            line.rstrip()
            self._write(line)

    def turn(self, lead: Text, body: Text) -> None:
        """Write a text behind a lead, its further lines under its first."""
        indent = lead.cell_len + 2
        if self.console is None:
            rest = body.plain.replace("\n", f"\n{' ' * indent}")
            self._write(Text(f"{lead.plain}  {rest}"))
            return
        room = self.console.width - indent
        if room < LEAST_ROOM:
            self._write(lead)
            indent, room = INDENT, max(1, self.console.width - INDENT)
            lead = Text(" " * (INDENT - 2))
        for line in body.wrap(self.console, room):
            line.rstrip()
            self._write(Text.assemble(lead, "  ", line))
            lead = Text(" " * (indent - 2))

    def records(self, records: Iterable[object]) -> None:
        """Write records as lines of JSON, which is UTF-8 whatever the terminal's encoding."""
        for record in records:
            line = orjson.dumps(record, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)
            sys.stdout.buffer.write(ascii_json(line))

    def is_read(self) -> bool:
        """Tell whether somebody can still read what is written; a pipe's reader may have gone."""
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))

    def flush(self) -> None:
        """Let the reader have what was written."""
        sys.stdout.flush()

    def _write(self, text: Text) -> None:
        if self.console is None:
            sys.stdout.write(f"{text.plain.rstrip()}\n")
        else:
            self.console.print(text, soft_wrap=True)
