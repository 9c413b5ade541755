# SPDX-License-Identifier: Apache-2.0

from kafka_rebalance.assignors.connect.work import Task as Task
from kafka_rebalance.assignors.connect.work import Work as Work

from .broker_assigned import AssignedByBroker as AssignedByBroker
from .broker_assigned import StreamsGroupWithLag as StreamsGroupWithLag
from .connect_workers import ConnectGroup as ConnectGroup
from .connect_workers import ConnectWorker as ConnectWorker
from .description import Description as Description
from .description import describe as describe
