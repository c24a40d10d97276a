#!/usr/bin/env bash
# Installs what is missing and says nothing when nothing is. Options: --packages-only (no Python).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

fail() { echo "setup: $*" >&2; exit 1; }

missing_packages() {
    local wanted
    wanted=$(sed 's/#.*//' packaging/debian-packages.txt | xargs)
    # shellcheck disable=SC2086
    comm -23 <(printf '%s\n' $wanted | sort) \
        <(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' $wanted 2>/dev/null | sed -n 's/^ii //p' | sort)
}

install_packages() {
    local missing log
    command -v dpkg-query >/dev/null || fail "this is not Debian; the packages wanted are in packaging/debian-packages.txt"
    missing=$(missing_packages | xargs)
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        fail "these Debian packages are missing, and only root can install them: $missing
       Run as root: ./dev setup --packages-only"
    fi
    echo "setup: installing $(wc -w <<<"$missing") Debian packages"
    log=$(mktemp)
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    if ! { apt-get update -q && apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        fail "apt-get failed (its last words are above). Offline? Install these by other means: $missing"
    fi
    rm -f "$log"
}

# Debian's own Python, so that another one in PATH does not decide what the tests see.
install_python() {
    local stamp=.venv/requirements.sha256 want log
    want=$(sha256sum <tests/requirements.txt)
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return 0
    echo "setup: installing the tests' Python packages into .venv"
    rm -rf .venv
    log=$(mktemp)
    if ! { /usr/bin/python3 -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check -r tests/requirements.txt; } >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        rm -rf .venv
        fail "pip failed (its last words are above). The tests with real clients need these packages: tests/requirements.txt"
    fi
    echo "$want" >"$stamp"
    rm -f "$log"
}

install_packages
[ "${1:-}" = --packages-only ] || install_python
