"""The network of a job. The namespace that in_lo.sh makes is the machine here; what lies beyond it is one more
namespace, joined by a pair of interfaces."""

import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import threading

import botocore.exceptions
import pytest
from conftest import running_service, wait_until

OUTSIDE, MACHINE = "203.0.113.2", "203.0.113.1"


def sh(command):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def bridges(service):
    """Those of this service that there are."""
    name = service.log().rsplit("on the bridge ", 1)[1].split()[0]
    there = {link["ifname"] for link in json.loads(sh("ip -json link show type bridge") or "[]")}
    return [bridge for bridge in (name, name + "-i") if bridge in there]


def gateway(service):
    return json.loads(sh(f"ip -json -4 addr show {bridges(service)[0]}"))[0]["addr_info"][0]["local"]


@contextlib.contextmanager
def echo_server(address, port=0):
    """Answers each connection with the address it came from. Yields its port."""
    with socket.create_server((address, port)) as server:
        server.settimeout(0.1)
        ended = threading.Event()

        def serve():
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    connection, peer = server.accept()
                    with connection:
                        connection.sendall(peer[0].encode() + b"\n")
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            thread.join()


def ask(address, port):
    """Shell words that print what the server there answers, or `nothing`."""
    program = (f"import socket; s = socket.create_connection(('{address}', {port}), 3); print(s.makefile().read().strip())")
    return f'(python3 -c "{program}" 2>/dev/null || echo nothing)'


@pytest.fixture
def go(tmp_path_factory):
    """A file that a job may wait for: in a directory of its own, since jobs see no new file beside what is hidden."""
    return tmp_path_factory.mktemp("signal") / "go"


