# SPDX-License-Identifier: Apache-2.0
"""The report of a fleet of groups."""
