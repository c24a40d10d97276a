"""Programs that know nothing of gruca: shell scripts, daemons, and Open MPI over the remote shell of a job. The ones
that need PyTorch are in tests/oracle/strangers."""

import json
import subprocess

import pytest
from conftest import wait_until
from test_contract import artifact, channel


def completed(service, name, seconds=90):
    job = service.wait(name, seconds)
    assert job["TrainingJobStatus"] == "Completed", (job.get("FailureReason"), service.lines(name))
    return job


# What every node but the first does while mpirun runs there.
FIRST_RUNS = 'if [ "$SM_CURRENT_HOST" != algo-1 ]; then exec gruca-rsh algo-1; fi\n'


def test_a_shell_script_finds_what_a_sagemaker_image_gives_it(shared_service):
    shared_service.put("seven", "s3://in/shell/words.txt")
    script = """
    set -eu
    echo $SM_CURRENT_HOST of $SM_HOSTS; cat $SM_CHANNEL_WORDS/words.txt; echo
    echo rate $SM_HP_RATE in $SM_HPS
    echo weights > $SM_MODEL_DIR/weights; echo more > $SM_OUTPUT_DATA_DIR/more
    """
    shared_service.create("shell", script, HyperParameters={"rate": "0.5", "name": '"x"'}, InputDataConfig=[channel("words", "s3://in/shell/")])
    completed(shared_service, "shell")
    lines = shared_service.lines("shell")
    assert lines[:3] == ['algo-1 of ["algo-1"]', "seven", 'rate 0.5 in ' + lines[2].split(" in ")[1]]
    assert json.loads(lines[2].split(" in ")[1]) == {"rate": 0.5, "name": "x"}
    assert artifact(shared_service, "shell") == {"weights": "weights\n"}
    assert artifact(shared_service, "shell", "output") == {"more": "more\n"}


def test_a_script_that_fails_says_why_with_its_own_exit_code(shared_service):
    shared_service.create("shell-fails", 'echo "no such column: age" > $SM_OUTPUT_DIR/failure; exit 7')
    reason = shared_service.wait("shell-fails")["FailureReason"]
    assert reason.startswith("AlgorithmError: no such column: age") and reason.endswith("exit code: 7")


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0: os._exit(0)
    print("daemon runs", flush=True)
    open("/opt/ml/model/daemon", "w").write(str(os.getppid()))
    {then}
