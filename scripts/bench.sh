#!/usr/bin/env bash
# ./dev bench NAME [--json]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
case ${1:-} in
    skeleton) shift; exec tests/e2e/in_lo.sh .venv/bin/python bench/skeleton.py "$@" ;;
    *)
        echo "Usage: ./dev bench NAME [--json]"
        echo
        echo "  skeleton   how long a job takes to its first line, a describe, the demo's tokens a second,"
        echo "             a clean build, the tests"
        [ $# -eq 0 ] || exit 2
        ;;
esac
