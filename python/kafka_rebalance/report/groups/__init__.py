# SPDX-License-Identifier: Apache-2.0
"""What `describe` and `triage` show: groups as they are, and past causes in a fleet."""
