"""A group, what it may be, and how it is written: groups, assignments, differences, field paths."""
