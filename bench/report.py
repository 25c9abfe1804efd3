"""Turn the figures of a run into tables and a plot: `python bench/report.py FILE.json` writes both beside the file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

Info: TypeAlias = dict[str, Any]

OURS, THEIRS, LIMIT = "#1f6f8b", "#c0843d", "#a33b3b"
SHARES = ("r@5", "r@10", "mrr")
STATES = ("idle", "writing", "cold")

# Above this share of the CPUs taken by others, a ratio says as much about them.
CROWDED = 0.1


class Run(NamedTuple):
    """One run of the benchmarks: when, where, and what each kept, by group."""

    raw: Info
    groups: dict[str, list[Info]]

    def of(self, group: str) -> list[Info]:
        """Return what the benchmarks of a group kept."""
        return self.groups.get(group, [])

    def searches(self) -> list[Info]:
        """Return what the benchmarks of finding kept."""
        return [i for group, infos in self.groups.items() if group.startswith(("finding", "haystack")) for i in infos]

    def reads(self) -> list[Info]:
        """Return what the benchmarks of reading kept."""
        return [info for group, infos in self.groups.items() if group.startswith("read,") for info in infos]


def main() -> None:
    """Read the file, print the table of bars, write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="what pytest-benchmark wrote")
    source: Path = parser.parse_args().file
    run = load(source)
    text, plot = source.with_name("report.md"), source.with_name("report.png")
    draw(run, plot)
    text.write_text("\n".join(report(run, plot.name)) + "\n", "utf-8")
    print("\n".join(f"{sentence(bar)}" for bar in bars(run)))
    print(f"{text}\n{plot}")


def load(source: Path) -> Run:
    """Read what pytest-benchmark wrote."""
    raw: Info = json.loads(source.read_text("utf-8"))
    groups: dict[str, list[Info]] = {}
    for benchmark in raw["benchmarks"]:
        groups.setdefault(benchmark["group"], []).append(benchmark["extra_info"])
    return Run(raw, groups)


def bars(run: Run) -> list[Info]:
    """Return all bars, in the order of the benchmarks."""
    return [bar for infos in run.groups.values() for info in infos for bar in info.get("bars", ())]


def is_met(bar: Info) -> bool:
    """Tell whether the figure is on the right side."""
    figure, least, most = bar["figure"], bar["least"], bar["most"]
    return bool(figure >= least if least is not None else figure <= most)


def limit(bar: Info) -> str:
    """Name the bar itself."""
    side, value = ("at least", bar["least"]) if bar["least"] is not None else ("at most", bar["most"])
    return f"{side} {value:g} {bar['unit']}"


def sentence(bar: Info) -> str:
    """Put a bar into one line."""
    return f"{'met   ' if is_met(bar) else 'MISSED'}  {bar['what']}: {measured(bar)} ({limit(bar)})"


def measured(bar: Info) -> str:
    """Name the figure, and where there are rounds the lowest and the highest of them."""
    spread = "" if bar["low"] is None else f", {bar['low']:.2f} to {bar['high']:.2f}"
    return f"{bar['figure']:.2f} {bar['unit']}{spread}"


