# SPDX-License-Identifier: Apache-2.0
"""Consumer groups: groups whose broker assigns the partitions (KIP-848).

member, group, replay, records   the state of a group, and the records that change it
subscription_counts              how many members name a topic, a pattern, an assignor
heartbeat, members, leaving      the member's request, and who may send it
epochs, target, patterns         when the group gets a new epoch, and what it assigns then
reconciliation, timeouts         how members get there
classic_members, migration       members that use the classic protocol; the way there and back
offsets, describe                commits and fetches by epoch; what administrators see

The parts that share groups and streams groups have too are in `broker_assigned/`.
"""
