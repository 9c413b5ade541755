# SPDX-License-Identifier: Apache-2.0
"""Groups whose broker assigns: the parts that consumer, share and streams groups have in common."""
