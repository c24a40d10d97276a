"""A service with ten thousand jobs is killed as it works, and is back with all of them."""

import contextlib
import sqlite3
import threading
import time

import botocore.exceptions

import soak
import two_jobs
from conftest import TERMINAL

JOBS = 10_000
BUSY_S = 0.5  # The service is killed within it.


def multiply(database, name):
    """Makes the job `name` that is over into JOBS of them, whatever columns the table has."""
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        cursor = db.execute("SELECT * FROM jobs WHERE name = ?", (name,))
        columns, row = [column[0] for column in cursor.description], cursor.fetchone()
        marks = ", ".join("?" * len(columns))
        for i in range(2, JOBS + 1):
            new = [value.replace(name, f"{name}-{i}") if isinstance(value, str) else value for value in row]
            new[columns.index("number")] = i
            new[columns.index("json")] = new[columns.index("json")].replace('"number":1,', f'"number":{i},')
            db.execute(f"INSERT INTO jobs VALUES ({marks})", new)


def statuses(service):
    pages = service.client("sagemaker").get_paginator("list_training_jobs").paginate(PaginationConfig={"PageSize": 100})
    return {job["TrainingJobName"]: job["TrainingJobStatus"] for page in pages for job in page["TrainingJobSummaries"]}


def work(service, going, created, number):
    """What clients do meanwhile; every job that was acknowledged is in `created`."""
    client, i = service.client("sagemaker"), 0
    while not going.is_set():
        with contextlib.suppress(botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError):
            name = f"new-{number}-{i}"
            i += 1
            client.create_training_job(**service.request(name, "true"))
            created.append(name)
            client.describe_training_job(TrainingJobName=name)
        time.sleep(0.03)


@contextlib.contextmanager
def series(home):
    service = two_jobs.Quick(home).start()
    try:
        service.create("old", "true")
        service.wait("old")
        service.stop()
        multiply(service.data / "state.db", "old")
        service.start()
        known = statuses(service)
        assert len(known) == JOBS
        yield lambda chance, _: point(service, known, chance)
    finally:
        service.stop()


def point(service, known, chance):
    if service.process.poll() is not None:  # The point before has failed.
        service.start()
    going, created = threading.Event(), []
    worker = threading.Thread(target=work, args=(service, going, created, chance.number), daemon=True)
    worker.start()
    time.sleep(chance.uniform(0, BUSY_S))
    service.kill()
    going.set()
    begun = time.monotonic()
    service.start()
    service.describe("old-77")
    back = time.monotonic() - begun
    worker.join()
    for name in created:
        assert service.wait(name)["TrainingJobStatus"] == "Completed", service.describe(name)
    # A list of ten thousand jobs is a hundred pages and costs more than all else of a point: only one.
    now = statuses(service)
    assert {name: now.get(name) for name in known} == known, "a job is lost, or changed"
    assert set(created) <= set(now), f"lost although it was acknowledged: {set(created) - set(now)}"
    known.update({name: status for name, status in now.items() if status in TERMINAL})
    return "back with all of them", {"back_s": back, "jobs created": len(created)}


if __name__ == "__main__":
    soak.main(series, points=50, minutes=15)
