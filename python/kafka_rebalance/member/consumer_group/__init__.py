# SPDX-License-Identifier: Apache-2.0
"""The client's side of consumer groups whose broker assigns (KIP-848), without I/O."""
