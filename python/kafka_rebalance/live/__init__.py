# SPDX-License-Identifier: Apache-2.0
"""Where groups come from: a live cluster as contract lines.

Nothing here imports a Kafka client before `snapshot` runs.
"""

from .consumer_groups import ClusterError, snapshot

__all__ = ["ClusterError", "snapshot"]
