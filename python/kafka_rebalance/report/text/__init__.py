# SPDX-License-Identifier: Apache-2.0
"""Text that reports share: tables, names, colours, progress bars, the frame of HTML pages."""
