"""Look for texts in the bytes of files: a program, which reads what to look for from standard input.

A process of its own, since closing a file lets go of every lock that the process holds on it, SQLite's own ones too
(https://sqlite.org/howtocorrupt.html, section 2.2); and from standard input, since everybody may read its arguments.

In comes a JSON object with "files" and "needles" (in hexadecimal); out comes one with "bytes", how many were looked
at, and "found", the places of the needles that are there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

STRETCH = 2**22


def main() -> None:
    """Read the question, look, and print the answer."""
    asked = json.load(sys.stdin)
    needles = [bytes.fromhex(needle) for needle in asked["needles"]]
    overlap = max(map(len, needles), default=1) - 1
    found: set[int] = set()
    looked_at = 0
    for file in map(Path, asked["files"]):
        if not file.exists():
            continue
        with file.open("rb") as content:
            kept = b""
            while stretch := content.read(STRETCH):
                looked_at += len(stretch)
                text = kept + stretch
                found |= {place for place, needle in enumerate(needles) if place not in found and needle in text}
                kept = text[-overlap:] if overlap else b""
    json.dump({"bytes": looked_at, "found": sorted(found)}, sys.stdout)


if __name__ == "__main__":
    main()
