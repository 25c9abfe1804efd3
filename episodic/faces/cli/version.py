"""Which episodic this is."""

from __future__ import annotations

from importlib import metadata

__all__ = ["version"]

DISTRIBUTION = "episodic-log"


def version() -> str:
    """Return the version of the installed distribution; a checkout that is only on the path has none."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "not installed"
