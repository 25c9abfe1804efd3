"""Import or replay in a process of its own, and print by how much its resident memory grew."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from episodic import EpisodicLog
from episodic.transfer import import_file

__all__ = ["STATUS"]

STATUS = Path("/proc/self/status")

# Writing this sets the process's peak back to what is resident now.
CLEAR_REFS, RESET_PEAK = Path("/proc/self/clear_refs"), "5"

MEGABYTE = 1_000


def resident(field: str) -> float:
    """Return VmRSS, what is resident, or VmHWM, the most that ever was, in MB."""
    for line in STATUS.read_text("ascii").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / MEGABYTE
    raise LookupError(field)


async def import_all(path: Path, source: Path) -> float:
    """Import a file into a new log."""
    async with EpisodicLog.open(path) as log:
        before = forget_peak()
        await import_file(log, source)
        return resident("VmHWM") - before


async def replay_all(path: Path) -> float:
    """Go through everything that a log holds, an episode at a time."""
    async with EpisodicLog.open(path, read_only=True) as log:
        before = forget_peak()
        async for _ in log.scan():
            pass
        return resident("VmHWM") - before


def forget_peak() -> float:
    """Begin to measure; returns what is resident now."""
    CLEAR_REFS.write_text(RESET_PEAK, "ascii")
    return resident("VmRSS")


def main() -> None:
    """Import into a log from a file, or replay a log: `python -m bench.footprint LOG [FILE]`."""
    log, *sources = map(Path, sys.argv[1:])
    grown = asyncio.run(import_all(log, *sources) if sources else replay_all(log))
    print(json.dumps({"grown_by_mb": grown}))


if __name__ == "__main__":
    main()
