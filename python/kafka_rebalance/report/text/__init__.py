"""Text that reports share: tables, names, progress; and their page."""
