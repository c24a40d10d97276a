"""The control plane's decisions, simulated: a point is a hundred worlds."""

import contextlib
import os
import pathlib
import subprocess

import soak

WORLDS = 100  # A point.


@contextlib.contextmanager
def series(home):
    program = pathlib.Path(os.environ.get("GRUCA_BUILD", soak.ROOT / "build/release")) / "tests/sim/sim_test"

    def point(chance, home):
        first = chance.randrange(1, 2**48)
        done = subprocess.run([program, "--first", str(first), "--seeds", str(WORLDS)], capture_output=True, text=True,
                              timeout=600)
        (home / "output.txt").write_text(done.stdout + done.stderr)
        assert done.returncode == 0, f"{program} --first {first} --seeds {WORLDS}\n{done.stdout[-2000:]}"
        return f"{WORLDS} worlds"

    yield point


if __name__ == "__main__":
    soak.main(series, points=100)
