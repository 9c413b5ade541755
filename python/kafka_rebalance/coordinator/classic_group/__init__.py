# SPDX-License-Identifier: Apache-2.0
"""Classic groups: one member assigns, and the broker passes the assignment on.

group, members, records                    the state of a group, its log
join_group, sync_group, heartbeat, leave_group   the requests of members
member_checks                              who may send a request
rebalance, describe                        the phases of a rebalance; what administrators see
"""
