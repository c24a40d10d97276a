"""Something is killed at a moment made from a seed: a few points of what `./dev soak kill` does at length."""

import pathlib
import random
import subprocess
import uuid

import pytest

import killing


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    return killing.Facts(tmp_path_factory.mktemp("unbroken"))


@pytest.mark.parametrize("number", (1, 2))
@pytest.mark.parametrize("kind", killing.KINDS)
def test_nothing_is_lost_and_nothing_is_left_whatever_is_killed(facts, kind, number, tmp_path):
    killing.point(facts, kind, random.Random(f"{kind}/{number}"), tmp_path)


@pytest.fixture
def group():
    """A control group of this test's own, wherever this machine lets us make one."""
    name = f"gruca-test-{uuid.uuid4().hex[:8]}"
    for root in (pathlib.Path("/sys/fs/cgroup"), *pathlib.Path("/sys/fs/cgroup").glob("*/")):
        if (root / "cgroup.procs").exists():
            made = root / name
            made.mkdir()
            yield made
            if made.exists():
                made.rmdir()
            return
    pytest.skip("no control groups here")


def test_a_busy_control_group_is_removed_once_it_is_empty(group):
    with subprocess.Popen(["sleep", "0.5"]) as sleeper:
        (group / "cgroup.procs").write_text(str(sleeper.pid))
        killing.remove_group(group)
    assert not group.exists()


def test_a_control_group_that_stays_busy_is_named_with_who_is_in_it(group):
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        (group / "cgroup.procs").write_text(str(sleeper.pid))
        with pytest.raises(AssertionError, match=rf"{group.name} is empty; .*{sleeper.pid} \(sleep\)"):
            killing.remove_group(group, seconds=0.2)
        sleeper.kill()
        sleeper.wait()
