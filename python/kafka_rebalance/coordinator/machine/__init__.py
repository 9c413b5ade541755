# SPDX-License-Identifier: Apache-2.0
"""What holds for groups of every kind: the state, deadlines, appends, loading.

events             what the coordinator is told, and what it asks the host to do
state              the groups, and the actions that several steps need
appends            the result of an append; `continuations` has what follows it
loading            the replay of the log
deadlines          timers
cluster            the topics
"""
