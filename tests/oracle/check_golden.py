"""Makes the golden files again and compares them with those committed.

    check_golden.py COMMITTED_DIRECTORY SCRATCH_DIRECTORY
"""

import base64
import json
import pathlib
import subprocess
import sys

import numpy

# Relative to the largest number of an array. Another processor adds in another order.
TOLERANCE = 1e-11


def arrays(value, path=""):
    """Every number and array in a golden file, with where it stands."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from arrays(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from arrays(inner, f"{path}/{index}")
    elif isinstance(value, str) and ("/gradients/" in path or "/weights/" in path or path.endswith("logits")):
        yield path, numpy.frombuffer(base64.b64decode(value), dtype="<f8")
    elif isinstance(value, (int, float)):
        yield path, numpy.array([float(value)])


def main(committed, scratch):
    script = pathlib.Path(committed) / "make_golden.py"
    subprocess.run([sys.executable, script, scratch], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for path in sorted(pathlib.Path(committed).glob("*.json")):
        old = json.loads(path.read_text())
        new = json.loads((pathlib.Path(scratch) / path.name).read_text())
        versions = {k: v.split("+")[0] for k, v in old["made_by"].items()}
        if versions != {k: v.split("+")[0] for k, v in new["made_by"].items()}:
            sys.exit(f"{path.name} was made by {old['made_by']}, and here are {new['made_by']}")
        theirs, ours = dict(arrays(new)), dict(arrays(old))
        if theirs.keys() != ours.keys():
            sys.exit(f"{path.name}: members differ: {sorted(theirs.keys() ^ ours.keys())[:5]}")
        worst = 0.0
        for name, value in theirs.items():
            scale = max(numpy.abs(value).max(), 1e-6)
            difference = numpy.abs(value - ours[name]).max() / scale
            worst = max(worst, difference)
            if not difference <= TOLERANCE:
                sys.exit(f"{path.name}: {name} differs by {difference:.1e} of its largest number")
        print(f"  {path.name}: {len(theirs)} arrays and numbers, worst difference {worst:.1e}")


main(*sys.argv[1:])
