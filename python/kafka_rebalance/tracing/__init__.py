# SPDX-License-Identifier: Apache-2.0
"""Runs as text, in one language for coordinator, member and simulator."""
