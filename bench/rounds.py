"""Measuring two things against one another on a machine whose speed drifts.

The speed of a shared machine changes by a third within seconds. So ours and the peer are measured alternately in short
rounds, and what counts is the median of the rounds' ratios.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

from pytest_benchmark.fixture import BenchmarkFixture

__all__ = ["Figure", "alternate", "bar", "percentiles"]

Figure: TypeAlias = "Callable[[int], float]"
"""Measures once, given the number of the round."""

IDLE_FIELDS = (3, 4)  # idle and iowait, in the first line of /proc/stat


def alternate(benchmark: BenchmarkFixture, ours: Figure, peer: Figure, rounds: int) -> None:
    """Measure the peer and ours in turns, and keep the figures and the rounds' ratios with the benchmark."""
    mine: list[float] = []
    theirs: list[float] = []

    def measure_peer() -> None:
        _set_heap_aside()
        theirs.append(peer(len(theirs)))
        _set_heap_aside()

    others = _Others()
    benchmark.pedantic(lambda: mine.append(ours(len(mine))), setup=measure_peer, rounds=rounds)  # type: ignore[no-untyped-call]
    ratios = sorted(one / other for one, other in zip(mine, theirs, strict=True))
    benchmark.extra_info.update(
        ours=median(mine),
        peer=median(theirs),
        ratio=median(ratios),
        ratio_low=ratios[0],
        ratio_high=ratios[-1],
        others=others.share(),
    )


def bar(
    benchmark: BenchmarkFixture,
    what: str,
    *,
    least: float | None = None,
    most: float | None = None,
    figure: float | None = None,
    unit: str = "×",
) -> None:
    """Note for the report what the ratio that `alternate` found, or a figure, should be at least or at most."""
    info = benchmark.extra_info
    found = {
        "figure": info["ratio"] if figure is None else figure,
        "low": info.get("ratio_low"),
        "high": info.get("ratio_high"),
    }
    info.setdefault("bars", []).append({"what": what, "least": least, "most": most, "unit": unit, **found})


def percentiles(seconds: Sequence[float]) -> Mapping[str, float]:
    """Return the 50th, 95th and 99th percentile and the longest, in milliseconds."""
    ordered = sorted(seconds)
    last = len(ordered) - 1
    shares = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: 1000 * ordered[min(last, int(share * len(ordered)))] for name, share in shares.items()}


def _set_heap_aside() -> None:
    """Keep the garbage collector from going through the drafts and modules of the benchmark again and again."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class _Others:
    """How busy others keep the machine while we measure: what a ratio of two threads to one must be read with."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._busy = self._others()

    def share(self) -> float | None:
        """Return the share of all CPUs that others took since the start, or None where that cannot be known."""
        if self._busy is None or (busy := self._others()) is None:
            return None
        return max(0.0, busy - self._busy) / (time.monotonic() - self._begun) / (os.cpu_count() or 1)

    @staticmethod
    def _others() -> float | None:
        try:
            first = Path("/proc/stat").read_text("ascii").partition("\n")[0]
        except OSError:
            return None
        ticks = [int(field) for field in first.split()[1:9]]
        busy = sum(ticks) - sum(ticks[field] for field in IDLE_FIELDS)
        times = os.times()
        return busy / os.sysconf("SC_CLK_TCK") - times.user - times.system
