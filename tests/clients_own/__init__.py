# SPDX-License-Identifier: Apache-2.0
"""Runs clients' own tests against `serve`; see `__main__`."""
