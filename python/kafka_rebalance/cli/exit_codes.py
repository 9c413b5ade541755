# SPDX-License-Identifier: Apache-2.0
"""Exit codes of the command."""

DONE = 0
"""Groups have answers, others are not affected or left out; or the input is empty."""
FAILED = 1
"""Any failure that has no other code."""
USAGE = 2
"""An option, a file name or a change is wrong."""
SOME_ERRORS = 3
"""Some groups or scripts had errors, no group has an answer or the member of `--leader`, or `watch`
predicted wrongly or judged nothing."""
INTERRUPTED = 130


def of_errors(errors: int) -> int:
    """Returns SOME_ERRORS if there were any errors, else DONE."""
    return SOME_ERRORS if errors else DONE
