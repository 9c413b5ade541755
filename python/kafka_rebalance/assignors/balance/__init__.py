# SPDX-License-Identifier: Apache-2.0
"""This project's own assignors, which find the best assignment instead of Kafka's answer."""
