# SPDX-License-Identifier: Apache-2.0
"""Share groups: groups whose broker assigns, and whose members share partitions (KIP-932)."""
