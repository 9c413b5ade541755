# SPDX-License-Identifier: Apache-2.0
"""Answers every group of INPUT and writes OUTPUT as Parquet, one row for each group. For a bad
group only the columns error and error_kind are set; the job continues with the others. Paths are
Spark's: local ones, hdfs://, s3a:// and others. Local files of lines below 100 MB are answered
without Spark, if no --master is given.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_rebalance.assignors.registry import in_core, misspelt
from kafka_rebalance.bulk.paths import check_local, local
from kafka_rebalance.errors import GroupError
from kafka_rebalance.notes.lost_rack import loses_rack
from kafka_rebalance.plans.changes.assignor import SwitchAssignor
from kafka_rebalance.plans.changes.protocol import SwitchProtocol
from kafka_rebalance.plans.summary import in_words, without_reader
from kafka_rebalance.report.fleet import first_of, group_name, rackless
from kafka_rebalance.report.text.sentences import counted, cut, print_wrapped

from . import of_errors
from .fleet_jobs import BETTER, RECOMMENDABLE, command
from .groups import add_changes
from .options import add_table, whole

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_rebalance.bulk.parts import Done

    from .fleet_here import Here
    from .fleet_spark import OnSpark

_NAMED = 3
"""The largest number of groups that a sentence names."""
_EXAMPLES = 20
"""The largest number of groups in the file that `_advice` writes."""

_UNSAID = {
    "not_affected": "not affected", "unsettled": "never stable", "with_anomalies": "with anomalies",
}  # fmt: skip
"""A count that the first printed sentence leaves out -> the words that follow this number."""
_LEADERS = """\
each group was played with Java's assignor, unless its assignor names another library's
(librdkafka/range); for other leaders ask about one group:
kafka-rebalance {word} FILE --group ID"""
"""A note on leaders: the core does not know their libraries (docs/start/spark.md explains more)."""

_UNREAD = (
    "; columns that NAME does not read are not validated (range: owned partitions; roundrobin: "
    "racks, too), see docs/contract.md"
)

_BETTER = {"stop_less": "for fewer partitions without a reader", "be_more_even": "to be more even"}
"""A count of switches that `fleet compare` makes (a key of `BETTER`) -> their aim, in words."""

_WORDS = {
    "assign": "who owns what in every group",
    "plan": "predict changes of every group, one after another",
    "compare": "predict changes of every group with every assignor, and recommend one",
    "summary": "play each change alone: totals, worst groups and a page with pictures",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(title="words", required=True, metavar="WORD", dest="word")
    page = """
    --report DIR: a local directory for the page and the worst groups (default: OUTPUT)
    --racks RACK,…: the racks to lose, one in each plan (default: all; an empty text: none)
    """
    for word, line in _WORDS.items():
        one = words.add_parser(word, help=line, description=f"{line[0].upper()}{line[1:]}.")
        _add_paths(one)
        if word in ("assign", "plan", "summary"):
            unread = _UNREAD if word == "assign" else ""
            names = ", ".join(in_core())
            text = f"--assignor NAME: use this one for all groups, not their own: {names}{unread}"
            add_table(one, text)
        if word != "assign":
            add_changes(one)
        if word == "summary":
            add_table(one, page)


def _add_paths(parser: argparse.ArgumentParser) -> None:
    paths = """
    input INPUT: a file or a directory that Spark reads
    output OUTPUT: the directory to create
    """
    add_table(parser, paths)
    reading = parser.add_argument_group("reading")
    table = """
    --format: contract lines, the contract's columns, or records of __consumer_offsets as Parquet
      (default: by suffixes; records if --topics is given)
    --topics PATH: for records: the topics' name, partitions and racks, as Parquet or JSON lines
    --assume-assigned: for records: count the partitions of topics that PATH lacks from the
      assignments
    """
    add_table(reading, table, format={"choices": ("lines", "parquet", "records")})
    add_table(parser, "--max-partitions")
    direct = {"action": argparse.BooleanOptionalAction, "default": None}
    spark = """
    --tasks N: spread the groups over N tasks
    --direct: lines or Parquet: tasks read and write the files themselves, for much less CPU; driver
      and executors need access by pyarrow (default: for local paths)
    --master: Spark's master (default: local[*], or no Spark for small local files of lines; under
      spark-submit: the one there)
    --remote URL: a Spark Connect server: sc://host:port
    --shared-files: every machine of the cluster sees the local paths
    """
    options = parser.add_argument_group("Spark")
    add_table(options, spark, tasks=whole(1), direct=direct, master={"type": None})
    output = """
    --overwrite: replace an OUTPUT that a fleet job wrote
    --json: print the counts as JSON
    """
    add_table(parser, output)


def run(args: argparse.Namespace) -> int:
    name = getattr(args, "assignor", None)
    if name is not None and name not in in_core():
        raise GroupError("assignor", misspelt(name))
    if args.format == "records" and args.topics is None:
        raise GroupError("--topics", "missing; records do not have the topics' partition counts")
    plain = _check_paths(args)
    if _is_here(args):
        from .fleet_here import Here, files_here

        if (files := files_here(args)) is not None:
            return _answer(Here(args, files))
    from kafka_rebalance.spark.session import spark_errors

    from .fleet_spark import OnSpark  # after the import that reports a missing pyspark

    with _session(args) as spark, spark_errors():
        return _answer(OnSpark(args, spark, plain=plain))


def _is_submitted() -> bool:
    """Returns the value of `session.is_submitted()`; imports pyspark only if needed."""
    if "PYSPARK_GATEWAY_PORT" in os.environ or "pyspark.sql" in sys.modules:
        from kafka_rebalance.spark.session import is_submitted

        return is_submitted()
    return False


def _is_here(args: argparse.Namespace) -> bool:
    is_local = args.master is None or args.master.startswith("local")
    return args.remote is None and is_local and not _is_submitted()


def _check_paths(args: argparse.Namespace) -> bool:
    """Checks or refuses local paths; returns whether a path without a scheme is local."""
    if _is_here(args) or args.shared_files:
        check_local(args.input, args.output, overwrite=args.overwrite)
        return True
    plain = args.remote is None and not _is_submitted()
    for name in ("input", "output"):
        path = getattr(args, name)
        if local(path, plain=plain) is not None:  # each executor would write to its own disk
            problem = f"{path} is a local path; a cluster needs one that all its machines see"
            raise GroupError(name.upper(), f"{problem}: hdfs://, s3a://, or --shared-files")
    return False


@contextmanager
def _session(args: argparse.Namespace) -> "Iterator[SparkSession]":
    from kafka_rebalance.spark.probe import probe_executors
    from kafka_rebalance.spark.session import session, spark_errors

    with spark_errors():
        spark = session(
            f"fleet {args.word}",
            master=args.master,
            remote=args.remote,
            progress=sys.stderr.isatty(),
        )
    try:
        if not _is_here(args):
            probe_executors(spark)
        yield spark
    finally:
        spark.stop()


def _answer(fleet: "OnSpark | Here") -> int:
    args = fleet.args
    if args.word == "summary":
        from .fleet_summary import summarise

        return summarise(fleet)
    done, left_out = fleet.answer()
    advice = _advice(fleet) if done.never_ends else None
    _report(fleet, done, left_out, fleet.causes() if done.errors else {}, advice)
    return of_errors(done.errors)


def _report(
    fleet: "OnSpark | Here",
    done: "Done",
    left_out: dict[str, int],
    causes: dict[str, int],
    advice: str | None,
) -> None:
    args, switch = fleet.args, None
    if any(isinstance(one, SwitchProtocol) for one in getattr(args, "changes", ())):
        from kafka_rebalance.report.plans.fleet_switch import READ, FleetSwitch

        switch = FleetSwitch.of(fleet.rows(READ))
    said = "" if switch is not None else _summary(fleet, done)
    if args.json:
        summary = {
            **({"summary": said} if switch is None else switch.to_dict()),
            "groups": done.groups,
            "errors": done.errors,
            "never_end": done.never_ends,
            **{name.replace(" ", "_"): count for name, count in done.counts.items()},
            "left_out": left_out,
            "causes_of_errors": causes,
            "seconds": round(done.seconds, 3),
            "output": args.output,
        }
        print(json.dumps(summary))
        return
    if switch is None:
        print_wrapped(said)
    else:
        switch.show()
    rate = done.groups / done.seconds
    print(f"{counted(done.groups, 'group')} in {done.seconds:.1f} s ({rate:,.0f} a second)")
    more = ((done.counts.get(name, 0), words) for name, words in _UNSAID.items())
    if unsaid := ", ".join(f"{n:,} {name}" for n, name in more if n):
        print(unsaid)
    for name, count in left_out.items():
        print(f"left out: {count:,} {name}")
    for name, count in causes.items():
        print(f"with errors: {count:,} {name}")
    if advice is not None:
        print(f"{done.never_ends:,} of the errors: the assignor never ends, so the leader hangs;")
        print(f"a way out: {advice}")
    if switch is None and args.word in ("plan", "compare"):
        for line in _LEADERS.format(word=args.word).splitlines():
            print(line)
    print(f"written to {args.output}")


def _summary(fleet: "OnSpark | Here", done: "Done") -> str:
    """Returns a sentence: the number of groups with an answer, their total figures, the errors."""
    args, counts, end = fleet.args, done.counts, "."
    emptied = counts.get("without_members", 0)
    answered = done.groups - done.errors - counts.get("not_affected", 0) - emptied
    groups = counted(answered, "group")
    if args.word == "assign":
        text = f"{groups} {'is' if answered == 1 else 'are'} assigned"
        if later := counts.get("in_round_2"):
            text += f", {counts['only_round_1']:,} of them only round 1 of 2 "
            text += f"({counted(later, 'partition')} without an owner until the next)"
        elif some := counts.get("perhaps_round_1"):
            text += f", {some:,} of them by cooperative-sticky, perhaps only round 1 of 2"
    elif args.word == "compare":
        other = counts["another_recommended"]
        text = f"{other:,} of {groups} would do better with another assignor"
        if other:
            for name in RECOMMENDABLE:
                if n := counts[f"recommended {name}"]:
                    text += f", {'all' if n == other > 1 else f'{n:,}'} with {name}"
            why = {_BETTER[name]: counts[name] for name in BETTER}
            why["for other reasons"] = other - sum(why.values())
            text += f" ({', '.join(f'{n:,} {one}' for one, n in why.items() if n)})"
            text += f": {_first(fleet, 'better', other)}"
            end = ". The price of a switch: `compare --group`."
    else:
        what = in_words(args.changes)
        moving = counts["with_moves"]
        where = groups if moving == answered else f"{moving:,} of {groups}"
        text = f"{what[0].upper()}{what[1:]}: {counted(counts['moves'], 'move')} in {where}"
        if any(isinstance(one, SwitchAssignor) and "/" not in one.assignor for one in args.changes):
            text += ", in the first of two bounces (Java; `compare` has the whole)"
        text += f"; {without_reader(counts['without_a_reader'], counts['with_unavailable'])}"
        if uneven := counts["uneven"]:
            text += f"; {counted(uneven, 'group')} less even than possible afterwards"
            text += f" ({_first(fleet, 'uneven', uneven)})"
    if emptied:
        text += f"; {counted(emptied, 'group')} {'has' if emptied == 1 else 'have'} no member left"
    if loses_rack(map(str, getattr(args, "changes", ()))):
        text += rackless(fleet.racks().get("", 0))
    if done.errors:
        one = fleet.most_frequent_error()
        many = f"{done.errors:,} have errors, most often ({one['groups']:,})"
        text += f"; {'1 has an error' if done.errors == 1 else many}: {cut(one['error'], 200)}"
    return f"{text}{end}"


def _first(fleet: "OnSpark | Here", figure: str, groups: int) -> str:
    return first_of([group_name(row) for row in fleet.worst(figure, _NAMED)], groups)


def _advice(fleet: "OnSpark | Here") -> str:
    """Writes a file of groups whose assignor never ends; returns a command for the first group."""
    args, endless = fleet.args, fleet.worst("never ends", _EXAMPLES)
    wanted = [(row.get("cluster"), row["group_id"]) for row in endless]
    lines = fleet.contract_lines(wanted)
    place = Path(tempfile.mkdtemp(prefix="kafka-rebalance-")) / "never-end.jsonl"
    place.write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
    return command(args, place, wanted[0][1], args.changes if args.word != "assign" else [])
