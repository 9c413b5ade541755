"""Plans to look at."""
