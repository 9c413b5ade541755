# SPDX-License-Identifier: Apache-2.0
"""A broker for tests of consumers: the group coordinator behind a TCP port.

It is for tests and studies, and cannot replace a real broker: it is one process, and holds all
records in memory, even if it also writes them to files. kio (the extra `serve`) encodes and decodes
requests and responses.

    server, connections, frames     one coordinator behind a port; limits; requests as bytes
    faults                          rules for faulty answers
    cluster, topics, transactions   requests about brokers, topics and producers
    records, partition_log, batches   requests about records; one partition; batches as bytes
    groups, history, record_log     requests about groups; their generations; the logs on disk
    share, share_offsets, configs, topic_configs    share groups' records and offsets; settings

The probe uses parts of the server to let a real client lead made-up groups:

    probed_client, probe_cases      the server for the client and its process; the made-up groups
    probe_workers                   the consumers that the probe starts
"""
