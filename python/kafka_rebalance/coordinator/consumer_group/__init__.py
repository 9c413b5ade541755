# SPDX-License-Identifier: Apache-2.0
"""Consumer groups: groups whose broker assigns the partitions (KIP-848).

kind                          what is special in them: replay, leaving, offsets, descriptions
member, group                 the state of a group, and its records
heartbeat                     the member's request
target, patterns              when the group gets a new epoch, and what it assigns then
reconciliation                how members get there
classic_members, migration    members that use the classic protocol; the way there and back
"""
