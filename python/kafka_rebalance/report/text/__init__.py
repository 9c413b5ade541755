# SPDX-License-Identifier: Apache-2.0
"""The parts that all reports share: tables, names, colours, progress bars, frames of pages."""
