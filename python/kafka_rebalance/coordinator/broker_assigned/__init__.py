# SPDX-License-Identifier: Apache-2.0
"""Groups whose broker assigns: the parts that consumer, share and streams groups have in common.

kind                  who may send a request; leaving, deadlines, offsets, descriptions
group, records        epochs, members and targets; static members; records and their replay
members               the errors of requests that are refused; sessions and other deadlines
log                   appends, and what happens if one fails
target, table_order   targets of partitions; the orders of Kafka's tables
"""
