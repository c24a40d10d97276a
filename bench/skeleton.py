"""The figures of the whole: job start, describe, the demo's throughput, build and test time.

One line of JSON a figure with --json, else a table. A ratio above 1 means ours is better; a figure without a peer
in reach has none. The service is driven by boto3, which costs about 0.7 ms a call itself."""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from conftest import running_service, wait_until  # noqa: E402
from figures import row  # noqa: E402

JOBS = 20
DESCRIBES = 500


def service_figures():
    with tempfile.TemporaryDirectory(prefix="gruca-bench-") as home, running_service(home) as service:
        client, logs = service.client("sagemaker"), service.client("logs")
        times = []
        for i in range(JOBS):
            begin = time.perf_counter()
            service.create(f"bench-{i}", "echo first")

            def first_line():
                try:
                    return logs.filter_log_events(logGroupName="/aws/sagemaker/TrainingJobs", logStreamNamePrefix=f"bench-{i}/")["events"]
                except logs.exceptions.ResourceNotFoundException:
                    return None

            wait_until(first_line, "the first line")
            times.append((time.perf_counter() - begin) * 1000)
            service.wait(f"bench-{i}")
        yield "create_to_first_log_ms_p50", statistics.median(times), "ms", None, None
        times = []
        for _ in range(DESCRIBES):
            begin = time.perf_counter()
            client.describe_training_job(TrainingJobName="bench-0")
            times.append((time.perf_counter() - begin) * 1000)
        yield "describe_ms_p50", statistics.median(times), "ms", None, None


def demo_figures():
    work = ROOT / "build/demo-bench"
    subprocess.run([ROOT / "scripts/demo.sh"], env={**os.environ, "GRUCA_DEMO_DIR": str(work)}, check=True,
                   stdout=subprocess.DEVNULL)
    log = next((work / "home/logs/demo").glob("algo-1*.log")).read_text()
    steps = [json.loads(line) for line in log.splitlines() if line.startswith('{"event":"step"')]
    ours = statistics.median(step["tokens_per_second"] for step in steps)
    peer = ROOT / ".oracle-venv/bin/python"
    if not peer.exists():
        yield "demo_tokens_per_s", ours, "tokens/s", None, None
        return
    # Which way of waiting suits PyTorch's threads depends on what else the machine does: the better counts.
    runs = [subprocess.run([peer, ROOT / "bench/torch_peer.py", work], check=True, capture_output=True, text=True,
                           env={**os.environ, **waiting}).stdout.split() for waiting in ({}, {"OMP_WAIT_POLICY": "passive"})]
    yield "demo_tokens_per_s", ours, "tokens/s", "PyTorch " + runs[0][0], max(float(speed) for _, speed in runs)


def build_figures():
    with tempfile.TemporaryDirectory(prefix="gruca-build-") as build:
        begin = time.perf_counter()
        subprocess.run(["cmake", "--preset", "release", "-B", build, "-DCCACHE=CCACHE-NOTFOUND"], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", build], check=True, stdout=subprocess.DEVNULL)
        yield "clean_build_s", time.perf_counter() - begin, "s", None, None
    begin = time.perf_counter()
    subprocess.run(["ctest", "--test-dir", ROOT / "build/release", "-j", "2"], check=True, stdout=subprocess.DEVNULL)
    yield "test_s", time.perf_counter() - begin, "s", None, None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", nargs="+", choices=["service", "demo", "build"], help="only these figures")
    options = parser.parse_args()
    assert shutil.which("unshare"), "util-linux is missing"
    parts = dict(service=service_figures, demo=demo_figures, build=build_figures)
    for part in [parts[name] for name in options.only or parts]:
        for figure, value, unit, peer, peer_value in part():
            line = row(figure, value, unit, peer, peer_value)
            if options.json:
                print(json.dumps(line), flush=True)
            else:
                beside = f"   {peer}: {peer_value:.1f}, ratio {line['ratio']:.2f}" if peer else ""
                print(f"{figure:30} {value:10.2f} {unit}{beside}", flush=True)


if __name__ == "__main__":
    main()
