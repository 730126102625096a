"""Plants defects in a copy of the sources, one at a time, and tells which of them the checks find.

    tools/simulate --planted [NAME ...] [--seeds A-B] [--jobs N] [--minutes M] [--bin DIR]

NAME: a defect, or a list of them (tests/simulation/planted); without names all are planted. What has been found is written to the
results as it comes, and not done again: a run that was interrupted goes on where it ended. Exit status: 0 if at least 95 % are
found, 1 if not, or if a defect does not fit the sources or does not compile; 2 if time was up before that was known.
"""

import argparse
import concurrent.futures
import filecmp
import json
import multiprocessing
import multiprocessing.util
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time

import planted
import simulate
from story import draw

TOO_FEW, UNFINISHED = 1, 2
ENOUGH = 0.95
LENGTH_MS = 60000
FIRST_BLOCK, BLOCK, FIRST_STORIES = 4, 20, 40  # stories that a job plays in a row: few at first, since most are found at once
# What stories need, besides a daemon with a defect.
SOUND = ["petacqd", "petcal", "petlm", "simulation"]
TEST_SECONDS = 900  # of CPU for the tests of a program
FAILED_TEST = re.compile(r'<TestCase name="([^"]*)"')


class Tree:
    """A copy of the sources with a build directory of its own, where a clone has it: so ccache knows its objects."""

    def __init__(self, directory, options):
        self.source, self.build = directory, os.path.join(directory, "build", "release")
        self.options = options

    def take_sources(self):
        """Copies what differs, so that a build after another one compiles little."""
        wanted = set()
        for folder, folders, files in os.walk(simulate.SOURCE):
            if folder == simulate.SOURCE:
                folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in files:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, simulate.SOURCE)
                if os.path.isfile(path) and not relative.startswith("."):
                    wanted.add(relative)
                    self._take(path, os.path.join(self.source, relative))
        for folder, folders, files in os.walk(self.source):
            if folder == self.source:
                folders[:] = [name for name in folders if name != "build"]
            for name in files:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.source) not in wanted:
                    os.remove(path)

    @staticmethod
    def _take(path, copy):
        with open(path, "rb") as file:
            content = file.read()
        try:
            with open(copy, "rb") as file:
                if file.read() == content:
                    return
        except OSError:
            os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(path, copy)

    def configure(self):
        # Sources are compiled one by one: a defect changes few of them. A defect may leave a variable unused.
        subprocess.run(["cmake", "-S", self.source, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DPETACQ_CUDA=OFF", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF", *self.options.cmake.split()],
                       check=True, stdout=subprocess.DEVNULL)

    def make(self, targets):
        """Empty, or why not."""
        made = subprocess.run(["cmake", "--build", self.build, "--parallel", str(self.options.jobs), "--target", *targets],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return "" if made.returncode == 0 else made.stdout[-2000:]

    def make_planted(self, defect, target):
        """Empty, or why not. The source is as before afterwards, and the next build makes it sound again."""
        path = os.path.join(self.source, defect.file)
        with open(path, encoding="utf-8") as file:
            sound = file.read()
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(defect.plant(sound))
            return self.make([target])
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(sound)


class Programs:
    """Those of each defect, in a directory as a build has it. What has no defect is that of the sound build."""

    def __init__(self, directory):
        self.directory = directory
        self.sound = os.path.join(directory, "sound")

    def of(self, defect):
        return os.path.join(self.directory, f"{defect.name}-{defect.digest}")

    def keep_sound(self, build):
        """Programs with a defect stay as long as the sound ones are the same."""
        files = [os.path.join("lib", "libsimulation.so") if name == "simulation" else os.path.join("bin", name) for name in SOUND]
        if all(self._same(os.path.join(build, file), os.path.join(self.sound, file)) for file in files):
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        for file in files:
            self._copy(os.path.join(build, file), os.path.join(self.sound, file))

    @staticmethod
    def _same(path, other):
        return os.path.exists(other) and filecmp.cmp(path, other, shallow=False)

    def keep(self, defect, build, target):
        home = self.of(defect)
        self.drop(defect)
        if os.path.exists(self.sound):
            shutil.copytree(self.sound, home, copy_function=os.link)
        self._copy(os.path.join(build, "bin", target), os.path.join(home, "bin", target))

    def drop(self, defect):
        shutil.rmtree(self.of(defect), ignore_errors=True)

    @staticmethod
    def _copy(path, to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        if os.path.exists(to):
            os.remove(to)  # it may be a link to the sound one
        shutil.copy(path, to)


class Results:
    """What is known of each defect, in a file with one JSON object for each line; the last one counts."""

    def __init__(self, path, seeds):
        self.path, self.seeds, self.known = path, f"{seeds[0]}-{seeds[-1]}", {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    result = json.loads(line)
                    self.known[result["name"], result["digest"]] = result

    def of(self, defect):
        """None, or found: true, false, or null if not all stories have been played."""
        result = self.known.get((defect.name, defect.digest))
        if result is not None and not result["found"] and result["seeds"] != self.seeds:
            return None
        return result

    def add(self, defect, found, **more):
        result = {"name": defect.name, "digest": defect.digest, "seeds": self.seeds, "found": found, **more}
        self.known[defect.name, defect.digest] = result
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


# In the processes that play:

simulators = {}


def start_worker(cores):
    os.sched_setaffinity(0, {cores.get()})
    multiprocessing.util.Finalize(None, close_simulators, exitpriority=10)


def close_simulators():
    while simulators:
        simulators.popitem()[1].close()


def play_block(programs, seeds):
    """(seeds played, failures of the last one)"""
    if programs not in simulators:
        if len(simulators) >= 4:
            simulators.pop(next(iter(simulators))).close()
        simulators[programs] = simulate.Simulator(os.path.join(programs, "bin"))
    for played, seed in enumerate(seeds, 1):
        try:
            failures = simulators[programs].play(draw(seed, LENGTH_MS))[1]
        except Exception as error:  # of a check, by what a defect has left
            failures = [f"simulation: {type(error).__name__}: {error}"]
        if failures:
            return played, failures
    return len(seeds), []


def run_tests(programs, found_by):
    """What failed, as play_block()."""
    program, tests = found_by
    limited = ["prlimit", f"--cpu={TEST_SECONDS}", os.path.join(programs, "bin", program), tests, "--abort", "--reporter", "xml"]
    done = subprocess.run(limited, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return 1, []
    names = FAILED_TEST.findall(done.stdout)
    return 1, [f"{names[-1] if names else program}: exit status {done.returncode}"]


class Search:
    """For one defect: which seeds have been played, and what failed."""

    def __init__(self, defect, first, last):
        self.defect, self.next, self.last = defect, first, last
        self.begun = {}  # of a future: its seeds
        self.failures = {}  # of a seed
        self.sound = None  # the future that plays the failing seed without the defect

    @property
    def stories(self):
        return self.defect.found_by == ("stories",)

    @property
    def exhausted(self):
        return bool(self.failures) or self.next > self.last

    def begin(self, pool, programs):
        if not self.stories:
            self.next = self.last + 1
            self.begun[pool.submit(run_tests, programs, self.defect.found_by)] = range(1)
            return
        size = FIRST_BLOCK if self.next <= FIRST_STORIES else BLOCK
        seeds = range(self.next, min(self.next + size, self.last + 1))
        self.next = seeds[-1] + 1
        self.begun[pool.submit(play_block, programs, seeds)] = seeds

    def end(self, future):
        seeds = self.begun.pop(future)
        played, failures = future.result()
        if failures:
            self.failures[seeds[played - 1]] = failures

    def oldest(self):
        """Seeds below have all been played."""
        return min([seeds[0] for seeds in self.begun.values()] + [self.next])


class Finder:
    def __init__(self, options, defects):
        self.options, self.defects = options, defects
        self.deadline = time.monotonic() + options.minutes * 60 if options.minutes else float("inf")
        os.makedirs(options.work, exist_ok=True)
        self.programs = Programs(os.path.join(options.work, "programs"))
        self.results = Results(options.results or os.path.join(options.work, "results.jsonl"), options.seeds)
        self.ready, self.searches, self.building, self.errors = queue.Queue(), [], 0, []

    def left(self):
        return [d for d in self.defects if (known := self.results.of(d)) is None or known["found"] is None]

    def time_is_up(self):
        return time.monotonic() > self.deadline

    @staticmethod
    def target(defect):
        return "petacqd" if defect.found_by == ("stories",) else defect.found_by[0]

    def find(self):
        left = self.left()
        if left:
            todo = queue.Queue()
            for defect in left:
                todo.put(defect)
            trees = [Tree(os.path.join(self.options.work, f"tree-{i + 1}"), self.options)
                     for i in range(min(self.options.builds, len(left)))]
            self._make_sound(trees[0], left)
            self.building = len(trees)
            builders = [threading.Thread(target=self._build, args=(tree, todo, tree is not trees[0])) for tree in trees]
            for builder in builders:
                builder.start()
            self._search()
            for builder in builders:
                builder.join()

    def _make_sound(self, tree, defects):
        """The programs without a defect, and all that the others have in common with them."""
        tree.take_sources()
        tree.configure()
        targets = sorted({self.target(defect) for defect in defects} - {"petacqd"})
        stories = any(defect.found_by == ("stories",) for defect in defects)
        begin = time.monotonic()
        if stories and not self.options.bin:
            targets += SOUND
        if targets and (why := tree.make(targets)):
            raise SystemExit(f"simulate: the sources do not compile: {why}")
        print(f"built without a defect in {time.monotonic() - begin:.0f} s", flush=True)
        for found_by in {defect.found_by for defect in defects} - {("stories",)}:
            if failures := run_tests(tree.build, found_by)[1]:
                raise SystemExit(f"simulate: {' '.join(found_by)} fails without a defect: {failures[0]}")
        if stories:
            self.programs.keep_sound(os.path.dirname(os.path.abspath(self.options.bin)) if self.options.bin else tree.build)

    def _build(self, tree, todo, fresh):
        try:
            if fresh:
                tree.take_sources()
                tree.configure()
            while not self.time_is_up():
                try:
                    defect = todo.get_nowait()
                except queue.Empty:
                    return
                why = ""
                if not os.path.exists(os.path.join(self.programs.of(defect), "complete")):
                    target = self.target(defect)
                    why = tree.make_planted(defect, target)
                    if not why:
                        self.programs.keep(defect, tree.build, target)
                        with open(os.path.join(self.programs.of(defect), "complete"), "w", encoding="ascii"):
                            pass
                self.ready.put((defect, why))
        finally:
            self.ready.put((None, ""))

    def _search(self):
        cores, usable = multiprocessing.Queue(), sorted(os.sched_getaffinity(0))
        for job in range(self.options.jobs):
            cores.put(usable[job % len(usable)])
        with concurrent.futures.ProcessPoolExecutor(self.options.jobs, initializer=start_worker, initargs=(cores,)) as pool:
            while (self.building or self.searches) and not self.time_is_up():
                self._take_ready()
                self._begin(pool)
                futures = [f for s in self.searches for f in [*s.begun, *([s.sound] if s.sound else [])]]
                if not futures:
                    time.sleep(0.2)
                    continue
                done, _ = concurrent.futures.wait(futures, 1, concurrent.futures.FIRST_COMPLETED)
                for search in list(self.searches):
                    self._follow(search, done, pool)
            for search in self.searches:
                if search.stories and not search.failures:
                    for future in [f for f in search.begun if f.cancel()]:
                        seeds = search.begun.pop(future)
                        search.next = min(search.next, seeds[0])
                    self.results.add(search.defect, None, next=search.oldest())
            pool.shutdown(cancel_futures=True)

    def _take_ready(self):
        while not self.ready.empty():
            defect, why = self.ready.get()
            if defect is None:
                self.building -= 1
            elif why:
                self.errors.append(f"{defect.name}: does not compile: {why}")
                print(self.errors[-1], flush=True)
            else:
                known = self.results.of(defect) or {}
                seeds = self.options.seeds
                self.searches.append(Search(defect, known.get("next", seeds[0]), seeds[-1]))

    def _begin(self, pool):
        """Keeps all jobs busy. What has been played least comes first."""
        while sum(len(search.begun) for search in self.searches) < self.options.jobs + self.options.jobs // 4 + 1:
            open_ones = [search for search in self.searches if not search.exhausted]
            if not open_ones:
                return
            search = min(open_ones, key=lambda s: s.next)
            search.begin(pool, self.programs.of(search.defect))

    def _follow(self, search, done, pool):
        for future in [f for f in search.begun if f in done]:
            search.end(future)
        if search.begun or not search.exhausted:
            return
        if not search.failures:
            self._settle(search, False)
            return
        seed = min(search.failures)
        # A text begins with its check, or with the name of a test, which may have a colon.
        checks = sorted({text.split(": ", 1)[0] if search.stories else text.rsplit(": ", 1)[0] for text in search.failures[seed]})
        if search.stories and search.sound is None:
            search.sound = pool.submit(play_block, self.programs.sound, [seed])
        elif search.sound is None or search.sound in done:
            sound = [] if search.sound is None else search.sound.result()[1]
            if sound:
                self.errors.append(f"seed {seed} fails without a defect: {sound[0]}")
                print(self.errors[-1], flush=True)
                search.next, search.failures, search.sound = seed + 1, {}, None
                return
            where = {"seed": seed, "stories": seed - self.options.seeds[0] + 1} if search.stories else {}
            self._settle(search, True, checks=checks, failure=search.failures[seed][0][:300], **where)

    def _settle(self, search, found, **more):
        self.results.add(search.defect, found, **more)
        self.programs.drop(search.defect)
        self.searches.remove(search)
        print(f"{search.defect.name}: {describe(self.results.of(search.defect))}", flush=True)


def describe(result):
    if result is None or result["found"] is None:
        return "not known yet"
    if not result["found"]:
        return "NOT FOUND"
    where = f", seed {result['seed']}" if "seed" in result else ""
    return f"found by {', '.join(result['checks'])}{where}: {result['failure']}"


def table(defects, results):
    yield "| defect | file | breaks | found by | stories |"
    yield "|---|---|---|---|---|"
    for defect in defects:
        result = results.of(defect) or {"found": None}
        by = ", ".join(f"`{name}`" for name in result["checks"]) if result["found"] else "**not found**"
        if result["found"] is None:
            by = "not known yet"
        yield f"| {defect.name} | `{defect.file}` | {defect.breaks} | {by} | {result.get('stories', '')} |"


def parse(arguments):
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--planted", nargs="*", metavar="NAME", required=True, help="defects, or lists of them (default: all)")
    parser.add_argument("--seeds", type=simulate.range_of, default=range(1, 10001), metavar="A-B",
                        help="stories that are played until one fails (default: 1-10000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="stories at a time, and compilers (default: one for each core)")
    parser.add_argument("--builds", type=int, default=1, help="build directories (default: 1)")
    parser.add_argument("--minutes", type=float, help="begins nothing after this time")
    parser.add_argument("--bin", metavar="DIR", help="programs without a defect, of these sources (default: they are built, too)")
    parser.add_argument("--work", default=os.path.join(simulate.SOURCE, "build", "planted"), metavar="DIR",
                        help="where the sources are copied and built (default: build/planted)")
    parser.add_argument("--results", metavar="FILE", help="what has been found (default: results.jsonl there)")
    parser.add_argument("--cmake", default="", metavar="OPTIONS", help="more options for CMake")
    parser.add_argument("--table", action="store_true", help="print what is known, and plant nothing")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    try:
        planted.check_all(simulate.SOURCE)
        defects = planted.chosen(planted.read_all(), options.planted)
    except planted.PlantedError as error:
        print(f"simulate: {error}", file=sys.stderr)
        return TOO_FEW
    finder = Finder(options, defects)
    if not options.table:
        finder.find()
    known = [finder.results.of(defect) for defect in defects]
    print("\n".join(table(defects, finder.results)))
    found, open_ones = sum(bool(r and r["found"]) for r in known), sum(r is None or r["found"] is None for r in known)
    print(f"{found} of {len(defects)} planted defects found ({100 * found / len(defects):.1f} %), {open_ones} not known yet")
    if finder.errors:
        print("\n".join(finder.errors))
        return TOO_FEW
    if found >= ENOUGH * len(defects):
        return 0
    return UNFINISHED if found + open_ones >= ENOUGH * len(defects) else TOO_FEW


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
