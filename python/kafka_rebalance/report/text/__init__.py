# SPDX-License-Identifier: Apache-2.0
"""What all reports share: tables, names, colours, progress bars, the frame of HTML pages."""