def report(run: Run, plot: str) -> Iterator[str]:
    """Write everything as Markdown."""
    yield from ("# Benchmarks", "", *machine(run), "", f"![The figures as a plot]({plot})")
    yield from section(
        "What it must reach, median of the rounds and their range",
        ("", "measured", "bar", ""),
        ((bar["what"], measured(bar), limit(bar), "met" if is_met(bar) else "**missed**") for bar in bars(run)),
    )
    yield from section(
        "Acknowledged `record`",
        ("tasks", "records/s", "against plain sqlite3", "p50 ms", "p95 ms", "p99 ms"),
        ((f"{i['tasks']:,}", whole(i["ours"]), times(i), *milliseconds(i)) for i in run.of("record")),
    )
    yield from section(
        "Bulk `record_many`, 2,000 a call",
        ("calls at a time", "rows/s", "plain sqlite3, rows/s", "ratio"),
        ((str(i["calls"]), whole(i["ours"]), whole(i["peer"]), times(i)) for i in run.of("record_many")),
    )
    yield from section(
        "`record` at 1,000 tasks against other ways to write from an event loop",
        ("", "its tasks", "its records/s", "ours", "ratio"),
        (
            (i["against"], f"{i['tasks']:,}", whole(i["peer"]), whole(i["ours"]), times(i))
            for i in run.of("record, peers")
        ),
    )
    yield from section(
        "Single reads, p50 / p95 / p99 in ms",
        ("episodes", "call", "idle", "beside a saturated writer", "cold"),
        (
            (f"{i['size']:,}", f"`{i['operation']}`", *(" / ".join(milliseconds(i[state])) for state in STATES))
            for i in run.reads()
        ),
    )

    for info in run.searches():
        yield from section(
            f"Finding the evidence for questions among {info['episodes']:,} episodes",
            ("", "questions", "r@5", "r@10", "MRR", "p50 ms", "p95 ms", "p99 ms"),
            (
                (name, f"{way['questions']}", *(f"{way[share]:.3f}" for share in SHARES), *milliseconds(way))
                for name, way in info["ways"].items()
            ),
        )


def machine(run: Run) -> Iterator[str]:
    """Say where the figures come from."""
    info, commit = run.raw["machine_info"], run.raw["commit_info"]
    cpu = info["cpu"]
    state = " with changes" if commit["dirty"] else ""
    yield f"- {cpu.get('brand_raw', info['machine'])}, {cpu['count']} CPUs, {info['system']} {info['release']}"
    yield f"- Python {info['python_version']}, SQLite {info['sqlite']}"
    yield f"- commit {commit['id'][:12]}{state}, {run.raw['datetime'][:16]} UTC"
    others = max((i["others"] or 0 for infos in run.groups.values() for i in infos if "others" in i), default=0)
    if others > CROWDED:
        yield f"- **other programs took up to {others:.0%} of the CPUs meanwhile; run it again on an idle machine**"


def section(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write a table, or nothing where there are no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if lines:
        yield from ("", f"## {title}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|", *lines)


def whole(figure: float) -> str:
    """Write a rate."""
    return f"{figure:,.0f}"


def times(info: Info) -> str:
    """Write a ratio with its range."""
    return f"{info['ratio']:.2f} × ({info['ratio_low']:.2f}–{info['ratio_high']:.2f})"


def milliseconds(info: Info) -> list[str]:
    """Write three percentiles."""
    return [f"{info[name]:.3g}" if info[name] < 1000 else f"{info[name]:.0f}" for name in ("p50", "p95", "p99")]


def draw(run: Run, target: Path) -> None:
    """Draw the rates, the reads and the bars."""
    figure, ((rates, against), (reads, costs), (limits, empty)) = plt.subplots(
        3, 2, figsize=(15, 17), layout="constrained"
    )
    draw_rates(rates, run.of("record"))
    draw_peers(against, run)
    draw_reads(reads, run.reads())
    draw_costs(costs, run.searches())
    draw_bars(limits, bars(run))
    empty.set_axis_off()
    for axes in (rates, against, reads, costs, limits):
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("\n".join(line.strip("- *") for line in machine(run)), fontsize=9)
    figure.savefig(target, dpi=110)
    plt.close(figure)


def draw_rates(axes: Axes, infos: Sequence[Info]) -> None:
    """Draw acknowledged records per second by the number of tasks."""
    axes.set_title("acknowledged record, records/s")
    axes.set_xlabel("tasks")
    if not infos:
        return
    tasks = [info["tasks"] for info in infos]
    axes.plot(tasks, [info["ours"] for info in infos], "o-", color=OURS, label="record, each acknowledged")
    axes.plot(tasks, [info["peer"] for info in infos], "s--", color=THEIRS, label=infos[0]["against"])
    axes.set_xscale("log")
    axes.set_xticks(tasks, [f"{number:,}" for number in tasks])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False)


