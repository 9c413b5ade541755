"""Every order that comes from Java's collections."""