os.wait()
while not os.path.exists("/opt/ml/model/daemon"): time.sleep(0.05)
print("parent ends", flush=True)
{end}
"""


def test_a_daemon_outlives_its_parent_only_as_long_as_the_program(shared_service):
    program = shared_service.home / "daemon.py"
    program.write_text(DAEMON.format(then="time.sleep(54321)", end=""))
    shared_service.create("daemon", f"exec python3 {program}")
    completed(shared_service, "daemon")
    assert shared_service.lines("daemon") == ["daemon runs", "parent ends"]
    assert artifact(shared_service, "daemon")["daemon"] == "1"  # The keeper's child then.
    assert str(program) not in shared_service.run("ps", "-eo", "args").stdout


def test_what_a_daemon_prints_while_its_program_waits_is_in_the_log(shared_service):
    program = shared_service.home / "daemon-talks.py"
    program.write_text(DAEMON.format(then="print('daemon done', flush=True); open('/opt/ml/model/done', 'w').close(); os._exit(0)",
                                     end="while not os.path.exists('/opt/ml/model/done'): time.sleep(0.05)"))
    shared_service.create("daemon-talks", f"exec python3 {program}")
    completed(shared_service, "daemon-talks")
    assert "daemon done" in shared_service.lines("daemon-talks")


def test_a_command_runs_on_another_node_and_its_output_and_code_come_back(shared_service):
    script = FIRST_RUNS + """
    gruca-rsh algo-2 'hostname; echo $SM_CURRENT_HOST $MINE; echo aside >&2; exit 3' 2> /tmp/aside; echo code $?
    cat /tmp/aside
    gruca-rsh -x algo-2 echo two   words; gruca-rsh algo-2 'kill -9 $$'; echo code $?
    gruca-rsh algo-2 'head -c 3000000 /dev/zero' | wc -c
    gruca-rsh algo-2 'sleep 300 & echo left'; gruca-rsh algo-1 hostname
    gruca-rsh algo-9 true; echo code $?
    """
    shared_service.create("remote", script, instances=2, Environment={"MINE": "7"})
    completed(shared_service, "remote")
    lines = shared_service.lines("remote", "algo-1")
    assert lines[:9] == ["algo-2", "algo-2 7", "code 3", "aside", "two words", "code 137", "3000000", "left", "algo-1"]
    assert "algo-9" in lines[9] and lines[10] == "code 255"
    assert shared_service.lines("remote", "algo-2") == []


def test_a_command_ends_with_its_client_and_with_its_node(shared_service):
    script = FIRST_RUNS + """
    timeout 1 gruca-rsh algo-2 'echo $$ > /tmp/pid; exec sleep 300'
    i=0; while gruca-rsh algo-2 'kill -0 $(cat /tmp/pid) 2>/dev/null'; do i=$((i+1)); [ $i -gt 100 ] && exit 1; sleep 0.1; done
    gruca-rsh algo-2 'sleep 87654' &
    while ! gruca-rsh algo-2 'ps -eo args | grep -q "^[s]leep 87654"'; do sleep 0.1; done
    """
    shared_service.create("remote-ends", script, instances=2)
    completed(shared_service, "remote-ends")
    assert "sleep 87654" not in shared_service.run("ps", "-eo", "args").stdout


def test_nobody_without_the_jobs_secret_is_served(shared_service):
    # The second waits for a word of the first by a way of its own: gruca-rsh would wait for minutes for a
    # first that is through before it asks.
    script = """
    if [ "$SM_CURRENT_HOST" != algo-1 ]; then
        exec python3 -c "import socket; socket.create_server(('', 7000)).accept()"
    fi
    echo wrong > /opt/ml/gruca/remote-shell
    gruca-rsh algo-2 'echo served'; echo code $?
    timeout 5 python3 -c "
import socket
s = socket.create_connection(('algo-2', 7716)); s.sendall(b'GET / HTTP/1.0')
try:
    while s.recv(4096): pass
    print('closed')
except ConnectionResetError: print('closed')"
    gruca-rsh algo-2 true; echo code $?
    until python3 -c "import socket; socket.create_connection(('algo-2', 7000))" 2> /dev/null; do sleep 0.1; done
    """
    shared_service.create("remote-secret", script, instances=2)
    job = completed(shared_service, "remote-secret")
    lines = shared_service.lines("remote-secret", "algo-1")
    assert "refuses" in lines[0] and lines[1:3] == ["code 255", "closed"] and lines[-1] == "code 255"
    described = json.dumps(job, default=str)
    environment = shared_service.create("remote-env", "env; cat /opt/ml/gruca/remote-shell", instances=2)
    completed(shared_service, "remote-env")
    printed = shared_service.lines("remote-env", "algo-1")
    secret = printed[-1]
    assert len(secret) == 64 and environment
    assert secret not in described and not [line for line in printed[:-1] if secret in line]
    assert secret not in json.dumps(shared_service.describe("remote-env"), default=str)


FLOOD = """
import itertools, socket, subprocess, threading, time
def stranger():
    s = socket.create_connection(('algo-2', 7716))
    s.settimeout(0.2)
    s.sendall(b'R' + (100000).to_bytes(4, 'big'))
    return s
def is_open(s):  # Says one more byte of a request that never ends.
    try:
        s.sendall(b'x')
        while s.recv(4096): pass
    except TimeoutError: return True
    except OSError: pass
    return False
one = stranger()
print('slow', any(not is_open(one) for _ in range(150)), flush=True)
many = []
def drip():
    for s in itertools.cycle(many):
        try: s.sendall(b'x')
        except OSError: pass
        time.sleep(0.001)
