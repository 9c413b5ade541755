"""Runs as text: one language for coordinator, member and simulator."""
