# SPDX-License-Identifier: Apache-2.0
"""The assignors of librdkafka (confluent-kafka and others) in plain Python, written to be read.

Docs     docs/behaviour/librdkafka.md
"""
