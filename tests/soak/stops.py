"""Hostile programs are stopped at any moment, and nothing of them survives. A point is ten jobs at once on one service,
some of two nodes; each is stopped when chance says so. The grace between SIGTERM and SIGKILL is one second."""

import concurrent.futures
import contextlib
import functools
import os
import random
import socket
import sys
import time

import soak

sys.path.insert(0, str(soak.ROOT / "tests/e2e"))
import conftest  # noqa: E402
import hostile  # noqa: E402
import stuck_fs  # noqa: E402
import test_stops as stops  # noqa: E402
import unhurt  # noqa: E402

STOPS = 10  # A point.
MOMENTS = ("at once", "at once, twice", "downloading", "up", "up, twice", "soon after", "at its end", "uploading")
SLOTS = 2 * STOPS
STUCK_EVERY = 10  # One point in so many has a job that hangs in the kernel for some time.
SECONDS_MAX = 90
POLL_EVERY = 0.2


@contextlib.contextmanager
def series(home):
    flags = ("--stop-grace", "1", "--slots", str(SLOTS), "--job-processes", "400")
    with conftest.running_service(home / "own", *flags) as own, \
            conftest.running_service(home / "shared", *flags, "--job-network", "none") as shared:
        for service in (own, shared):
            service.client = functools.cache(service.client)
            service.put(os.urandom(20 << 20), "s3://data/train/blob")
        yield lambda chance, directory: point(own, shared, chance, home)
        for service in (own, shared):
            service.create("last", "echo fine", instances=SLOTS)  # Every slot is free again.
            assert over(service, "last")["TrainingJobStatus"] == "Completed", service.describe("last")
            wait_until(lambda: not list((service.data / "nodes").iterdir()))  # Files go in the background.
    assert not unhurt.strange_groups(), unhurt.strange_groups()


def point(own, shared, chance, home):
    """On `own` each instance has a network, on `shared` all have the machine's, and its ports."""
    ports = chance.sample(range(21000, 31000), STOPS)
    seeds = [chance.randrange(1 << 48) for _ in ports]
    hanging = chance.randrange(STUCK_EVERY) == 0
    with concurrent.futures.ThreadPoolExecutor(STOPS + 1) as pool:
        waiting = [pool.submit(one, own, shared, random.Random(seed), f"s{seed:012x}", port) for seed, port in zip(seeds, ports)]
        if hanging:
            waiting.append(pool.submit(hang, chance.choice((own, shared)), f"h{seeds[0]:012x}", home))
        slowest = max(done.result() for done in waiting)
    print(f"  the slowest stop took {slowest:.1f} s", file=sys.stderr)
    return f"{STOPS} stops" + (" beside a job that hangs in the kernel" if hanging else "")


def one(own, shared, chance, name, port):
    kind, moment = chance.choice((*hostile.KINDS, "listener")), chance.choice(MOMENTS)
    service = shared if kind == "listener" else chance.choice((own, shared))
    arguments = [port] if kind == "listener" else []
    members = {"instances": 1 if kind == "listener" else chance.choice((1, 1, 2))}  # Two nodes share the ports.
    if moment == "downloading":
        source = {"S3DataType": "S3Prefix", "S3Uri": "s3://data/train/", "S3DataDistributionType": "FullyReplicated"}
        members["InputDataConfig"] = [{"ChannelName": "train", "DataSource": {"S3DataSource": source}}]
    if moment in ("at its end", "uploading"):
        kind, arguments = "finisher", [chance.choice((0, 1, 8))]
    what = f"{name} ({kind}, stopped {moment})"
    stops.create(service, name, kind, *arguments, **members)
    wait_for(service, name, moment, chance)
    begun = time.monotonic()
    for _ in range(2 if "twice" in moment else 1):
        with contextlib.suppress(service.client("sagemaker").exceptions.ClientError):  # It may be over.
            stops.stop(service, name)
    job = over(service, name)
    survivors = stops.processes_of(name)
    seconds = time.monotonic() - begun
    assert not survivors, f"{what}: {survivors} survive a job that is {job['TrainingJobStatus']}"
    assert job["TrainingJobStatus"] in ({"Stopped", "Completed"} if kind == "finisher" else {"Stopped"}), f"{what}: {job}"
    assert not stops.remains_of(service, name), f"{what}: {stops.remains_of(service, name)}"
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
    return seconds


def hang(service, name, home):
    """Its job ends although its process does not, and nothing else waits for it."""
    file_system = stuck_fs.StuckFs(home / name)
    try:
        stops.create(service, name, "stuck", file_system.file)
        wait_until(lambda: "up" in service.lines(name))
        stops.stop(service, name)
        job = over(service, name)
        message = job["SecondaryStatusTransitions"][-1]["StatusMessage"]
        assert job["TrainingJobStatus"] == "Stopped" and "hangs in the kernel" in message, f"{name}: {message}"
    finally:
        file_system.end()
    wait_until(lambda: not stops.remains_of(service, name))
    assert not stops.processes_of(name)
    return 0


def wait_for(service, name, moment, chance):
    early = ["Starting", "Pending"] + (["Downloading", "Training"] if moment == "uploading" else [])
    if moment in ("downloading", "uploading"):
        wait_until(lambda: service.describe(name)["SecondaryStatus"] not in early)
    elif not moment.startswith("at once"):
        wait_until(lambda: "up" in service.lines(name))
    if moment in ("soon after", "at its end"):
        time.sleep(chance.random())


def over(service, name):
    def ended():
        job = service.describe(name)
        return job if job["TrainingJobStatus"] in conftest.TERMINAL else None
    return wait_until(ended)


def wait_until(condition):
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(POLL_EVERY)
    raise AssertionError(f"nothing happened for {SECONDS_MAX} s")


if __name__ == "__main__":
    soak.main(series, points=50)
