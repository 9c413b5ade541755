# SPDX-License-Identifier: Apache-2.0
"""Groups as they are, for `describe` and `triage`."""
