# SPDX-License-Identifier: Apache-2.0
"""The assignors that brokers run for consumer groups (KIP-848), in readable Python.

Docs     docs/behaviour/server-side.md
"""
