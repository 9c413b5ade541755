# SPDX-License-Identifier: Apache-2.0
"""Consumer groups: broker-assigned groups in which each partition has one owner (KIP-848)."""
