"""The command line: `episodic`, or `python -m episodic`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]

# The libraries of the `cli` extra.
EXTRA = frozenset({"click", "rich"})
# As in `exits`, which this cannot import before it is known that there are no libraries missing.
UNUSABLE = 3
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: what stands behind the program's name; None takes the process's own.

    Returns:
        The exit code, as `episodic --help` lists them.
    """
    try:
        from episodic.faces.cli.app import run
    except ModuleNotFoundError as exc:
        missing = str(exc.name).partition(".")[0]
        if missing not in EXTRA:
            raise
        print(f"episodic: {missing} is missing: pip install 'episodic-log[cli]'", file=sys.stderr)  # noqa: T201
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    return run(arguments)
