# SPDX-License-Identifier: Apache-2.0
"""Groups whose broker assigns: the parts that consumer, share and streams groups have in common.

group              epochs, members and targets; static members
heartbeat          the fields of a request
members, refused   who may send a request, and the error of one that is refused
replay             records that fit no group; tombstones
log                appends, and what happens if one fails
timeouts           sessions, and the deadline for a revocation
offsets, describe  commits and fetches by epoch; what administrators see
"""
