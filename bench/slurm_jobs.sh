#!/usr/bin/env bash
# Prints "slurm VERSION JOBS_PER_S": how many trivial jobs a second Slurm takes from sbatch to their
# end, on a cluster of its own: one node with eight slots, no prolog, no accounting database, no
# namespaces, signatures of nobody.
#   bench/slurm_jobs.sh JOBS      needs Debian's slurm-wlm, and root
set -euo pipefail

# Slurm looks up addresses to listen on only where some interface but lo has one.
if [ -z "${GRUCA_SLURM_NET:-}" ]; then
    GRUCA_SLURM_NET=1 exec unshare --net -- sh -c 'ip link set lo up && ip link add d0 type bridge &&
        ip address add 192.0.2.1/32 dev d0 && ip link set d0 up && exec "$@"' sh "$0" "$@"
fi

jobs=${1:?how many jobs}
command -v sbatch slurmctld slurmd >/dev/null || { echo "Debian's slurm-wlm is not installed"; exit 1; }
patience_s=60
dir=$(mktemp -d)
mkdir -p "$dir/state" "$dir/spool" "$dir/out"
export SLURM_CONF=$dir/slurm.conf
cat >"$SLURM_CONF" <<CONF
ClusterName=bench
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=16817
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=17001 CPUs=8 State=UNKNOWN
PartitionName=main Nodes=n1 Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF

slurmctld -D -c -f "$SLURM_CONF" >/dev/null 2>&1 &
controller=$!
slurmd -D -N n1 -f "$SLURM_CONF" >/dev/null 2>&1 &
node=$!
finish() {
    kill "$node" "$controller" 2>/dev/null || true
    wait "$node" "$controller" 2>/dev/null || true
    rm -rf "$dir"
}
trap finish EXIT

fail() { echo "slurm_jobs: $*" >&2; tail -n 5 "$dir"/slurm*.log >&2; exit 1; }

started=$SECONDS
until [ "$(sinfo -h -o %t 2>/dev/null)" = idle ]; do
    [ $((SECONDS - started)) -lt "$patience_s" ] || fail "the node is not idle after $patience_s s"
    sleep 0.1
done

begin=$(date +%s%N)
for _ in $(seq "$jobs"); do
    sbatch -Q -n 1 -o /dev/null --wrap /bin/true
done
started=$SECONDS
while [ -n "$(squeue -h -t PD,R,CG -o %i)" ]; do
    [ $((SECONDS - started)) -lt "$patience_s" ] || fail "jobs are still there after $patience_s s"
    sleep 0.02
done
end=$(date +%s%N)
version=$(sbatch --version)
awk -v version="${version##* }" -v n="$jobs" -v ns=$((end - begin)) \
    'BEGIN { printf "slurm %s %.2f\n", version, n * 1e9 / ns }'
