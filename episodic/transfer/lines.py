"""The lines of a file, unpacked on the way when it is gzip."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from itertools import count
from typing import BinaryIO

from episodic.errors import TransferError

__all__ = ["begins", "numbered"]

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# A line that never ends must not fill the memory.
LONGEST_LINE = 256 * 2**20


def begins(stream: io.BufferedReader, magic: bytes) -> bool:
    """Tell whether what comes next in a stream is this."""
    return stream.peek(len(magic)).startswith(magic)


def numbered(stream: io.BufferedReader, name: str) -> Iterator[tuple[int, bytes]]:
    """Read lines with their numbers; those that hold nothing count and are left out.

    Args:
        stream: plain, or packed by gzip.
        name: for messages.

    Raises:
        TransferError: a line cannot be read.
    """
    plain: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=stream) if begins(stream, GZIP_MAGIC) else stream
    for place in count(1):
        try:
            line = plain.readline(LONGEST_LINE + 1)
        except (OSError, EOFError, zlib.error) as exc:
            msg = f"{name}, line {place}: cannot be read: {exc}"
            raise TransferError(msg) from exc
        if not line:
            return
        if len(line) > LONGEST_LINE:
            msg = f"{name}, line {place}: is longer than {LONGEST_LINE} bytes"
            raise TransferError(msg)
        line = line.removeprefix(BYTE_ORDER_MARK) if place == 1 else line
        if not line.isspace():
            yield place, line
