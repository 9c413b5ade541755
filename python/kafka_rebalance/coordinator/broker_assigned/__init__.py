# SPDX-License-Identifier: Apache-2.0
"""The parts that all broker-assigned groups (consumer, share, streams) have in common."""