@pytest.fixture
def outside(tmp_path):
    """A host beyond the machine, with a server; yields its port."""
    sh(f"""ip netns add outside && ip link add out type veth peer name eth0 netns outside
           ip addr add {MACHINE}/24 dev out && ip link set out up
           ip -n outside addr add {OUTSIDE}/24 dev eth0 && ip -n outside link set eth0 up && ip -n outside link set lo up
           ip -n outside route add default via {MACHINE}""")
    program = tmp_path / "server.py"
    program.write_text("import socket\ns = socket.create_server(('0.0.0.0', 8000))\nprint('up', flush=True)\n"
                       "while True:\n    c, peer = s.accept()\n    c.sendall(peer[0].encode() + b'\\n')\n    c.close()\n")
    server = subprocess.Popen(["ip", "netns", "exec", "outside", sys.executable, program], stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"up\n"
    try:
        yield 8000
    finally:
        server.kill()
        server.wait()
        sh("ip netns del outside; ip link del out 2>/dev/null || true")


def completed(service, name, seconds=90):
    job = service.wait(name, seconds)
    assert job["TrainingJobStatus"] == "Completed", (job.get("FailureReason"), service.lines(name))
    return service.lines(name)


HOLD_THE_PORT = """
import os, pathlib, socket, time
s = socket.create_server(("0.0.0.0", 29500))
print("listening", flush=True)
while not pathlib.Path("{go}").exists(): time.sleep(0.05)
"""


def hold_the_port(service, name, go):
    script = service.home / "hold.py"
    script.write_text(HOLD_THE_PORT.format(go=go))
    service.create(name, f"exec python3 {script}")


def test_two_jobs_listen_on_one_port_at_once(shared_service, go):
    for name in ("port-a", "port-b"):
        hold_the_port(shared_service, name, go)
    for name in ("port-a", "port-b"):
        shared_service.wait_for_log(name, "listening")
    go.touch()
    for name in ("port-a", "port-b"):
        completed(shared_service, name)


def test_in_the_machines_network_the_second_job_on_a_port_fails(tmp_path, go):
    with running_service(tmp_path, "--job-network", "none") as service:
        assert "share this machine's network" in service.log() and "on the bridge" not in service.log()
        hold_the_port(service, "port-a", go)
        service.wait_for_log("port-a", "listening")
        hold_the_port(service, "port-b", go)
        assert "in use" in service.wait("port-b")["FailureReason"]
        service.create("where", "cat /opt/ml/input/config/resourceconfig.json; echo; echo $OMPI_MCA_btl_tcp_if_include")
        lines = completed(service, "where")
        assert json.loads(lines[0])["network_interface_name"] == "lo" and lines[1] == "lo"
        with pytest.raises(botocore.exceptions.ClientError, match="enableNetworkIsolation"):
            service.create("isolated", "true", EnableNetworkIsolation=True)
        go.touch()
        completed(service, "port-a")


def test_each_node_has_eth0_and_nothing_of_the_machines(shared_service):
    script = """
    echo interfaces $(ls /sys/class/net)
    echo address $(ip -4 -o addr show eth0 | awk '{print $4}')
    echo me $(getent hosts $(hostname) | awk '{print $1}')
    echo config $(python3 -c 'import json; print(json.load(open("/opt/ml/input/config/resourceconfig.json"))["network_interface_name"])')
    echo variable $SM_NETWORK_INTERFACE_NAME $OMPI_MCA_oob_tcp_if_include
    ls -d /sys/fs/cgroup > /dev/null || echo no groups
    """
    shared_service.create("eth0", script, instances=2)
    completed(shared_service, "eth0")
    seen = set()
    for host in ("algo-1", "algo-2"):
        facts = dict(line.split(" ", 1) for line in shared_service.lines("eth0", host))
        assert facts["interfaces"] == "eth0 lo" and facts["config"] == "eth0" and facts["variable"] == "eth0 eth0"
        assert facts["address"].split("/")[0] == facts["me"]
        seen.add(facts["me"])
    assert len(seen) == 2


def test_a_job_reaches_the_service_with_its_own_keys(shared_service):
    script = shared_service.home / "who.py"
    script.write_text("import boto3\nprint(boto3.client('sts').get_caller_identity()['Arn'])\n")
    shared_service.create("who", f"exec {sys.executable} {script}")
    assert completed(shared_service, "who")[0].startswith("arn:aws:")


def test_what_listens_on_the_machines_loopback_is_out_of_reach(shared_service):
    with echo_server("127.0.0.1") as port:
        shared_service.create("loopback", f"{ask('127.0.0.1', port)}; {ask('localhost', port)}")
        assert completed(shared_service, "loopback") == ["nothing", "nothing"]


def test_jobs_go_out_under_the_machines_address_and_nobody_comes_in(outside, tmp_path, go):
    with running_service(tmp_path) as service:
        script = f"{ask(OUTSIDE, outside)}; getent hosts $(hostname) | awk '{{print $1}}'; cd /; python3 -m http.server 8001 >/dev/null 2>&1 & "
        service.create("out", script + f"sleep 1; wait_for={go}; while [ ! -e $wait_for ]; do sleep 0.1; done")
        lines = wait_until(lambda: len(service.lines("out")) >= 2 and service.lines("out"), "the job has asked", 30)
        assert lines[0] == MACHINE
        with contextlib.closing(socket.create_connection((lines[1], 8001), 5)):
            pass  # The machine itself may.
        intruder = f"import socket; socket.create_connection(('{lines[1]}', 8001), 2)"
        assert subprocess.run(["ip", "netns", "exec", "outside", sys.executable, "-c", intruder],
                              capture_output=True).returncode != 0
        go.touch()
        completed(service, "out")


def test_an_isolated_job_reaches_its_peers_and_nothing_else(outside, tmp_path):
    with running_service(tmp_path) as service, echo_server("0.0.0.0") as machine_port:
        machine = gateway(service)
        service.create("open", f"{ask(machine, machine_port)}")
        assert completed(service, "open") != ["nothing"]
        peer = "import socket; s = socket.create_server(('0.0.0.0', 7000)); c = s.accept()[0]; c.sendall(b'peer'); c.close()"
        client = ("import socket, time\\nfor i in range(300):\\n    try: print(socket.create_connection(('algo-1', 7000), 3)"
                  ".makefile().read()); break\\n    except OSError: time.sleep(0.1)")
        bound = (f"import socket; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 25, b'eth0'); s.settimeout(3); "
                 f"s.connect(('{machine}', {machine_port})); print('around')")
        script = f"""
        if [ $(hostname) = algo-1 ]; then python3 -c "{peer}"; exit; fi
        printf "{client}" | python3
        {ask(OUTSIDE, outside)}; {ask(machine, machine_port)}; {ask(MACHINE, machine_port)}
        python3 -c "{bound}" 2>/dev/null || echo nothing
        env | grep -c -e ^AWS_ENDPOINT -e ^AWS_SECRET || true
        """
        service.create("alone", script, instances=2, EnableNetworkIsolation=True)
        completed(service, "alone")
        assert service.lines("alone", "algo-2") == ["peer", "nothing", "nothing", "nothing", "nothing", "0"]
        assert service.describe("alone")["EnableNetworkIsolation"] is True


def test_a_resolver_on_the_machines_loopback_is_replaced_by_the_ones_it_asks(tmp_path):
    for path, text in (("/etc/resolv.conf", "nameserver 127.0.0.53\n"),
                       ("/run/systemd/resolve/resolv.conf", "nameserver 192.0.2.53\nsearch example.org\n")):
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).touch()
        (tmp_path / "given").write_text(text)
        sh(f"mount --bind {tmp_path}/given {path}")
        (tmp_path / "given").rename(tmp_path / pathlib.Path(path).parent.name)
    try:
        with running_service(tmp_path) as service:
            service.create("resolver", "cat /etc/resolv.conf; echo x > /etc/resolv.conf || echo fixed")
            lines = completed(service, "resolver")
            assert lines[:2] == ["nameserver 192.0.2.53", "search example.org"] and lines[-1] == "fixed"
    finally:
        sh("umount /etc/resolv.conf /run/systemd/resolve/resolv.conf")