def draw_peers(axes: Axes, run: Run) -> None:
    """Draw records per second of each way to write."""
    axes.set_title("ways to write, records/s (logarithmic)")
    bulk = run.of("record_many")[:1]
    ways = [
        *((f"{i['against']}, tasks: {i['tasks']:,}", i["peer"], THEIRS) for i in run.of("record, peers")),
        *((i["against"], i["peer"], THEIRS) for i in bulk),
        *(("record_many, 2,000 a call", i["ours"], OURS) for i in bulk),
        *((f"record, tasks: {i['tasks']:,}", i["ours"], OURS) for i in run.of("record") if i["tasks"] in {1, 1_000}),
    ]
    if not ways:
        return
    ways.sort(key=lambda way: way[1])
    drawn = axes.barh([name for name, _, _ in ways], [rate for _, rate, _ in ways], color=[way[2] for way in ways])
    axes.bar_label(drawn, [whole(rate) for _, rate, _ in ways], padding=4)
    axes.set_xscale("log")
    axes.margins(x=0.2)


def draw_reads(axes: Axes, infos: Sequence[Info]) -> None:
    """Draw each read from its p50 to its p99, in each state."""
    axes.set_title("single reads, p50 to p99, ms (logarithmic)")
    if not infos:
        return
    labels = [f"{info['operation']}, {info['size']:,}" for info in infos]
    for shift, state, color in zip((-0.22, 0.0, 0.22), STATES, (OURS, LIMIT, "#888888"), strict=True):
        places = [place + shift for place in range(len(infos))]
        low = [info[state]["p50"] for info in infos]
        high = [info[state]["p99"] for info in infos]
        axes.hlines(places, low, high, color=color, linewidth=5, alpha=0.5)
        name = {"writing": "beside a saturated writer"}.get(state, state)
        axes.plot(low, places, "o", color=color, markersize=5, label=f"{name}: p50, to p99")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize=8)


def draw_costs(axes: Axes, infos: Sequence[Info]) -> None:
    """Draw the p95 of each way to search by the number of episodes."""
    axes.set_title("a search, p95 in ms, by the number of episodes (logarithmic)")
    sizes = sorted((info["episodes"], info["ways"]) for info in infos if "search, agent" in info["ways"])
    if not sizes:
        return
    lines = {
        "search, agent": ("o-", OURS),
        "search, user": ("v-", OURS),
        "tantivy, all words": ("s--", THEIRS),
        "tantivy, all words, of the agent": ("D--", THEIRS),
        "recipe, any word": ("^--", LIMIT),
    }
    for name, (style, color) in lines.items():
        axes.plot([size for size, _ in sizes], [ways[name]["p95"] for _, ways in sizes], style, color=color, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.legend(frameon=False, fontsize=8)


def draw_bars(axes: Axes, found: Sequence[Info]) -> None:
    """Draw each figure as a share of its bar; those that are met reach the line, or stay behind it."""
    axes.set_title("figure as a share of its bar")
    shares = [bar["figure"] / (bar["least"] if bar["least"] is not None else bar["most"]) for bar in found]
    colors = [OURS if is_met(bar) else LIMIT for bar in found]
    labels = [f"{bar['what']}\n{limit(bar)}".replace(", against", ",\nagainst") for bar in found]
    drawn = axes.barh(range(len(found)), shares, color=colors)
    axes.bar_label(drawn, [f"{bar['figure']:.2f} {bar['unit']}" for bar in found], padding=4)
    axes.set_yticks(range(len(found)), labels, fontsize=7)
    axes.invert_yaxis()
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(x=0.2)


if __name__ == "__main__":
    main()
