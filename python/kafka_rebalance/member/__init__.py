# SPDX-License-Identifier: Apache-2.0
"""The client's side of groups, without I/O: consumers of both protocols, Connect workers."""
