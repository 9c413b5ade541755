# SPDX-License-Identifier: Apache-2.0
"""A broker for tests of consumers: the group coordinator behind a TCP port, without records.

It serves tests and studies, and replaces no broker: topics have no records. kio (the extra `serve`)
encodes and decodes all bytes.

    apis          the requests that are answered, with their versions
    frames        requests and responses as bytes
    array_counts  what kio does not check in a request
    connections   the port, and the bounds of what clients may send
    cluster       brokers, topics, empty partitions
    topic_bounds  names and numbers of partitions that are refused
    topics        requests that make, grow and delete topics
    groups        requests of groups as events of the coordinator
    transactions  producers' transactions, as far as they commit offsets
    record_log    the groups' log on disk
    history       the generations of each group
    server        clock, log and answers around one coordinator

The probe of leaders stands on it:

    probe          a real client leads made-up groups
    probe_cases    these groups, as topics and the members' bytes
    probe_workers  the clients that the probe starts
    probed_client  the client's process
"""
