"""Many groups at once: JSON lines, Arrow record batches."""
