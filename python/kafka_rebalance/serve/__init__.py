# SPDX-License-Identifier: Apache-2.0
"""A broker for tests of consumers: the group coordinator behind a TCP port.

It is for tests and studies, and cannot replace a real broker: topics have no records. kio (the
extra `serve`) encodes and decodes requests and responses.

    apis          the requests that are answered, with their versions
    frames        requests and responses as bytes
    array_counts  checks the counts of arrays in a request, which kio does not check
    connections   the port, and the limits on connections and requests
    cluster       brokers, topics, empty partitions
    topic_bounds  the limits on topics' names and numbers of partitions
    topics        requests that make, grow and delete topics
    groups        requests about groups, for the coordinator
    transactions  transactions of producers that commit offsets
    record_log    the groups' log on disk
    history       the generations of each group
    server        clock, log and answers around one coordinator

The probe is a second server of this package, with parts of the first:
    probe          lets a real client lead made-up groups
    probe_cases    these groups, as topics and the members' bytes
    probe_workers  the clients that the probe starts
    probed_client  the client's process
"""