def test_the_bridge_lives_as_long_as_the_service_or_a_node(tmp_path, go):
    with running_service(tmp_path) as service:
        assert len(bridges(service)) == 2
        service.create("lives", f"echo up; while [ ! -e {go} ]; do sleep 0.1; done; {ask('$(hostname)', 1)}; "
                                f"exec {sys.executable} -c 'import boto3; print(boto3.client(\"sts\").get_caller_identity()[\"Account\"])'")
        service.wait_for_log("lives", "up")
        service.stop()
        assert len(bridges(service)) == 2
        service.start()
        service.kill()
        service.start()
        go.touch()
        assert completed(service, "lives")[-1] == "000000000000"
        assert len(bridges(service)) == 2
        assert not [line for line in sh("ip -o link show type veth").splitlines() if f"master {bridges(service)[0]} " in line]
    assert not bridges(service)


def test_two_services_choose_two_networks(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    with running_service(tmp_path / "a") as one, running_service(tmp_path / "b") as two:
        for service in (one, two):
            service.create("where", "getent hosts $(hostname) | awk '{print $1}'")
        assert completed(one, "where") != completed(two, "where")
        assert len(bridges(one)) == len(bridges(two)) == 2


def test_addresses_go_round_and_each_next_node_is_reached_at_once(tmp_path):
    talk = """
    if [ $(hostname) = algo-1 ]; then
        exec python3 -c "import socket; s = socket.create_server(('0.0.0.0', 7000)); [s.accept()[0].close() for i in range(3)]"
    fi
    exec python3 -c "
import socket, time
for i in range(200):
    try: socket.create_connection(('algo-1', 7000), 2); break
    except ConnectionRefusedError: time.sleep(0.05)
else: raise SystemExit(1)"
    """
    with running_service(tmp_path, "--job-network", "10.77.0.8/29") as service:
        seen = set()
        for i in range(4):
            service.create(f"round-{i}", f"getent hosts algo-1 algo-2 algo-3 algo-4; {talk}", instances=4)
            seen.update(line.split()[0] for line in completed(service, f"round-{i}"))
        assert seen <= {f"10.77.0.{i}" for i in range(10, 15)}


def test_a_network_that_cannot_be_had_is_refused_at_the_start(tmp_path):
    from conftest import APPS
    sh("ip link add taken type bridge && ip addr add 10.78.0.1/16 dev taken && ip link set taken up")
    try:
        for wanted in ("10.78.4.0/24", "nonsense", "10.79.0.0/30"):
            done = subprocess.run([APPS / "gruca-service", "--data-dir", tmp_path / "data", "--job-network", wanted],
                                  capture_output=True, text=True, timeout=20)
            assert done.returncode != 0 and "--job-network" in done.stderr
    finally:
        sh("ip link del taken")
