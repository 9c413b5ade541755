# SPDX-License-Identifier: Apache-2.0
"""The command `kafka-rebalance`: data goes to standard output, other text to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import kafka_rebalance
from kafka_rebalance.errors import GroupError, KafkaRebalanceError
from kafka_rebalance.report.text.terminal import shown_streams

PROG = "kafka-rebalance"

# Exit codes.
DONE = 0
"""At least one group has an answer and none has an error; or the input is empty."""
FAILED = 1
"""Any failure that has no other code."""
USAGE = 2
"""An option, a file name or a change is wrong."""
SOME_ERRORS = 3
"""Some groups or scripts had errors, no group has an answer or the member of `--leader`, or `watch`
predicted wrongly or judged nothing."""
FINDINGS_FAIL = 4
"""`check` found a problem that fails it, or `rollout --gate` a group that is not as planned."""
INTERRUPTED = 130


def of_errors(errors: int) -> int:
    """Returns SOME_ERRORS if there were any errors, else DONE."""
    return SOME_ERRORS if errors else DONE


COMMANDS = {
    "demo": "assign 20,000 sample groups on Spark",
    "snapshot": "read the groups of a live cluster",
    "describe": "show who owns what in a group, and what is wrong with it",
    "check": "fail a pipeline if groups, or a change of them, have problems",
    "history": "show past rebalances with their causes, from __consumer_offsets",
    "explain": "explain why a partition goes to its owner",
    "plan": "predict changes: moves, pauses and balance, round by round",
    "scale": "show which numbers of members help, and what each step costs",
    "rollout": "predict a deploy on Kubernetes, and what makes it cheaper",
    "compare": "predict changes with every assignor, and recommend one",
    "watch": "follow a live group: was each rebalance as predicted?",
    "exporter": "serve metrics of all groups, for Prometheus",
    "simulate": "simulate a rebalance in seconds: who stops, and for how long",
    "connect": "predict the rebalances of a Kafka Connect cluster",
    "assign": "compute which member owns which partitions",
    "fleet": "assign many groups on Spark",
    "coordinator": "step through a group coordinator in virtual time",
    "serve": "run a coordinator behind a port, for tests of consumers",
    "probe": "let a real client lead invented groups, and read its answers",
    "mcp": "answer an agent's questions over the Model Context Protocol",
    "completion": "complete commands and options in a shell",
}
"""Each command with its line in the help; the module of that name has the command's options.

The order is that in which a new user needs the commands.
"""

_LIVE = "--bootstrap-server broker:9092"
EXAMPLES = {
    "demo": ["demo"],
    "snapshot": [
        f"snapshot {_LIVE} > groups.jsonl",
        "snapshot --bootstrap-server broker:9093 --command-config client.properties",
    ],
    "describe": [f"describe {_LIVE} --group payments", "describe groups.jsonl"],
    "check": [
        "check groups.jsonl --fail-on warning --max-spread 2",
        "check groups.jsonl --group payments --add-members 2 --format github",
        f"check {_LIVE} --baseline known.json",
    ],
    "history": [
        "history records.jsonl.gz --broker-log server.log",
        "history records.parquet --group payments --what-if",
        "history records.jsonl.gz --output history.html",
    ],
    "explain": ["explain payments-3 groups.jsonl --group payments --add-members 1"],
    "plan": [
        "plan groups.jsonl --group payments --add-members 2",
        "plan groups.jsonl --partitions payments=24",
        f"plan {_LIVE} --group payments --bounce-members --output plan.html",
    ],
    "scale": [
        "scale groups.jsonl --group payments --members 8..20",
        f"scale {_LIVE} --group payments --rate payments=1200 --capacity 100",
    ],
    "rollout": [
        "rollout deployment.yaml groups.jsonl --group payments",
        f"rollout deployment.yaml {_LIVE} --group payments --setting on_sigterm=dies",
        f"rollout deployment.yaml {_LIVE} --group payments --gate --for 120",
    ],
    "compare": [f"compare {_LIVE} --group payments --add-members 1"],
    "watch": [f"watch {_LIVE} --group payments --add-members 1 --rebalances 1"],
    "exporter": [f"exporter {_LIVE}", f"exporter {_LIVE} --group 'orders-*' --port 0"],
    "simulate": [
        "simulate rolling-bounce --compare eager,cooperative,static",
        "simulate --from groups.jsonl --group payments --bounce-members --seeds 20",
    ],
    "connect": ['connect --url http://worker:8083 --then "worker host:8083 leaves" --then 300s'],
    "assign": ["assign groups.jsonl --assignor sticky > assigned.jsonl"],
    "fleet": ["fleet assign groups.jsonl assigned"],
    "coordinator": ["coordinator trace.txt"],
    "serve": ["serve --topic orders=6 --port 9092", "serve --topics-of groups.jsonl --port 0"],
    "probe": ["probe groups.jsonl --client confluent-kafka --assignor range"],
    "mcp": ["mcp groups.jsonl", f"mcp {_LIVE}"],
    "completion": ["completion bash"],
}
"""The examples in each command's help; a test parses them."""

_USAGE_ERRORS = (GroupError, FileNotFoundError, IsADirectoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    with shown_streams():
        return _main(sys.argv[1:] if arguments is None else arguments)


def _main(given: Sequence[str]) -> int:
    if [*given] == ["--version"]:  # of scripts: it needs no parser
        print(f"{PROG} {kafka_rebalance.__version__}")
        return DONE
    try:
        from .parser import parser

        args = parser(given).parse_args(given)
        return int(args.run(args))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe. Without this line, the flush at exit would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KafkaRebalanceError, OSError) as error:
        from kafka_rebalance.report.text.sentences import print_error

        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}"
        print_error(text)
        return USAGE if isinstance(error, _USAGE_ERRORS) else FAILED
