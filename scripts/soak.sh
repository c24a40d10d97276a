#!/usr/bin/env bash
# ./dev soak NAME [--points N | --each N] [--kind K] [--seed S] [--first N] [--json] [--record]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
series=tests/soak/${1:-}.py
if [ $# -eq 0 ] || [ "$1" = soak ] || [ ! -f "$series" ]; then
    echo "Usage: ./dev soak NAME [--points N] [--seed S] [--first N] [--json] [--record]"
    echo "Series with kinds also take --each N and --kind K; ./dev soak NAME --help names them."
    echo
    for file in tests/soak/*.py; do
        name=$(basename "$file" .py)
        [ "$name" = soak ] || printf '  %-10s %s\n' "$name" "$(sed -n '1s/^"""\([^"]*\).*/\1/p' "$file")"
    done
    [ "${1:-help}" = help ] || exit 2
    exit 0
fi
shift
export PYTHONPATH=tests/soak:tests/e2e PYTHONDONTWRITEBYTECODE=1
exec tests/e2e/in_lo.sh .venv/bin/python "$series" "$@"
