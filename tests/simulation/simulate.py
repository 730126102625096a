"""Runs the real petacqd in virtual time, with everything around it drawn from seeds, and checks what it does.

    tools/simulate --seeds A-B [--hours H] [--jobs N] [--bin DIR]
    tools/simulate --story FILE [--bin DIR]

Exit status: 0 if everything held, 1 if not, 64 for a wrong command line, 77 if the library is not built or a Python
package is missing.
"""

import argparse
import concurrent.futures
import multiprocessing.util
import os
import shutil
import sys
import tempfile
import time

FAILED, USAGE, IMPOSSIBLE = 1, 64, 77
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
sys.path[:0] = [os.path.join(SOURCE, "tools", "python", "src")]

try:
    import h5py  # noqa: F401: the calibration

    from checks import Checks
    from play import Bench
except ImportError as missing:
    print(f"simulate: {missing}: install python3-numpy and python3-h5py", file=sys.stderr)
    sys.exit(IMPOSSIBLE)

from shorten import shorten
from story import Story, draw


class Simulator:
    """Plays stories in a directory of its own on a memory file system."""

    def __init__(self, binaries):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.work = tempfile.mkdtemp(prefix="petacq-simulation-", dir=memory)
        self.bench = Bench(os.path.abspath(binaries), SOURCE, self.work)
        self.checks = Checks(self.bench)

    def close(self):
        self.bench.close()
        shutil.rmtree(self.work, ignore_errors=True)

    def play(self, story, fault=""):
        """(outcome, failures). `fault`: what the library plants, for tests of the checks."""
        outcome = self.bench.play(story, os.path.join(self.work, "run"), fault)
        return outcome, self.checks.failures(story, outcome)

    def shorten(self, story, failure, fault=""):
        name = failure.split(":")[0]

        def still_fails(events):
            return any(text.startswith(name + ":") for text in self.play(story.with_events(events), fault)[1])

        return story.with_events(shorten(story.events, still_fails))


def range_of(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__.split("\n\n", maxsplit=1)[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seeds", type=range_of, metavar="A-B", help="play the stories of these seeds")
    what.add_argument("--story", metavar="FILE", help="play this story")
    parser.add_argument("--hours", type=float, help="virtual length of each story (default: a minute)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="stories at a time (default: one for each core)")
    parser.add_argument("--bin", default=os.path.join(SOURCE, "build", "release", "bin"), help="directory of the programs")
    parser.add_argument("--print", action="store_true", help="print the stories of the seeds, and play nothing")
    parser.add_argument("--trace", action="store_true", help="print the trace of each story: the same seed, the same trace")
    parser.add_argument("--keep", metavar="DIR", help="copy what the last story left to this directory")
    return parser.parse_args(arguments)


simulator = None


def start_worker(binaries, cores):
    """A core for each: only one thread of a daemon runs at a time, and hands over fastest on one core."""
    global simulator
    os.sched_setaffinity(0, {cores.get()})
    simulator = Simulator(binaries)
    multiprocessing.util.Finalize(simulator, simulator.close, exitpriority=0)


def play_seed(seed, length_ms):
    try:
        outcome, failures = simulator.play(draw(seed, length_ms))
        return seed, outcome.trace, failures
    except Exception as error:  # of the simulation: the other seeds are still played
        return seed, "", [f"simulation: {type(error).__name__}: {error}"]


def play_seeds(options, length_ms):
    failed, count, begin = [], len(options.seeds), time.monotonic()
    cores, usable = multiprocessing.Queue(), sorted(os.sched_getaffinity(0))
    for job in range(options.jobs):
        cores.put(usable[job % len(usable)])
    with concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=start_worker, initargs=(options.bin, cores)) as pool:
        for seed, trace, failures in pool.map(play_seed, options.seeds, [length_ms] * count):
            if options.trace:
                print(f"seed {seed}: {trace}", flush=True)
            for failure in failures:
                print(f"seed {seed}: {failure}", flush=True)
            if failures:
                failed.append(seed)
    took = time.monotonic() - begin
    print(f"{count} stories of {length_ms / 1000:.0f} s in {took:.1f} s ({count * length_ms / 1000 / took:.0f} times real time), "
          f"{len(failed)} failed")
    return failed


def play_one(options, story, shortened):
    """Prints what does not hold and, if asked to, the shortest story with which it does not."""
    alone = Simulator(options.bin)
    try:
        outcome, failures = alone.play(story)
        if options.keep:
            shutil.copytree(outcome.directory, options.keep)
        print(f"trace {outcome.trace}")
        for failure in failures:
            print(failure)
        if failures and shortened:
            print(f"# The shortest story with which this fails: {failures[0]}\n{alone.shorten(story, failures[0])}", end="")
    finally:
        alone.close()
    return bool(failures)


def main(arguments):
    options = parse(arguments)
    length_ms = int((options.hours or 1 / 60) * 3_600_000)
    if not os.path.exists(os.path.join(options.bin, os.pardir, "lib", "libsimulation.so")):
        print(f"simulate: libsimulation.so is not built beside {options.bin}", file=sys.stderr)
        return IMPOSSIBLE
    if options.story:
        with open(options.story, encoding="utf-8") as file:
            return FAILED if play_one(options, Story.parse(file.read()), shortened=False) else 0
    if options.print:
        for seed in options.seeds:
            print(draw(seed, length_ms))
        return 0
    if len(options.seeds) == 1:
        return FAILED if play_one(options, draw(options.seeds[0], length_ms), shortened=True) else 0
    failed = play_seeds(options, length_ms)
    if failed:
        print(f"tools/simulate --seeds {failed[0]} prints the shortened story of the first")
    return FAILED if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
