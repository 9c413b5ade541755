# SPDX-License-Identifier: Apache-2.0
"""The report of a fleet: many groups in one Spark job."""
