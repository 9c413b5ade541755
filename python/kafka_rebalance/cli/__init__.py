# SPDX-License-Identifier: Apache-2.0
"""The command `kafka-rebalance`: data goes to standard output, other text to standard error."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import warnings
from collections.abc import Sequence

import kafka_rebalance
from kafka_rebalance.errors import GroupError, KafkaRebalanceError
from kafka_rebalance.report.text.terminal import shown_streams

# Exit codes.
DONE = 0
"""At least one group has an answer and none has an error; or the input is empty."""
FAILED = 1
"""Any failure that has no code of its own."""
USAGE = 2
"""An option, a file name or a change is wrong."""
SOME_ERRORS = 3
"""Some groups or scripts had errors; or no group has an answer, or none contains the `--leader`;
or a prediction of `watch` was wrong, or `watch` judged nothing.
"""
FINDINGS_FAIL = 4
"""`check` found a problem that fails the check, or `rollout --gate` a group not as planned."""
INTERRUPTED = 130


def of_errors(errors: int) -> int:
    """Returns SOME_ERRORS if there were any errors, else DONE."""
    return SOME_ERRORS if errors else DONE


_USAGE_ERRORS = (GroupError, FileNotFoundError, IsADirectoryError)


def main(arguments: Sequence[str] | None = None) -> int:
    if arguments is None:
        # A command makes many objects, of which few refer to each other in a cycle. Python's search
        # for cycles after every 700 objects took a third of a simulation, and a twentieth of the
        # shortest command. Its last search, when the process ends, took a tenth of that command.
        gc.set_threshold(200_000, 20, 20)
        atexit.register(gc.freeze)
    with shown_streams(), warnings.catch_warnings():
        # The commands report misspelt fields themselves, with the number of the line.
        warnings.filterwarnings("ignore", ".*: not a field of the contract")
        return _main(sys.argv[1:] if arguments is None else arguments)


def _main(given: Sequence[str]) -> int:
    if [*given] == ["--version"]:  # scripts ask for the version, which needs no parser
        print(f"kafka-rebalance {kafka_rebalance.__version__}")
        return DONE
    try:
        from .parser import parser

        args = parser(given).parse_args(given)
        return int(args.run(args))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed the pipe. Without this line, the flush at exit would
        # fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KafkaRebalanceError, OSError) as error:
        from kafka_rebalance.report.text.sentences import print_error

        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}"
            if error.errno == errno.ENOENT and str(error.filename).endswith("sample.jsonl"):
                text += "; kafka-rebalance demo --sample > sample.jsonl writes it"
        print_error(text)
        return USAGE if isinstance(error, _USAGE_ERRORS) else FAILED
