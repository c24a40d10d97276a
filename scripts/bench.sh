#!/usr/bin/env bash
# ./dev bench NAME [--json]
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

# The programs that figures are held against: .bench-venv, made once.
peers() {
    [ bench/requirements.txt -nt .bench-venv/made ] || return 0
    python3 -m venv .bench-venv && .bench-venv/bin/pip install -q -r bench/requirements.txt &&
        touch .bench-venv/made || echo "bench: without peers, they cannot be installed" >&2
}

case ${1:-} in
    skeleton) shift; exec tests/e2e/in_lo.sh .venv/bin/python bench/skeleton.py "$@" ;;
    service)
        shift
        peers  # Before the network is gone.
        tests/e2e/in_lo.sh build/release/bench/service_bench "$@"
        case " $* " in
            *" --only "*) ;;
            *) exec tests/e2e/in_lo.sh .venv/bin/python bench/log_bench.py ;;
        esac
        ;;
    ops) shift; exec build/release/bench/ops_bench "$@" ;;
    product) shift; exec build/release/bench/product_bench "$@" ;;
    *)
        echo "Usage: ./dev bench NAME [--json]"
        echo
        echo "  skeleton   how long a job takes to its first line, a describe, the demo's tokens a second,"
        echo "             a clean build, the tests"
        echo "  service    the service as a client sees it (--only NAME...)"
        echo "  ops        the operations of one training step (--width, --layers, --time, --batch, --words)"
        echo "  product    our matrix products beside oneDNN's"
        [ $# -eq 0 ] || exit 2
        ;;
esac
