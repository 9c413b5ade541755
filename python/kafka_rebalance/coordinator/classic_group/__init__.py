# SPDX-License-Identifier: Apache-2.0
"""Classic groups: one member assigns, and the broker passes the assignment on."""
