# SPDX-License-Identifier: Apache-2.0
"""Reports on the present state of groups, for `describe` and `triage`."""
