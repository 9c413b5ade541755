# SPDX-License-Identifier: Apache-2.0
"""Explains why an assignor gave a partition to its owner, by the steps of that assignor."""
