# SPDX-License-Identifier: Apache-2.0
"""The changes that the simulator can play, in a module that the command's help imports quickly."""

PLAYABLE = (
    "add-members", "remove-members", "remove-member", "remove-rack", "remove-client", "partitions",
    "add-topics", "remove-topics", "bounce-members",
)  # fmt: skip
"""The verbs of the changes that the simulator can play."""
