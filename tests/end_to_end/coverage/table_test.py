"""Every kind of file by every consumer: duration, decay to the start of the run, rules, energy window and the share of the data
that arrived are those that follow from the operations.

usage: table_test.py BIN_DIRECTORY SOURCE_TREE"""

import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import reference

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from drawing import petlm_draws  # noqa: E402

SCANNER = {
    "name": "ring of twelve", "tick_ps": 15.625,
    "geometry": {"channels": 6, "modules": {"y": 2, "z": 2}, "blocks": {"y": 2, "z": 1}, "crystals": {"y": 5, "z": 4},
                 "bdm_count": 24, "du_count": 2, "position_size": 64},
    "dimensions": {"ring_radius_mm": 32, "crystal_pitch_y_mm": 1.6, "crystal_pitch_z_mm": 3, "crystal_length_mm": 12},
    "sources": [{"id": i, "bdms": list(range(6 * i, 6 * i + 6))} for i in range(4)]}
RULES = {"window_ticks": 320, "delay_ticks": 6400, "min_module_difference": 2}
ENERGY = {"filter": True, "lower_keV": 400.0, "upper_keV": 600.0}
HALF_LIFE_S, POSITRONS_PER_DECAY = 75.45, 0.9543  # of Rb-82, in config/nuclides/nuclides.cpp
TICK_S = SCANNER["tick_ps"] * 1e-12


def ticks(seconds):
    return round(seconds / TICK_S)


