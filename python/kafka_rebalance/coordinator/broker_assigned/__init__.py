# SPDX-License-Identifier: Apache-2.0
"""Groups whose broker assigns: the parts that consumer, share and streams groups have in common.

kind                  replay, leaving, deadlines, descriptions; a kind is a subclass
group, records        epochs, members and targets; static members; the types of records
members               who may send a request, and the error of one that is refused
log                   appends, and what happens if one fails
timeouts              sessions, and the deadline for a revocation
offsets               commits and fetches by epoch
target, table_order   targets of partitions; the orders of Kafka's tables
"""
