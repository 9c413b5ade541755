# SPDX-License-Identifier: Apache-2.0
"""Reports on the present state of groups, and on plans of Kafka Streams applications."""