while len(many) < 1100: many.append(stranger())
threading.Thread(target=drip, daemon=True).start()
print(subprocess.run(['gruca-rsh', 'algo-2', 'echo served'], capture_output=True, text=True).stdout.strip(), flush=True)
print(sum(is_open(s) for s in many[:900]))
"""


def test_strangers_who_say_little_do_not_keep_the_job_from_its_own_nodes(shared_service):
    flood = shared_service.home / "flood.py"
    flood.write_text(FLOOD)
    shared_service.create("flood", FIRST_RUNS + f"ulimit -n 4096; exec python3 {flood}", instances=2)
    completed(shared_service, "flood")
    assert shared_service.lines("flood", "algo-1") == ["slow True", "served", "0"]


MPI = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
    int rank, size, sum, length; char host[256], name[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host); MPI_Get_processor_name(name, &length);
    int mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d on %s sum %d job %s\n", rank, size, host, sum, getenv("TRAINING_JOB_NAME"));
    fflush(stdout);
    char* big = malloc(4 << 20); memset(big, rank, 4 << 20);
    MPI_Bcast(big, 4 << 20, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (argc > 1 && rank == size - 1) { fprintf(stderr, "rank %d gives up\n", rank); _exit(atoi(argv[1])); }
    MPI_Barrier(MPI_COMM_WORLD);
    FILE* out = fopen(rank == 0 ? "/opt/ml/model/zero" : "/opt/ml/model/one", "w");
    fprintf(out, "%d", big[(4 << 20) - 1]); fclose(out);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def mpi_program(shared_service):
    source, program = shared_service.home / "ring.c", shared_service.home / "ring"
    source.write_text(MPI)
    subprocess.run(["mpicc", "-O1", "-Wno-unused-result", "-o", program, source], check=True, timeout=120)
    return program


def test_mpirun_starts_its_ranks_on_all_nodes(shared_service, mpi_program):
    shared_service.create("mpi", FIRST_RUNS + f"exec mpirun --host algo-1,algo-2 -np 2 {mpi_program}", instances=2)
    completed(shared_service, "mpi")
    lines = shared_service.lines("mpi", "algo-1")
    assert sorted(line for line in lines if line.startswith("rank")) == [
        "rank 0 of 2 on algo-1 sum 3 job mpi", "rank 1 of 2 on algo-2 sum 3 job mpi"], lines
    assert artifact(shared_service, "mpi") == {"zero": "0", "one": "0"}


def test_two_mpi_jobs_at_once_and_one_of_them_isolated(shared_service, mpi_program):
    run = FIRST_RUNS + f"exec mpirun --host algo-1,algo-2 -np 2 {mpi_program}"
    shared_service.create("mpi-a", run, instances=2)
    shared_service.create("mpi-b", run, instances=2, EnableNetworkIsolation=True)
    for name in ("mpi-a", "mpi-b"):
        completed(shared_service, name)


def test_a_rank_that_fails_elsewhere_fails_the_job_with_its_words(shared_service, mpi_program):
    shared_service.create("mpi-fails", FIRST_RUNS + f"exec mpirun --host algo-1,algo-2 -np 2 {mpi_program} 5", instances=2)
    job = shared_service.wait("mpi-fails")
    assert job["TrainingJobStatus"] == "Failed" and "exit code: 5" in job["FailureReason"], job["FailureReason"]
    assert "rank 1 gives up" in "\n".join(shared_service.lines("mpi-fails", "algo-1"))


def test_stopping_an_mpi_job_ends_it_on_every_node(shared_service, mpi_program):
    shared_service.create("mpi-stops", FIRST_RUNS + "exec mpirun --host algo-1,algo-2 -np 2 sh -c 'echo up; exec sleep 76543'", instances=2)
    wait_until(lambda: shared_service.lines("mpi-stops", "algo-1").count("up") == 2, "both ranks are up")
    shared_service.client("sagemaker").stop_training_job(TrainingJobName="mpi-stops")
    assert shared_service.wait("mpi-stops")["TrainingJobStatus"] == "Stopped"
    assert "sleep 76543" not in shared_service.run("ps", "-eo", "args").stdout
