"""Where groups come from: a live cluster as contract lines.

Nothing here imports a Kafka client before `snapshot` runs.
"""

from kafka_rebalance.sources.live import ClusterError, snapshot

__all__ = ["ClusterError", "snapshot"]
