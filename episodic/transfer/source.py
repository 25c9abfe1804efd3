"""Where an import reads from: opened, recognised by its content, and turned into items.

All of it is blocking and belongs in a thread. Text is read line by line, unpacked on the way when it is gzip; a
database in pages. Memory stays flat in both.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, cast, get_args

from episodic.errors import DraftError, TransferError
from episodic.model import JSON
from episodic.sqlite.recipe import SQLITE_MAGIC, open_recipe
from episodic.transfer import jsonl, openai
from episodic.transfer.item import BadLineError, Flaw, Hints, Item
from episodic.transfer.lines import begins, numbered
from episodic.transfer.recipe import RowReader
from episodic.transfer.values import json_object

__all__ = ["Format", "Source", "open_source"]

Format: TypeAlias = Literal["episodic", "openai", "recipe"]

Decode: TypeAlias = Callable[[int, Mapping[str, JSON], Hints, int], Item]
LINE_FORMATS: dict[str, Decode] = {"episodic": jsonl.decode, "openai": openai.decode}


@dataclass(frozen=True, slots=True)
class Source:
    """An open source.

    Attributes:
        name: for messages.
        unit: what it consists of, "line" or "row".
        format: what it was found to be.
        size: bytes of the file or rows of the table; None where that cannot be known.
        position: returns how many of these were read.
        items: what it holds, from the first that is not skipped; raises TransferError at one that cannot be read.
        may_block: whether reading may wait for another program, as from a pipe.
        close: closes what was opened here.
    """

    name: str
    unit: Literal["line", "row"]
    format: Format
    size: int | None
    position: Callable[[], int]
    items: Iterator[Item]
    may_block: bool
    close: Callable[[], None]


def open_source(
    source: str | os.PathLike[str] | BinaryIO, *, form: Format | None, agent_id: str | None, skip: int
) -> Source:
    """Open a source and see what it is.

    Args:
        source: a path, or a binary stream, which stays open.
        form: its format, or None to find out.
        agent_id: the agent of lines that name none.
        skip: lines or rows to leave out at the beginning.

    Raises:
        TransferError: it cannot be opened, or is nothing that can be imported.
        StorageError: it is a database that cannot be read.
    """
    if form is not None and form not in get_args(Format):
        msg = f"there is no format {form!r}; choose one of {', '.join(get_args(Format))}"
        raise TransferError(msg)
    if not isinstance(source, str | os.PathLike):
        stream = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", source))
        leave = (lambda: None) if stream is source else lambda: cast("None", stream.detach())
        name = str(getattr(source, "name", "the stream"))
        return _open_lines(stream, name.strip("<>"), form, Hints(agent_id, "stdin"), skip, close=leave)
    path = Path(source)
    hints = Hints(agent_id, Path(path.name.removesuffix(".gz")).stem)
    try:
        stream = path.open("rb")
        is_database = form == "recipe" or (form is None and begins(stream, SQLITE_MAGIC))
    except OSError as exc:
        msg = f"{path} cannot be read: {exc.strerror}"
        raise TransferError(msg) from exc
    if is_database:
        stream.close()
        return _open_rows(path, hints, skip)
    try:
        return _open_lines(stream, path.name, form, hints, skip, close=stream.close)
    except BaseException:
        stream.close()
        raise


def _open_rows(path: Path, hints: Hints, skip: int) -> Source:
    file = open_recipe(path)
    reader = RowReader(file.columns, hints)
    done = 0

    def items() -> Iterator[Item]:
        nonlocal done
        for place, row in enumerate(file.rows(), start=1):
            done = row.rowid - file.first + 1
            # Skipped rows are read as well: one without a time takes that of the row before it.
            item = reader.decode(place, row)
            if place > skip:
                yield item

    size = file.last - file.first + 1
    return Source(path.name, "row", "recipe", size, lambda: done, items(), may_block=False, close=lambda: None)


def _open_lines(
    stream: io.BufferedReader, name: str, form: Format | None, hints: Hints, skip: int, *, close: Callable[[], None]
) -> Source:
    size, may_block = _file_size(stream)
    if form == "recipe" or begins(stream, SQLITE_MAGIC):
        msg = f"{name}: a database can only be read from a file that is not packed"
        raise TransferError(msg)
    lines = dropwhile(lambda line: line[0] <= skip, numbered(stream, name))
    ahead = list(islice(lines, 1))
    if form is None:
        form = _recognised(*ahead[0], name) if ahead else "episodic"
    decode = LINE_FORMATS[form]
    items = (_decoded(decode, place, line, hints, name) for place, line in chain(ahead, lines))
    return Source(name, "line", form, size, stream.raw.tell if size else lambda: 0, items, may_block, close)


def _recognised(place: int, line: bytes, name: str) -> Format:
    try:
        fields = json_object(line)
    except Flaw as exc:
        msg = f"{name}, line {place}: {exc}; a file to import holds one JSON object a line, or is an SQLite database"
        raise TransferError(msg) from exc
    if openai.looks_like(fields):
        return "openai"
    if jsonl.looks_like(fields):
        return "episodic"
    keys = ", ".join(list(fields)[:5]) or "none"
    msg = f"{name}, line {place}: is neither an episode nor a chat with messages; its keys are: {keys}"
    raise TransferError(msg)


def _decoded(decode: Decode, place: int, line: bytes, hints: Hints, name: str) -> Item:
    try:
        return decode(place, json_object(line), hints, len(line))
    except (Flaw, DraftError) as exc:
        msg = f"{name}, line {place}: {exc}"
        raise BadLineError(msg, place) from exc


def _file_size(stream: BinaryIO) -> tuple[int | None, bool]:
    """Return the size of the file behind a stream if it has one, and whether reading it may wait for a program."""
    try:
        status = os.fstat(stream.fileno())
    except OSError:
        return None, False
    regular = stat.S_ISREG(status.st_mode)
    return (status.st_size if regular else None), not regular
