"""Kafka's classic client-side assignors, to be read."""
