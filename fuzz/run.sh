#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target in turn, for FUZZ_SECONDS (default: 600) in all. The first crash ends the run.
set -euo pipefail
cd "$(dirname "$0")"
export RUSTC_BOOTSTRAP=1  # makes stable Rust accept nightly flags, for sanitizers and coverage

targets=(decode_subscription decode_assignment decode_user_data assign_line)
seconds=$((${FUZZ_SECONDS:-600} / ${#targets[@]}))
../.venv/bin/python seeds.py
for target in "${targets[@]}"; do
  echo "== $target, $seconds s" >&2
  # An input has at most 8 KiB. It may use 1 GiB of memory in all (with ASan's own share), 64 MiB in
  # one allocation, and 10 s.
  cargo fuzz run "$target" -- -max_total_time="$seconds" -max_len=8192 -dict=line.dict \
    -rss_limit_mb=1024 -malloc_limit_mb=64 -timeout=10 -print_final_stats=1
done
