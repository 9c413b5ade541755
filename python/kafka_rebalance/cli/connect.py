# SPDX-License-Identifier: Apache-2.0
"""Predicts the rebalances of scripts, or of events on a live cluster. Shows for each which
connectors and tasks each worker starts and stops, and which run nowhere, until when, and why.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from kafka_rebalance.assignors.connect.work import Work
from kafka_rebalance.bulk.lines import error_line, group_id_of
from kafka_rebalance.connect.cluster import RoundAnswer
from kafka_rebalance.connect.cluster_changes import AS_IT_IS, play_events, workers_that_leave
from kafka_rebalance.connect.script import DEFAULT_MAX_DELAY_MS, Script, play, to_dict
from kafka_rebalance.connect.summary import summary
from kafka_rebalance.errors import GroupError
from kafka_rebalance.group import contract
from kafka_rebalance.group.field_paths import object_
from kafka_rebalance.live.connect_draws import vary
from kafka_rebalance.report.plans.connect import print_round, print_variation
from kafka_rebalance.report.text.sentences import in_words, print_note, print_wrapped

from . import DONE
from .groups import bad_line, report_bad
from .lines import finish, numbered, open_input, required
from .options import REPEATED, add_table, whole

_NO_LEADER = (
    'Assumed: {} did not lead. Of a leader ask "leader W leaves": the next one remembers nothing, '
    "so it gives the work away at once. `kafka-rebalance describe` shows the leader."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        'Events: "worker W leaves|returns|joins"; "leader W leaves" (REST does not '
        'show who leads, `describe` does); "connector C tasks=N|deleted"; "60s" (time passes). '
        "A script is one line of JSON (docs/connect.md has one)."
    )
    input = """
    file FILE: scripts, one per line; - for standard input
    --url: read a live cluster's REST interface, not FILE
    --command-config
    --timeout
    """
    add_table(parser, input, file={"nargs": "?"}, url={"type": None})
    options = f"""
    --then EVENT: with --url: the next event (repeatable, in order)
    --max-delay-ms N: with --url: scheduled.rebalance.max.delay.ms (default: {DEFAULT_MAX_DELAY_MS})
    --json: print one answer per line, as JSON
    --engine
    """
    add_table(parser, options, then=REPEATED, max_delay_ms=whole(0))


def run(args: argparse.Namespace) -> int:
    if (args.file is None) == (args.url is None):
        args.parser.error("give either FILE or --url")
    if args.url is None and (args.then or args.max_delay_ms is not None):
        args.parser.error("--then and --max-delay-ms need --url; a script contains its own")
    return _run_file(args) if args.url is None else _run_url(args)


def _run_file(args: argparse.Namespace) -> int:
    scripts = bad = 0
    with open_input(args.file) as source:
        for number, line in numbered(source):
            scripts += 1
            value: Any = None
            try:
                value = contract.parse(required(line))
                _show(value, args)
            except GroupError as error:
                bad += 1
                if args.json:
                    print(
                        error_line(group_id_of(value, "id"), error, number, key="id").line.decode()
                    )
                else:
                    report_bad(bad_line(value, error, number, "id"), as_json=False)
    return finish(args.file, scripts, bad, "script")


def _show(value: Any, args: argparse.Namespace) -> None:
    script = Script.from_dict(object_(value, "line"))
    answers = play(script, engine=args.engine)
    if args.json:
        line = {"summary": summary(answers), "rounds": [to_dict(one) for one in answers]}
        print(contract.dumps(line if script.id is None else {"id": script.id} | line), flush=True)
        return
    _print(script.id or "script", [("", answer) for answer in answers])


def _run_url(args: argparse.Namespace) -> int:
    from kafka_rebalance.live import read_properties
    from kafka_rebalance.live.connect_rest import read_cluster, without_password

    url = without_password(args.url)
    properties = read_properties(args.command_config)
    cluster = read_cluster(args.url, properties=properties, timeout_s=args.timeout)
    for note in cluster.get("notes", ()):
        print_note(note)
    running = {worker["id"]: Work.from_dict(worker) for worker in cluster["workers"]}
    delay_ms = DEFAULT_MAX_DELAY_MS if args.max_delay_ms is None else args.max_delay_ms
    rounds = list(
        play_events(
            running, cluster["config"], args.then, max_delay_ms=delay_ms, engine=args.engine
        )
    )
    if not args.json:
        _print(url, rounds)
    found = vary(running, cluster["config"], args.then, max_delay_ms=delay_ms, engine=args.engine)
    if args.json:
        answers = [{"cause": cause, **to_dict(answer)} for cause, answer in rounds]
        line = {"id": url, "summary": _summary(rounds), "rounds": answers}
        print(contract.dumps(line | {"varies": found.to_dict()}))
    else:
        print()
        print_variation(found)
        if left := workers_that_leave(args.then):
            print()
            print_wrapped(_NO_LEADER.format(in_words(left)))
    return DONE


def _summary(rounds: Sequence[tuple[str, RoundAnswer]]) -> str:
    return summary([one for _, one in rounds], sum(cause == AS_IT_IS for cause, _ in rounds))


def _print(title: str, rounds: Sequence[tuple[str, RoundAnswer]]) -> None:
    print_wrapped(f"{title}: {_summary(rounds)}")
    before: RoundAnswer | None = None
    start_ms = 0
    for number, (cause, answer) in enumerate(rounds, 1):
        start_ms = answer.round.time_ms if before is None else start_ms
        print()
        print_round(number, cause, answer, before, start_ms)
        sys.stdout.flush()
        before = answer
