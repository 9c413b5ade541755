# SPDX-License-Identifier: Apache-2.0
"""The client's side of broker-assigned consumer groups (KIP-848), without I/O."""
