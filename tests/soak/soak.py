"""What the long series share. A series is a file beside this one:

    @contextlib.contextmanager
    def series(home):             # Once. `home` is a directory of its own.
        facts = measure(home)
        yield lambda chance, home: point(facts, chance, home)

    if __name__ == "__main__":
        soak.main(series, points=100)

`point` is called with a Chance, made of the seed and the point's number, and with a directory of its
own, in which everything of the point has to lie: it is removed when the point is well, and
kept as evidence when it raises. What it returns, a few words, is counted for the summary; with
figures beside it, as in `return "back", {"back_s": 0.2}`, their median and worst are shown.
"""

import argparse
import collections
import json
import os
import pathlib
import platform
import random
import shutil
import statistics
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "build/soak"
FAILURES_MAX = 10  # A series that fails so often is not worth going on with.


class Chance(random.Random):
    def __init__(self, seed, number):
        super().__init__(f"{seed}/{number}")
        self.number = number


def arguments(name, points):
    parser = argparse.ArgumentParser(prog=f"./dev soak {name}")
    parser.add_argument("--points", type=int, default=points, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="what all chance comes from (%(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the number of the first point (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one object a point instead of text")
    parser.add_argument("--record", action="store_true", help="write the summary to bench/results")
    return parser.parse_args()


def main(series, points=100):
    name = pathlib.Path(sys.argv[0]).stem
    options = arguments(name, points)
    home = EVIDENCE / f"{name}-{os.getpid()}"
    home.mkdir(parents=True)
    run = Run(name, options, home)
    (home / "series").mkdir()
    with series(home / "series") as point:
        for number in range(options.first, options.first + options.points):
            run.take(number, point)
            if len(run.failed) == FAILURES_MAX:
                break
    shutil.rmtree(home / "series", ignore_errors=True)
    if not run.failed:
        shutil.rmtree(home)
    print(run.summary(), file=sys.stderr if options.json else sys.stdout)
    if options.record:
        path = ROOT / f"bench/results/soak_{name}.md"
        path.write_text(run.page())
        print(f"recorded in {path.relative_to(ROOT)}", file=sys.stderr)
    sys.exit(1 if run.failed else 0)


class Run:
    def __init__(self, name, options, home):
        self.name, self.options, self.home = name, options, home
        self.seen, self.failed, self.seconds = collections.Counter(), [], []
        self.figures = collections.defaultdict(list)
        self.begun = time.time()

    def take(self, number, point):
        directory = self.home / f"point-{number}"
        directory.mkdir()
        begun, why = time.monotonic(), None
        try:
            what = point(Chance(self.options.seed, number), directory)
            what, figures = what if isinstance(what, tuple) else (what, {})
            for figure, value in figures.items():
                self.figures[figure].append(value)
            shutil.rmtree(directory, ignore_errors=True)
        except Exception as error:  # The evidence stays, and the series goes on.
            what, why = "failed", f"{type(error).__name__}: {error}"
            (directory / "why.txt").write_text(traceback.format_exc())
            self.failed.append((number, why))
        self.seen[what] += 1
        self.seconds.append(time.monotonic() - begun)
        self.tell(number, what, why, directory)

    def tell(self, number, what, why, directory):
        if self.options.json:
            print(json.dumps({"series": self.name, "seed": self.options.seed, "point": number, "saw": what,
                              "seconds": round(self.seconds[-1], 2), "why": why}), flush=True)
            return
        print(f"{self.name} {number}: {what} ({self.seconds[-1]:.1f} s)", flush=True)
        if why:
            print(f"  {why}\n  again: {self.again(number)}\n  evidence: {directory}", flush=True)

    def again(self, number):
        return f"./dev soak {self.name} --seed {self.options.seed} --first {number} --points 1"

    def summary(self):
        lines = [f"{len(self.seconds)} points of {self.name}, seed {self.options.seed}, from {self.options.first}: "
                 f"{len(self.failed)} failed; {statistics.median(self.seconds):.1f} s a point"]
        lines += [f"  {count:4} {what}" for what, count in self.seen.most_common()]
        lines += [f"  {figure}: median {statistics.median(values):.2f}, worst {max(values):.2f}" for figure, values in self.figures.items()]
        lines += [f"  point {number} failed: {why.splitlines()[0]}\n    again: {self.again(number)}" for number, why in self.failed]
        return "\n".join(lines)

    def page(self):
        day = time.strftime("%Y-%m-%d", time.gmtime(self.begun))
        return (f"# The series `{self.name}`\n\n`./dev soak {self.name} --seed {self.options.seed} --first {self.options.first} "
                f"--points {self.options.points}`, {day}, {os.cpu_count()} cores, Linux {platform.release()}.\n\n"
                f"```\n{self.summary()}\n```\n")


if __name__ == "__main__":
    sys.exit("this is what the series share; see ./dev soak")
