# SPDX-License-Identifier: Apache-2.0
"""Share groups: broker-assigned groups whose members share partitions (KIP-932)."""
