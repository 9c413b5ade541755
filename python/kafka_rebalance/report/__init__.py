# SPDX-License-Identifier: Apache-2.0
"""Reports for people: tables, pictures and pages of plans, runs, fleets and histories."""
