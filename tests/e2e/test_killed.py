"""Something is killed at a moment made from a seed: a few points of what `./dev soak kill` does at length."""

import random

import pytest

import killing


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    return killing.Facts(tmp_path_factory.mktemp("unbroken"))


@pytest.mark.parametrize("number", (1, 2))
@pytest.mark.parametrize("kind", killing.KINDS)
def test_nothing_is_lost_and_nothing_is_left_whatever_is_killed(facts, kind, number, tmp_path):
    killing.point(facts, kind, random.Random(f"{kind}/{number}"), tmp_path)
