# SPDX-License-Identifier: Apache-2.0
"""Kafka's classic client-side assignors, as a readable reference."""
