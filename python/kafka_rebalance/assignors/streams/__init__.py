# SPDX-License-Identifier: Apache-2.0
"""The assignors of Kafka Streams, in readable Python.

`sticky` runs in brokers, for streams groups (KIP-1071). All others run in the leader of a classic
group with the protocol `stream`: `leader` calls them, and `engines` runs `leader` or its twin.

Docs     docs/behaviour/server-side.md, docs/streams-classic.md
"""
