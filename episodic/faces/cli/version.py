"""Which episodic this is."""

from __future__ import annotations

__all__ = ["version"]

DISTRIBUTION = "episodic-log"


def version() -> str:
    """Return the version of the installed distribution; a checkout that is only on the path has none."""
    # Here, since it takes longer to load than most commands have to do.
    from importlib import metadata

    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "not installed"
