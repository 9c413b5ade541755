# SPDX-License-Identifier: Apache-2.0
"""Share groups: groups whose broker assigns, and whose members share partitions (KIP-932).

member, group, share_state       the state of a group
replay, records                  the records that change it
heartbeat, members, leaving      the member's request, and who may send it
target, reconciliation           what the broker assigns, and the step to it
initialization                   the share state of new partitions, and of deleted topics
describe, deletion               what administrators see; the first step of a deletion

The log and other parts that all kinds of such groups have are in `broker_assigned/`. The orders of
hash tables, and the targets as an assignor reads them, are those of `consumer_group/`.
"""
