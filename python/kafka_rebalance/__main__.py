# SPDX-License-Identifier: Apache-2.0
"""`python -m kafka_rebalance`: runs the command."""

import sys

from kafka_rebalance.cli import main

sys.exit(main())
