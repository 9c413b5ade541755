"""What a simulated run was, as tables."""

from collections.abc import Mapping

from kafka_rebalance.simulator.run import Run, Totals

from .tables import print_table


def print_run(run: Run) -> None:
    """The rebalances one by one, and what they add up to."""
    print(run.title)
    rows = [
        [
            f"{one.from_ms / 1000:.1f}",
            ", ".join(one.causes),
            str(one.generation_id),
            "" if one.duration_ms is None else f"{one.duration_ms / 1000:.2f}",
            f"{_unavailable(run, one.from_ms) / 1000:.1f}",
        ]
        for one in run.rebalances
    ]
    columns = ["at s", "because", "generation", "took s", "partition-s without a reader"]
    print_table(columns, rows, left=[1])
    print_totals({"": run.totals()})
    for name, why in run.crashed.items():
        print(f"{name} stopped: {why}")


def print_totals(runs: Mapping[str, Totals]) -> None:
    """One line a run."""
    rows = [
        [
            name,
            str(one.rebalances),
            str(one.moves),
            f"{one.unavailable_ms / 1000:,.1f}",
            f"{one.longest_gap_ms / 1000:,.1f}",
            f"{one.records_behind:,}",
            "never" if one.settled_ms is None else f"{one.settled_ms / 1000:,.1f}",
        ]
        for name, one in runs.items()
    ]
    columns = ["", "rebalances", "moves", "partition-s without a reader", "longest s"]
    print_table([*columns, "records behind", "settled at s"], rows)


def _unavailable(run: Run, from_ms: int) -> int:
    """Partition-ms without a reader from the start of a rebalance to the start of the next."""
    later = [one.from_ms for one in run.rebalances if one.from_ms > from_ms]
    end = min(later, default=run.until_ms)
    return sum(max(0, min(gap.to_ms, end) - max(gap.from_ms, from_ms)) for gap in run.gaps)
