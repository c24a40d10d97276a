#!/usr/bin/env bash
# Compares the product and the golden files with PyTorch, transformers and tokenizers, live, in the
# versions that tests/oracle/requirements.txt names. 5.7 GB of disk on first use.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

stamp=.oracle-venv/requirements.sha256
want=$(sha256sum <tests/oracle/requirements.txt)
if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
    free_kb=$(df --output=avail . | tail -n 1)
    if [ "$free_kb" -lt 7000000 ]; then
        echo "oracle: PyTorch needs about 6 GB of disk, and $((free_kb / 1000)) MB are free here" >&2
        exit 1
    fi
    echo "oracle: installing PyTorch and transformers into .oracle-venv (5.7 GB, some minutes)"
    rm -rf .oracle-venv
    /usr/bin/python3 -m venv .oracle-venv
    if ! .oracle-venv/bin/pip install -q --disable-pip-version-check --no-cache-dir -r tests/oracle/requirements.txt; then
        rm -rf .oracle-venv
        echo "oracle: pip could not install tests/oracle/requirements.txt" >&2
        exit 1
    fi
    echo "$want" >"$stamp"
fi
exec tests/oracle/run.sh "$@"
