# SPDX-License-Identifier: Apache-2.0
"""A broker for tests of consumers: the group coordinator behind a TCP port, without records.

It serves tests and studies, and replaces no broker: topics have no records, and what is committed
is lost when the process ends. kio (the extra `serve`) encodes and decodes all bytes.

    frames    requests and responses as bytes
    apis      the requests that are answered, with their versions
    metadata  topics, brokers, empty partitions
    groups    requests of groups as events of the coordinator
    server    connections, clock and log around one coordinator
"""

from .metadata import ServedTopic as ServedTopic
from .server import Server as Server
