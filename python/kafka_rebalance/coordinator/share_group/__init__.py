# SPDX-License-Identifier: Apache-2.0
"""Share groups: groups whose broker assigns, and whose members share partitions (KIP-932).

kind                what is special in them: replay, descriptions
group               the state of a group and its members, and its records
heartbeat, target   the member's request, and its step to the target
initialization      the share state of new partitions, and of deleted topics and groups
"""
