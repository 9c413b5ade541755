# SPDX-License-Identifier: Apache-2.0
"""Plans to look at."""
