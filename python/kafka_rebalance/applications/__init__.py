# SPDX-License-Identifier: Apache-2.0
"""Classic Kafka Streams applications, seen from outside: inferred, replayed and planned.

`lines` reads the application in a contract line, `topology` infers the rest, `replayed` checks both
against the present assignment, and `plan` predicts what threads send next, call by call.

Docs     docs/streams-classic.md
"""
