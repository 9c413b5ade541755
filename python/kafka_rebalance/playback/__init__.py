# SPDX-License-Identifier: Apache-2.0
"""Runs of a coordinator or a member as text, and commands for a coordinator as text or JSON."""
