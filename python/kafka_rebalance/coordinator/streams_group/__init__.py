# SPDX-License-Identifier: Apache-2.0
"""Streams groups: groups whose broker assigns the tasks of an application (KIP-1071)."""