class Table:
    def __init__(self, programs, tree, directory):
        self.programs = programs
        self.tree = tree
        self.directory = directory
        self.wrong = []
        self.write("s.scanner.json", SCANNER)
        self.program("petcal", "make", "--scanner", "s.scanner.json", "--output", "s.h5")
        self.configure("s.json")
        for host, ids in (("a", [0, 1]), ("b", [2, 3])):
            self.configure(host + ".json", data_dir=host, clock="one", sources={"ids": ids},
                           listmode={"write_singles": True, "write_coincidences": False})

    def file(self, *names):
        return os.path.join(self.directory, *names)

    def write(self, name, document):
        with open(self.file(name), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def configure(self, name, **changes):
        configuration = {
            "scanner": "s.scanner.json", "calibration": "s.h5", "data_dir": "data", "coincidence": RULES, "energy": ENERGY,
            "http": {"listen": ""}, "control": {"socket": "s.sock"}, "listmode": {"write_singles": True},
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}], "lock_memory": False, "batch_count": 32,
                        "batch_bytes": 262144}, **changes}
        os.makedirs(self.file(configuration["data_dir"]), exist_ok=True)
        self.write(name, configuration)

    def program(self, name, *arguments, status=0):
        done = subprocess.run([os.path.join(self.programs, name), *map(str, arguments)], cwd=self.directory, text=True,
                              capture_output=True, check=False)
        if done.returncode != status:
            raise RuntimeError(f"{name} {arguments}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def petlm(self, *arguments):
        return self.program("petlm", *arguments)

    def simulate(self, capture, *options):
        self.program("petsim", "--crystals", "surface", "--scanner", "s.scanner.json", "--calibration", "s.h5", "--quiet", "--write", capture, "--fast",
                     "--cylinder", "0,0,0,10,20,0.5", "--duration-s", 4, *options)

    def measure(self, run, *options):
        """A run of which a board is silent for a second."""
        self.simulate(run + ".pcap", "--silent", "1@1-2", "--cycle", "0.5,0.02", "--tag-trigger", 1, "--tag-gate", "2:0.5-1",
                      *options)
        self.replay("s.json", run + ".pcap", run)

    def normalise(self):
        self.simulate("flood.pcap")
        self.replay("s.json", "flood.pcap", "flood")
        self.program("petcal", "derive", "normalisation", "--scanner", "s.scanner.json", "--run", "data/flood", "--cylinder",
                     "0,0,0,10,20", "--attenuation-per-cm", 0, "--depth-mm", 0, "-o", "n.h5")

    def replay(self, configuration, capture, run):
        self.program("petacqd", "--config", configuration, "--replay", capture, "--run", run)

    def run_coverage(self, run):
        with open(self.file(run, "run.json"), encoding="utf-8") as file:
            return json.load(file)["coverage"]

    def coverage_of(self, target):
        """By petlm info; of a run, that of its coincidences."""
        found = json.loads(self.petlm("info", "--json", target))
        if "coverage" in found:
            return found["coverage"]
        return next(file["coverage"] for file in found["files"] if file["kind"] == "coincidences")

    def tags(self, run):
        return list(csv.DictReader(io.StringIO(self.petlm("dump", run + "/tags.plm"))))

    def seconds(self, run):
        """(start, end, mean live share)"""
        text = self.petlm("dump", "--seconds", run)
        lengths = [(int(row["start"]), int(row["length"])) for row in csv.DictReader(io.StringIO(text))]
        shares = list(csv.reader(io.StringIO(self.petlm("dump", "--seconds", run, "--field", "module_live"))))[1:]
        modules = SCANNER["geometry"]["bdm_count"]
        return [(start, start + size, sum(map(float, row[-modules:])) / modules)
                for (start, size), row in zip(lengths, shares)]

    def expect(self, kind, consumer, what, found, expected, tolerance):
        good = found is not None and expected is not None and abs(found - expected) <= tolerance * max(1e-9, abs(expected))
        if not good:
            self.wrong.append(f"{kind}, {consumer}: {what} is {found}, expected {expected}")

    def expect_same(self, kind, consumer, what, found, expected):
        if found != expected:
            self.wrong.append(f"{kind}, {consumer}: {what} is {found}, expected {expected}")


def rows_of_readme(text):
    return dict(line.split(": ", 1) for line in text.split("\n\n")[0].splitlines() if ": " in line)


def number(text):
    return float(re.match(r"[-+.0-9e]+", text).group())


class Consumers:
    """Each asks one program and compares what it states."""

    def __init__(self, table, kind, target, expected):
        self.table, self.kind, self.target, self.expected = table, kind, target, expected
        self.out = "out"
        shutil.rmtree(table.file(self.out), ignore_errors=True)

    def compare(self, consumer, duration=None, decay=None, start=None, share=None, window=None, energy=None, tolerance=1e-6):
        expected = self.expected
        for what, found, value, within in (("duration", duration, expected["duration_s"], tolerance),
                                           ("start", start, expected["start_s"], 1e-6),
                                           ("decay", decay, expected["decay"], 1e-4),
                                           ("live share", share, expected["live"], 1e-3)):
            if found is not None:
                self.table.expect(self.kind, consumer, what, found, value, within)
        if window is not None:
            self.table.expect_same(self.kind, consumer, "window", window, expected["window_ticks"])
        if energy is not None:
            self.table.expect_same(self.kind, consumer, "energy window", energy, expected["energy"])

    def read(self, name):
        with open(self.table.file(self.out, name), encoding="utf-8") as file:
            return file.read()

    def readme(self, consumer, rows, decay=True):
        energy = rows["energy window"]
        self.compare(consumer, duration=number(rows["recorded time"]), window=int(number(rows["coincidence window"])),
                     decay=number(rows["decay of Rb-82"]) if decay else None,
                     share=number(rows["data that arrived"]) / 100 if "%" in rows["data that arrived"] else -1,
                     energy=None if energy == "none" else [float(word) for word in re.findall(r"[0-9.]+", energy)])

    def castor(self):
        self.table.petlm("export", "--format", "castor", self.target, "-o", self.out, "--nuclide", "Rb-82", "--depth-mm", 0)
        header = dict(line.split(": ", 1) for line in self.read("prompts.cdh").splitlines() if ": " in line)
        duration, start = float(header["Duration (s)"]), float(header["Start time (s)"])
        # The programs count whole milliseconds.
        self.compare("castor", start=start, duration=duration, tolerance=1e-3 / duration)
        self.compare("castor", decay=float(header["Calibration factor"]) * POSITRONS_PER_DECAY)
        self.readme("castor README", rows_of_readme(self.read("README.txt")))
        scanner = dict(line.split(": ", 1) for line in self.read("ring_of_twelve.hscan").splitlines())
        modules = self.expected["min_module_difference"]
        self.table.expect(self.kind, "castor", "min angle", float(scanner["min angle difference"]),
                          (modules - 0.5) * 360 / 12, 1e-9)

    def stir(self):
        self.table.petlm("export", "--format", "stir", self.target, "-o", self.out, "--force", "--nuclide", "Rb-82",
                         "--depth-mm", 0)
        header = dict(line.split(" := ", 1) for line in self.read("template.hs").splitlines() if " := " in line)
        energy = [float(header[f"energy window {edge} level[1]"]) for edge in ("lower", "upper")] \
            if "number of energy windows" in header else None
        duration = float(header["image duration (sec)[1]"])
        self.compare("stir", start=float(header["image relative start time (sec)[1]"]), duration=duration, energy=energy,
                     tolerance=1e-3 / duration)
        self.readme("stir README", rows_of_readme(self.read("README.txt")))

    def hdf5(self):
        self.table.petlm("export", "--format", "hdf5", self.target, "-o", "out.h5", "--force")
        with open(self.table.file("out.h5.README.txt"), encoding="utf-8") as file:
            self.readme("hdf5 README", rows_of_readme(file.read()), decay=False)

    def image(self):
        # As Rb-82 decays. That one has gammas, which the runs do not have, and which are followed for each image.
        self.table.petlm("image", self.target, "-o", "image", "--force", "--normalisation", "n.h5", "--nuclide", "X-82",
                         "--half-life-s", HALF_LIFE_S, "--branching-ratio", POSITRONS_PER_DECAY, "--depth-mm", 0, "--voxel-mm", 6)
        with open(self.table.file("image", "image.json"), encoding="utf-8") as file:
            image = json.load(file)
        loss = image["corrections"]["loss"]
        self.compare("image", duration=image["duration_s"], decay=image["corrections"]["decay"]["factor"],
                     share=1 - loss["lost"] if "lost" in loss else -1)
        self.rules("image", image["coverage"])

    def info(self):
        self.rules("info", self.table.coverage_of(self.target))

    def rules(self, consumer, coverage):
        duration = reference.length([tuple(i) for i in coverage["intervals"]]) * TICK_S
        energy = coverage["rules"]["energy"]
        self.compare(consumer, duration=duration, window=coverage["rules"]["coincidence"]["window_ticks"],
                     energy=[energy["lower_keV"], energy["upper_keV"]] if energy["filter"] else None)

    def nema(self):
        self.table.petlm("nema", "sensitivity", self.target, "-o", "nema", "--force", "--activity-mbq", 1, "--nuclide", "Rb-82",
                         "--depth-mm", 0)
        with open(self.table.file("nema", "positions.csv"), encoding="utf-8") as file:
            row = next(csv.DictReader(file))
        self.compare("nema", duration=float(row["duration_s"]), decay=1 / float(row["activity_MBq"]), tolerance=1e-5)

    def plot(self):
        if not petlm_draws(self.table.programs):
            return
        self.table.petlm("plot", self.target, "-o", "plot", "--force", "--png-width", 200)
        with open(self.table.file("plot", "report.html"), encoding="utf-8") as file:
            text = file.read()
        part = text[text.index("What the records cover"):]
        rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', part[:part.index("</table>")])
        self.readme("plot", {html.unescape(name): html.unescape(value) for name, value in rows}, decay=False)

    def python(self):
        sys.path.insert(0, os.path.join(self.table.tree, "tools", "python", "src"))
        try:
            import petacq  # pylint: disable=import-outside-toplevel
        except ImportError:
            return  # without NumPy
        path = self.table.file(self.target)
        coverage = (petacq.open_run if os.path.isdir(path) else petacq.PlmFile)(path).coverage
        self.compare("python", duration=coverage.duration_s, decay=coverage.decay_factor(HALF_LIFE_S),
                     window=coverage.coincidence["window_ticks"])


def expected_of(intervals, start, seconds, rules=None, energy=ENERGY):
    rules = {**RULES, **(rules or {})}
    return {"duration_s": reference.length(intervals) * TICK_S, "start_s": max(0, intervals[0][0] - start) * TICK_S,
            "decay": reference.decay_factor(intervals, start, HALF_LIFE_S / TICK_S),
            "live": reference.live(intervals, seconds), "window_ticks": rules["window_ticks"],
            "min_module_difference": rules["min_module_difference"],
            "energy": [energy["lower_keV"], energy["upper_keV"]] if energy["filter"] else None}


def kinds_of(table):
    """(name, target, what is expected) of each kind of file."""
    table.measure("run")
    run = "data/run"
    coverage = table.run_coverage(run)
    whole = [tuple(interval) for interval in coverage["intervals"]]
    start = coverage["anchor"]["ticks"]
    seconds = table.seconds(run)
    tags = table.tags(run)
    yield "run", run, expected_of(whole, start, seconds)

    table.measure("late", "--start-time-s", 3600)
    late = table.run_coverage("data/late")
    late_whole = [tuple(interval) for interval in late["intervals"]]
    table.expect("late start", "petacqd", "its start", late["anchor"]["ticks"] * TICK_S, 3600, 1e-5)
    table.expect("late start", "petacqd", "its length", reference.length(late_whole) * TICK_S, 4, 1e-3)
    yield "late start", "data/late", expected_of(late_whole, late["anchor"]["ticks"], table.seconds("data/late"))

    def cut(target, first, last, name):
        table.petlm("cut", target, "--from-s", first, "--to-s", last, "-o", run + "/" + name)
        return run + "/" + name, [(ticks(first), ticks(last))]

    a, in_a = cut(run, 0.5, 2.5, "a.plm")
    in_a = reference.intersect(whole, in_a)
    yield "cut", a, expected_of(in_a, start, seconds)
    aa, in_aa = cut(a, 1.25, 4, "aa.plm")
    yield "cut of a cut", aa, expected_of(reference.intersect(in_a, in_aa), start, seconds)

    triggers = [int(tag["time"]) for tag in tags if tag["kind"] == "trigger" and tag["channel"] == "1"]
    table.petlm("gate", run, "--channel", 1, "--bins", 4)
    phases = [reference.intersect(whole, reference.phase(triggers, number, 4)) for number in range(1, 5)]
    yield "phase", run + "/gate-1/phase-02.plm", expected_of(phases[1], start, seconds)
    changes = [(int(tag["time"]), int(tag["value"]) != 0) for tag in tags if tag["kind"] == "gate" and tag["channel"] == "2"]
    if changes[0][1] is False:
        changes.insert(0, (0, True))
    table.petlm("cut", run, "--gate", 2, "-o", run + "/open.plm")
    yield "half-open gate", run + "/open.plm", \
        expected_of(reference.intersect(whole, reference.open_gate(changes, whole[-1][1])), start, seconds)
    table.petlm("cut", run + "/gate-1/phase-02.plm", "--from-s", 0, "--to-s", 2, "-o", run + "/gate-1/p2c.plm")
    yield "cut of a phase", run + "/gate-1/p2c.plm", \
        expected_of(reference.intersect(phases[1], [(0, ticks(2))]), start, seconds)

    b, in_b = cut(run, 3, 3.5, "b.plm")
    table.petlm("merge", a, b, "-o", run + "/ab.plm")
    yield "merge of cuts", run + "/ab.plm", \
        expected_of(reference.unite(in_a, reference.intersect(whole, in_b)), start, seconds)
    table.petlm("merge", run + "/gate-1/phase-01.plm", run + "/gate-1/phase-03.plm", "-o", run + "/gate-1/p13.plm")
    yield "merge of phases", run + "/gate-1/p13.plm", \
        expected_of(reference.unite(phases[0], phases[2]), start, seconds)

    table.petlm("resort", run, "-o", "data/resorted", "--window-ticks", 200, "--min-module-difference", 4)
    # Singles that arrived in the first datagram may lie before the start of the run, and are searched, too.
    first = int(next(csv.DictReader(io.StringIO(table.petlm("dump", run + "/singles.plm", "--limit", 1))))["time"])
    searched = reference.unite(whole, [(min(first, start), start)] if first < start else [])
    yield "resorted with other rules", "data/resorted", \
        expected_of(searched, start, seconds, {"window_ticks": 200, "min_module_difference": 4})

    shutil.copytree(table.file(run), table.file("data/broken"))
    for name in ("gate-1",):
        shutil.rmtree(table.file("data/broken", name), ignore_errors=True)
    broken = table.file("data/broken/coincidences.plm")
    os.truncate(broken, os.path.getsize(broken) - 10)
    table.petlm("recover", "data/broken/coincidences.plm", "-o", "data/broken/saved.plm")
    survived = [tuple(interval) for interval in table.coverage_of("data/broken/saved.plm")["intervals"]]
    last = max(int(row["time"]) for row in csv.DictReader(io.StringIO(table.petlm("dump", "data/broken/saved.plm"))))
    table.expect_same("recovered", "recover", "no more than the run", reference.intersect(survived, whole), survived)
    table.expect_same("recovered", "recover", "its last record", survived[-1][1] > last, True)
    yield "recovered", "data/broken/saved.plm", expected_of(survived, start, seconds)

    for host in ("a", "b"):
        table.replay(host + ".json", "run.pcap", "host")
    table.petlm("resort", "a/host", "b/host", "-o", "data/hosts")
    hosts = table.run_coverage("data/hosts")
    yield "several hosts", "data/hosts", expected_of([tuple(i) for i in hosts["intervals"]], hosts["anchor"]["ticks"],
                                                     table.seconds("data/hosts"))


def main():
    programs, tree = map(os.path.abspath, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as directory:
        table = Table(programs, tree, directory)
        count = 0
        table.normalise()
        for kind, target, expected in kinds_of(table):
            count += 1
            consumers = Consumers(table, kind, target, expected)
            for consumer in ("castor", "stir", "hdf5", "image", "info", "nema", "plot", "python"):
                try:
                    getattr(consumers, consumer)()
                except (RuntimeError, KeyError, AttributeError) as error:
                    table.wrong.append(f"{kind}, {consumer}: {error!r}")
        for line in table.wrong:
            print(line)
        print(f"{count} kinds of file, {len(table.wrong)} wrong")
        sys.exit(0 if count == 12 and not table.wrong else 1)


if __name__ == "__main__":
    main()
