# SPDX-License-Identifier: Apache-2.0
"""Plans of classic Kafka Streams applications, judged by real ones."""
