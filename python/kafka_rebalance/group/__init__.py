# SPDX-License-Identifier: Apache-2.0
"""Groups, their assignments and the differences of assignments; groups as JSON lines."""
