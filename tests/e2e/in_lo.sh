#!/bin/sh
# Runs a command in a network namespace that holds only lo, so that nothing can reach beyond this
# machine, whatever a client makes of its configuration. Needs root (or user namespaces).
exec unshare --net -- sh -c 'ip link set lo up && exec "$@"' in_lo "$@"
