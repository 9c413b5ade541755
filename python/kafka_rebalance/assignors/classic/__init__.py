# SPDX-License-Identifier: Apache-2.0
"""Kafka's classic client-side assignors in plain Python, written to be read."""
