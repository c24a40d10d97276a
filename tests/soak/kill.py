"""Service, agents, ranks, or all of them are killed at any moment of a training job."""

import contextlib

import killing
import soak

KINDS = list(killing.KINDS)


@contextlib.contextmanager
def series(home):
    facts = killing.Facts(home)
    yield lambda chance, home: killing.point(facts, chance.kind, chance, home)


if __name__ == "__main__":
    soak.main(series, points=400, kinds=KINDS)
