# SPDX-License-Identifier: Apache-2.0
"""Kafka Connect's assignors, which decide which worker runs which connectors and tasks."""
