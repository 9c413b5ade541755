# SPDX-License-Identifier: Apache-2.0
"""The parts that all groups whose broker assigns (consumer, share, streams) have in common."""
