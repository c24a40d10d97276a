"""Service, agents, ranks, or all of them are killed at any moment of a training job."""

import contextlib

import killing
import soak

KINDS = list(killing.KINDS)


@contextlib.contextmanager
def series(home):
    facts = killing.Facts(home)
    # In turn, so that a hundred points of each are four hundred points.
    yield lambda chance, home: killing.point(facts, KINDS[chance.number % len(KINDS)], chance, home)


if __name__ == "__main__":
    soak.main(series, points=400)
