# SPDX-License-Identifier: Apache-2.0
"""The assignor that brokers run for share groups (KIP-932), in readable Python.

Docs     docs/behaviour/server-side.md
"""
