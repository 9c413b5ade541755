# SPDX-License-Identifier: Apache-2.0
"""Points from the bounce of a switch to the command that shows the whole switch."""

from kafka_rebalance.assignors.registry import SERVER_SIDE
from kafka_rebalance.plans import RebalancePlan
from kafka_rebalance.plans.changes import SwitchAssignor
from kafka_rebalance.report.text.names import shell_option

from .plan import print_wrapped


def print_whole_switch(plan: RebalancePlan, given: str) -> None:
    """Prints the note below the plan of a switch that all clients of the group can make.

    `given` is the part of the command line that selects input and group. It is empty if `compare`
    has no such switch.
    """
    switch = next((one for one in plan.changes if isinstance(one, SwitchAssignor)), None)
    if switch is None:
        return
    new = switch.assignor
    if new in SERVER_SIDE:
        text = f"{switch} is planned as the rebalance in which {new} takes over."
    else:
        text = f"{switch} is planned as a bounce: each member restarts once, and then lists {new}."
    if not given:
        print_wrapped(text)
        return
    parts = "the setting, restarts, group epochs and moves"
    if new not in SERVER_SIDE:
        parts = "settings, restarts, and the rebalances and moves of each bounce"
    print_wrapped(f"{text} This command has the whole switch ({parts}):")
    print(compare_command(given, new))


def compare_command(given: str, new: str) -> str:
    """Returns the indented command that prints the switch to `new`, to be copied."""
    return f"  kafka-rebalance compare {given} {shell_option('--assignors', new)}"
