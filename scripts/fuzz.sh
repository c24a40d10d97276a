#!/usr/bin/env bash
# Looks for inputs that break a decoder: tests/fuzz/NAME.cpp says what must hold.
#   ./dev fuzz                          lists the names
#   ./dev fuzz NAME [--seconds N]       60 unless told otherwise
#   ./dev fuzz --all [--seconds N]      one after the other
#   ./dev fuzz NAME --minimise          merges what was found into the kept corpus, smallest inputs only
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

names() { sed -n 's/^fuzz_target(\([a-z0-9_]*\).*/\1/p' tests/fuzz/CMakeLists.txt; }
fail() { echo "fuzz: $*" >&2; exit 1; }

seconds=60 chosen=() minimise=
while [ $# -gt 0 ]; do
    case $1 in
        --seconds) seconds=${2:?--seconds needs a number}; shift ;;
        --all) mapfile -t chosen < <(names) ;;
        --minimise) minimise=1 ;;
        *) names | grep -qx -- "$1" || fail "there is no target '$1'; \`./dev fuzz\` lists them"
           chosen+=("$1") ;;
    esac
    shift
done
if [ ${#chosen[@]} -eq 0 ]; then names; exit 0; fi

command -v clang++-16 >/dev/null && [ -e /usr/lib/llvm-16/lib/clang/16/lib/linux/libclang_rt.fuzzer-x86_64.a ] ||
    fail "only this needs Clang; as root: apt-get install clang-16 libclang-rt-16-dev"

build=build/fuzz
mkdir -p $build
[ -f $build/build.ninja ] || cmake --preset fuzz >$build/configure.log 2>&1 || { cat $build/configure.log >&2; exit 1; }
cmake --build $build -j "${GRUCA_BUILD_JOBS:-$(nproc)}" --target "${chosen[@]/#/fuzz_}" -- --quiet

# An input may take 10 s and 512 MiB at most, one allocation 256 MiB.
limits=(-timeout=10 -rss_limit_mb=512 -malloc_limit_mb=256 -max_len=65536 -print_final_stats=0 -verbosity=0)
for name in "${chosen[@]}"; do
    program=$build/tests/fuzz/fuzz_$name kept=tests/fuzz/corpus/$name
    found=$build/found/$name crashes=$build/crashes/$name
    mkdir -p "$found" "$crashes" "$kept"
    if [ -n "$minimise" ]; then
        merged=$(mktemp -d)
        "$program" "${limits[@]}" -max_len=2048 -merge=1 "$merged" "$kept" "$found" 2>/dev/null
        rm -rf "$kept"; mv "$merged" "$kept"; chmod 755 "$kept"
        echo "fuzz: $name keeps $(find "$kept" -type f | wc -l) inputs, $(du -sb "$kept" | cut -f1) bytes"
        continue
    fi
    echo "fuzz: $name, $seconds s"
    if ! "$program" "${limits[@]}" -max_total_time="$seconds" -artifact_prefix="$crashes/" "$found" "$kept" >"$build/$name.log" 2>&1; then
        tail -n 40 "$build/$name.log" >&2
        crash=$(find "$crashes" -type f -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
        fail "$name fails on $crash
      again: $program $crash
      keep:  cp $crash $kept/   (every test run replays what is there)"
    fi
done
