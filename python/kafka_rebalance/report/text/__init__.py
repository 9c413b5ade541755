# SPDX-License-Identifier: Apache-2.0
"""Text parts of all reports: tables, names, colours, progress bars, the frame of HTML pages."""
