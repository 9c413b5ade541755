# SPDX-License-Identifier: Apache-2.0
"""What happened in groups, and why: rebalances read from the records of `__consumer_offsets`."""
