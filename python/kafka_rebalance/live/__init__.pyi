# SPDX-License-Identifier: Apache-2.0

from kafka_rebalance.errors import ClusterError as ClusterError

from .broker_groups import group_sessions as group_sessions
from .client_properties import client_configs as client_configs
from .client_properties import read_properties as read_properties
from .committed_offsets import group_lags as group_lags
from .consumer_groups import Listed as Listed
from .consumer_groups import Progress as Progress
from .consumer_groups import snapshot as snapshot
from .consumer_groups import snapshot_lines as snapshot_lines
from .offsets_log import NoLogError as NoLogError
from .offsets_log import NoTopicError as NoTopicError
from .offsets_log import group_leaders as group_leaders
from .offsets_log import offsets_records as offsets_records
from .other_groups import connect_groups as connect_groups
from .other_groups import other_group as other_group
