# SPDX-License-Identifier: Apache-2.0
"""Consumer groups: groups whose broker assigns the partitions (KIP-848)."""
