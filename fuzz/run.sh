#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every decoder in turn, FUZZ_SECONDS (600) in all; the first crash ends it.
set -euo pipefail
cd "$(dirname "$0")"
export RUSTC_BOOTSTRAP=1  # sanitizers and coverage are nightly flags; stable has them all the same

targets=(decode_subscription decode_assignment decode_user_data assign_line)
seconds=$((${FUZZ_SECONDS:-600} / ${#targets[@]}))
../.venv/bin/python seeds.py
for target in "${targets[@]}"; do
  echo "== $target, $seconds s" >&2
  # Inputs of 8 KiB may take 1 GiB in all (ASan's own share included), 64 MiB at once, and 10 s.
  cargo fuzz run "$target" -- -max_total_time="$seconds" -max_len=8192 -dict=line.dict \
    -rss_limit_mb=1024 -malloc_limit_mb=64 -timeout=10 -print_final_stats=1
done
