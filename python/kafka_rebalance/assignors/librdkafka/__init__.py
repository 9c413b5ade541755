# SPDX-License-Identifier: Apache-2.0
"""librdkafka's assignors in Python, a reference for the core (docs/behaviour/librdkafka.md)."""
