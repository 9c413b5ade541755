#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzzes every target in turn, for FUZZ_SECONDS (default: 600) in all. The first crash ends the run.
set -euo pipefail
cd "$(dirname "$0")"
command -v cargo-fuzz >/dev/null || cargo install --locked --quiet cargo-fuzz
export RUSTC_BOOTSTRAP=1  # makes stable Rust accept nightly flags, for sanitizers and coverage

targets=(decode_subscription decode_assignment decode_user_data assign_line arrow_stream)
seconds=$((${FUZZ_SECONDS:-600} / ${#targets[@]}))
../.venv/bin/python seeds.py
for target in "${targets[@]}"; do
  echo "== $target, $seconds s" >&2
  # Limits: 8 KiB for an input, 1 GiB for the process (with ASan's own memory), 64 MiB for one
  # allocation, and 10 s for one input.
  cargo fuzz run "$target" -- -max_total_time="$seconds" -max_len=8192 -dict=line.dict \
    -rss_limit_mb=1024 -malloc_limit_mb=64 -timeout=10 -print_final_stats=1
done
