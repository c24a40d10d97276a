#!/usr/bin/env bash
# Runs the fast tests of a sanitizer's build. Any report fails the test that made it.
#   scripts/sanitize.sh asan|tsan
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

preset=${1:?which preset: asan or tsan}
export ASAN_OPTIONS=detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
# Debian's OpenMP runtime is not instrumented, and its barriers look like races: one thread has none.
if [ "$preset" = tsan ]; then export OMP_NUM_THREADS=1 TSAN_OPTIONS=second_deadlock_stack=1; fi
exec ctest --test-dir "build/$preset" --output-on-failure --timeout 600 -j 2 -L '^fast$'
