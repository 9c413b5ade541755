# SPDX-License-Identifier: Apache-2.0
"""Text that all reports share: tables, names, progress bars, the frame of HTML pages."""
