# SPDX-License-Identifier: Apache-2.0
"""Runs the Python libraries' own tests of groups against `serve`; see `__main__`."""
