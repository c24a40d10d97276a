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
figures beside it, as in `return "back", {"back_s": 0.2, "kills": 3}`, the median and worst of those
with a fraction and the sum of whole numbers are shown.

A series with kinds, `soak.main(series, points=400, kinds=["service", "agent"])`, takes them in turn, by the
point's number, and finds its own in `chance.kind`.

Runs do not meet: each has directories and a network of its own, so several seeds may run at once. The
summary is written after every point: a run that is stopped has one as well.
"""

import argparse
import collections
import json
import os
import pathlib
import platform
import random
import shutil
import signal
import statistics
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "build/soak"
FAILURES_MAX = 10  # A series that fails so often is not worth going on with.
PROGRESS_EVERY = 20  # Points.


class Chance(random.Random):
    def __init__(self, seed, number, kind=None):
        super().__init__(f"{seed}/{number}")
        self.number, self.kind = number, kind


def arguments(name, points, kinds, argv=None, minutes=None):
    parser = argparse.ArgumentParser(prog=f"./dev soak {name}")
    parser.add_argument("--points", type=int, default=points, help="how many (%(default)s)")
    if kinds:
        parser.add_argument("--each", type=int, help="how many of each kind, instead of --points")
        parser.add_argument("--kind", action="append", choices=kinds, help="only this one; may be given again")
    parser.add_argument("--seed", type=int, default=1, help="what all chance comes from (%(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the number of the first point (%(default)s)")
    parser.add_argument("--minutes", type=float, default=minutes, help="begin no point after so long (%(default)s)")
    parser.add_argument("--json", action="store_true", help="one object a point instead of text")
    parser.add_argument("--record", action="store_true", help="write the summary to bench/results")
    options = parser.parse_args(argv)
    options.kind = (options.kind or kinds) if kinds else [None]
    if kinds and options.each is not None:
        options.points = options.each * len(options.kind)
    return options


def numbers(options, kinds):
    """The points to take, each with its kind. A number has the same kind in every run."""
    found, number, of_kind = [], options.first, collections.Counter()
    while len(found) < options.points:
        kind = kinds[number % len(kinds)] if kinds else None
        wanted = kind in options.kind and (not kinds or options.each is None or of_kind[kind] < options.each)
        if wanted:
            found.append((number, kind))
            of_kind[kind] += 1
        number += 1
    return found


def main(series, points=100, kinds=None, minutes=None):
    name = pathlib.Path(sys.argv[0]).stem
    options = arguments(name, points, kinds, minutes=minutes)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    home = EVIDENCE / f"{name}-{os.getpid()}"
    home.mkdir(parents=True)
    run = Run(name, options, home)
    (home / "series").mkdir()
    stopped = False
    try:
        with series(home / "series") as point:
            for number, kind in numbers(options, kinds):
                if options.minutes and time.time() - run.begun > options.minutes * 60:
                    print(f"{name}: ends here, after {options.minutes:g} minutes", file=sys.stderr)
                    break
                run.take(number, kind, point)
                if len(run.failed) == FAILURES_MAX:
                    print(f"{name}: {FAILURES_MAX} points have failed; that is enough", file=sys.stderr)
                    break
    except (KeyboardInterrupt, SystemExit):
        stopped = True
    shutil.rmtree(home / "series", ignore_errors=True)
    if not run.failed:
        shutil.rmtree(home)
    print(run.summary(), file=sys.stderr if options.json else sys.stdout)
    print(f"summary: {run.write().relative_to(ROOT)}", file=sys.stderr)
    sys.exit(1 if run.failed or stopped else 0)


class Run:
    def __init__(self, name, options, home):
        self.name, self.options, self.home = name, options, home
        self.seen, self.failed, self.seconds = collections.Counter(), [], []
        self.kinds, self.failed_kinds = collections.Counter(), collections.Counter()
        self.figures = collections.defaultdict(list)
        self.begun = time.time()

    def take(self, number, kind, point):
        directory = self.home / f"point-{number}"
        directory.mkdir()
        begun, why = time.monotonic(), None
        try:
            what = point(Chance(self.options.seed, number, kind), directory)
            what, figures = what if isinstance(what, tuple) else (what, {})
            for figure, value in figures.items():
                self.figures[figure].append(value)
            shutil.rmtree(directory, ignore_errors=True)
        except Exception as error:  # The evidence stays, and the series goes on.
            what, why = "failed", f"{type(error).__name__}: {error}"
            (directory / "why.txt").write_text(traceback.format_exc())
            self.failed.append((number, why))
        self.seen[what] += 1
        self.kinds[kind] += 1
        self.failed_kinds[kind] += why is not None
        self.seconds.append(time.monotonic() - begun)
        self.tell(number, what, why, directory)
        self.write()

    def tell(self, number, what, why, directory):
        if self.options.json:
            print(json.dumps({"series": self.name, "seed": self.options.seed, "point": number, "saw": what,
                              "seconds": round(self.seconds[-1], 2), "why": why}), flush=True)
            return
        print(f"{self.name} {number}: {what} ({self.seconds[-1]:.1f} s)", flush=True)
        if why:
            print(f"  {why}\n  again: {self.again(number)}\n  evidence: {directory}", flush=True)
        done, points = len(self.seconds), self.options.points
        if done % PROGRESS_EVERY == 0 and done < points:
            left = statistics.mean(self.seconds) * (points - done) / 60
            print(f"{self.name}: {done} of {points} points, {len(self.failed)} failed, about {left:.0f} min to go", flush=True)

    def again(self, number):
        return f"./dev soak {self.name} --seed {self.options.seed} --first {number} --points 1"

    def summary(self):
        median = statistics.median(self.seconds) if self.seconds else 0
        lines = [f"{len(self.seconds)} of {self.options.points} points of {self.name}, seed {self.options.seed}, from {self.options.first}: "
                 f"{len(self.failed)} failed; {median:.1f} s a point"]
        lines += [f"  {kind}: {count} points, {self.failed_kinds[kind]} failed" for kind, count in self.kinds.items() if kind]
        lines += [f"  {count:4} {what}" for what, count in self.seen.most_common()]
        lines += [f"  {figure}: {figure_text(values)}" for figure, values in self.figures.items()]
        lines += [f"  point {number} failed: {why.splitlines()[0]}\n    again: {self.again(number)}" for number, why in self.failed]
        return "\n".join(lines)

    def page(self):
        day = time.strftime("%Y-%m-%d", time.gmtime(self.begun))
        return (f"# The series `{self.name}`\n\n`./dev soak {' '.join([self.name, *sys.argv[1:]])}`, {day}, "
                f"{os.cpu_count()} cores, Linux {platform.release()}.\n\n"
                f"```\n{self.summary()}\n```\n")

    def write(self):
        path = ROOT / f"bench/results/soak_{self.name}.md"
        if not self.options.record:
            path = EVIDENCE / f"{self.name}_seed_{self.options.seed}.md"
        path.write_text(self.page())
        return path


def figure_text(values):
    if all(isinstance(value, int) for value in values):
        return f"{sum(values)} in all"
    return f"median {statistics.median(values):.2f}, worst {max(values):.2f}"


if __name__ == "__main__":
    sys.exit("this is what the series share; see ./dev soak")
