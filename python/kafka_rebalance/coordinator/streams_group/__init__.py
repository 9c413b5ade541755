# SPDX-License-Identifier: Apache-2.0
"""Streams groups: broker-assigned groups whose members run an application's tasks (KIP-1071)."""
