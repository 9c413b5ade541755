# SPDX-License-Identifier: Apache-2.0
"""Plans, comparisons and Connect rounds as tables, pictures and pages."""
