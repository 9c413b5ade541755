# SPDX-License-Identifier: Apache-2.0
"""Kafka's classic client-side assignors in Python: the reference for the compiled core."""
