"""Every tool over a run, and what it gives compared with the plain run."""

import csv
import glob
import io
import os
import re
import shutil
import sys

from acquisition import ProgramFailed

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))

from drawing import petlm_draws  # noqa: E402

# What names the run or the time of day, how long a program took, and the share of the data that arrived, which is not known of
# the parts of a run.
NAMES = re.compile(r"""\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\ UTC)?|^Made\ by\ .*|^Seconds:\ .*|^of\ run\ .*
                   |^study\ (date|time)\ .*|^\s*"(unix_ns|live|input)":\ .*""", re.MULTILINE | re.VERBOSE)
# Joined hosts start with the host that started first, their records with the one that started last.
STARTS = re.compile(r"""^first\ recorded\ time.*\n|from\ \S+\ s\ to\ \S+\ s\ after\ the\ start\ of\ the\ run|^Start\ time\ \(s\).*
                    |^\s*"ticks":\ .*|^image\ relative\ start\ time.*""", re.MULTILINE | re.VERBOSE)
# The boards here send faster than real time: by which of the first datagrams a time of day is taken changes it by their distance.
CLOCK_NS = 100_000_000
PAIR = ("kind", "time", "dt", "crystal_a", "crystal_b")
TEXTS = (".txt", ".cdh", ".hs", ".par", ".fdef", ".csv", ".hscan", ".json")
NOT_COMPARED = (".html", ".png", ".h5")  # they name the run


class Different(Exception):
    pass


def same(what, found, expected):
    if found != expected:
        raise Different(f"{what}: found {shortened(found, expected)}, expected {shortened(expected, found)}")


def within(what, found, expected, tolerance):
    if abs(found - expected) > tolerance:
        raise Different(f"{what}: found {found}, expected {expected} within {tolerance}")


def shortened(value, other):
    """The lines of a long text that the other one does not have."""
    if not isinstance(value, str) or not isinstance(other, str) or len(value) < 200:
        return repr(value) if len(repr(value)) < 500 else repr(value)[:200] + "..."
    lines, others = value.splitlines(), set(other.splitlines())
    lone = [line for line in lines if line not in others]
    return f"{len(lines)} lines, {len(lone)} others: {lone[:3]}"


class Tools:
    def __init__(self, site, run):
        self.site, self.run = site, run
        self.draws = petlm_draws(site.programs)
        # Of singles alone, the tools for coincidences take what petlm resort makes of them.
        self.target = run.directory if run.has_coincidences else os.path.join(run.name, "resorted")

    def complaints(self):
        found = []
        for tool in ("verify", "resort", "records", "coverage", "seconds", "halves", "hosts", "raw", "recover", "tags", "gate",
                     "refusals", "export", "image", "plot", "check", "python"):
            try:
                getattr(self, tool)()
            except (ProgramFailed, Different, KeyError, OSError, ValueError, TimeoutError) as error:
                found.append(f"{tool}: {error if isinstance(error, (ProgramFailed, Different)) else repr(error)}")
        return found

    def dump(self, target, *options):
        return self.site.petlm("dump", target, *options)

    def verify(self):
        for directory in (self.run.directory, *self.run.hosts):
            self.site.petlm("info", directory)
            self.site.petlm("verify", directory)

    def resort(self):
        if not self.run.has_singles:
            return
        output = os.path.join(self.run.name, "resorted")
        self.site.petlm("resort", self.run.directory, "-o", output)
        self.site.petlm("verify", output)
        same("records", self.dump(output), self.dump(self.run.plain))
        self.same_triples(output, self.run.plain)
        same("seconds", self.seconds_of(output), self.seconds_of(self.run.plain))
        self.same_coverage(self.site.coverage(output))

    def records(self):
        same("coincidences", self.dump(self.target), self.dump(self.run.plain))
        self.same_triples(self.target, self.run.plain)
        if self.run.has_singles:
            same("singles", self.singles_of(self.run.directory), self.singles_of(self.run.plain))

    def singles_of(self, run):
        return self.records_of(run, "--singles")

    def same_triples(self, run, other):
        """Of runs without gammas, that neither has any."""
        if not self.run.has_triples:
            same("files of triples", glob.glob(self.site.file(run, "triples*")), [])
            return
        found = self.records_of(run, "--triples")
        if found.count("\n") < 100:
            raise Different(f"too few triples to compare: {found.count(chr(10))} lines")
        same("triples", found, self.records_of(other, "--triples"))

    def records_of(self, target, *kind):
        if not kind:
            return self.dump(target)
        self.site.petlm("merge", *kind, target, "-o", "kind.plm", "--force")
        return self.dump("kind.plm")

    def coverage(self):
        self.same_coverage(self.site.coverage(self.run.directory))
        for kind, parts in self.site.coverage_of_files(self.run.directory).items():
            self.same_coverage({**parts[0], "intervals": united(part["intervals"] for part in parts)}, kind)

    def same_coverage(self, found, kind="coincidences"):
        """That of the plain run. Singles have no window, pairs no gammas, and tags no rules at all."""
        expected = self.site.coverage(self.run.plain)
        same(kind + ": intervals", found["intervals"], expected["intervals"])
        rules = dict(expected["rules"])
        if kind in ("singles", "tags") or (kind == "coincidences" and found["rules"]["coincidence"] is None):
            rules["coincidence"] = None
        if kind in ("singles", "triples") and self.run.has_triples:
            rules["gammas"] = self.gammas()
        if kind == "tags":
            rules["energy"] = None
        same(kind + ": rules", found["rules"], rules)
        self.same_anchor(kind, found["anchor"], expected)
        for origin in ("calibration_sha256", "scanner_sha256"):
            same(kind + ": " + origin, found["origin"][origin], expected["origin"][origin])
        same(kind + ": complete seconds", found["loss"]["seconds_complete"], True)

    def gammas(self):
        """The rule of the plain run for gammas."""
        return self.site.coverage_of_files(self.run.plain)["triples"][0]["rules"]["gammas"]

    def same_anchor(self, kind, found, expected):
        if self.run.hosts:  # joined, they start with the host that started first
            off_s = (found["ticks"] - expected["anchor"]["ticks"]) * expected["tick_ps"] * 1e-12
            within(kind + ": time of day", found["unix_ns"] - off_s * 1e9, expected["anchor"]["unix_ns"], 1_000_000)
            return
        same(kind + ": start of the run", found["ticks"], expected["anchor"]["ticks"])
        if self.run.host_time is None:
            same(kind + ": time of day", found["unix_ns"], expected["anchor"]["unix_ns"])
        else:
            before, after = self.run.host_time
            within(kind + ": time of day", found["unix_ns"], (before + after) / 2, (after - before) / 2 + CLOCK_NS)

    def seconds(self):
        if self.run.has_coincidences:
            same("seconds", self.seconds_of(self.run.directory), self.seconds_of(self.run.plain))
        fields = ("start", "length", "decided")
        same("singles of the seconds", columns(self.dump(self.run.directory, "--seconds"), fields),
             columns(self.dump(self.run.plain, "--seconds"), fields))

    def seconds_of(self, run):
        return self.dump(run, "--seconds") + "".join(
            self.dump(run, "--seconds", "--field", field)
            for field in ("module_singles", "module_prompts", "module_dt", "module_live"))

    def halves(self):
        """Both halves of a run, merged, are the run."""
        if self.run.has_coincidences:
            self.halves_of(self.run.directory, "coincidences")
            if self.run.has_triples:
                self.halves_of(self.run.directory, "triples", "--triples")
        if self.run.has_singles:
            self.halves_of(self.run.directory, "singles", "--singles")

    def halves_of(self, target, kind, *options):
        start, end = self.site.coverage(target)["intervals"][0]
        middle = (start + end) // 2
        directory = os.path.dirname(target)
        parts = [os.path.join(directory, name) for name in ("first.plm", "second.plm", "whole.plm")]
        self.site.petlm("cut", target, *options, "--to-ticks", middle, "-o", parts[0], "--force")
        self.site.petlm("cut", target, *options, "--from-ticks", middle, "-o", parts[1], "--force")
        self.site.petlm("merge", *parts[:2], "-o", parts[2], "--force")
        same(f"merged halves of {kind}", self.dump(parts[2]), self.records_of(target, *options))
        for part, interval in zip(parts, ([start, middle], [middle, end], [start, end])):
            self.site.petlm("verify", part)
            same(os.path.basename(part), self.site.coverage_of(part)["intervals"], [interval])
        self.same_coverage(self.site.coverage_of(parts[2]), kind)

    def hosts(self):
        if self.run.hosts:
            self.site.petlm("merge", "--singles", *self.run.hosts, "-o", "hosts.plm", "--force")
            self.site.petlm("cut", "hosts.plm", "-o", "common.plm", "--force",
                            *interval_options(self.site.coverage(self.run.plain)["intervals"]))
            same("singles", self.dump("common.plm"), self.singles_of(self.run.plain))

    def raw(self):
        """A replay of the run's own capture is the run."""
        if self.run.options["raw"] == "no" or self.run.options["source"] != "live":
            return  # a replay writes none
        again = os.path.join(self.run.name, "again")
        self.site.replay(self.run.name + ".json", os.path.join(self.run.directory, "raw.pcap"), "again")
        found, expected = self.site.coverage(again), self.site.coverage(self.run.directory)
        within("time of day", found["anchor"].pop("unix_ns"), expected["anchor"].pop("unix_ns"), 1_000_000)
        for part in ("intervals", "anchor", "rules", "loss"):
            same(part, found[part], expected[part])
        if self.run.has_coincidences:
            same("coincidences", self.dump(again), self.dump(self.run.directory))
            self.same_triples(again, self.run.directory)
        if self.run.has_singles:
            same("singles", self.singles_of(again), self.singles_of(self.run.directory))
        same("seconds", self.dump(again, "--seconds"), self.dump(self.run.directory, "--seconds"))

    def recover(self):
        """Of a sound run, that is the run."""
        output = os.path.join(self.run.name, "recovered")
        self.site.petlm("recover", self.run.directory, "-o", output)
        self.site.petlm("verify", output)
        self.same_coverage(self.site.coverage(output))
        if self.run.has_coincidences:
            same("coincidences", self.dump(output), self.dump(self.run.directory))
            self.same_triples(output, self.run.directory)
        same("seconds", self.dump(output, "--seconds"), self.dump(self.run.directory, "--seconds"))

    def tags(self):
        if self.run.options["tags"] == "all":
            same("tags", *("".join(self.dump(os.path.relpath(file, self.site.directory)).partition("\n")[2] for file in
                                   sorted(glob.glob(self.site.file(run, "tags*.plm"))))
                           for run in (self.run.directory, self.run.plain)))

    def gate(self):
        if self.run.options["tags"] == "none":
            return
        tables = []
        for run in (self.target, self.run.plain):
            self.site.petlm("gate", run, "--channel", 1, "--bins", 3, "-o", "gate", "--force")
            if self.run.has_triples:
                self.gated_triples(run)
            self.site.petlm("cut", run, "--gate", 2, "-o", "gate/open.plm", "--force")
            files = ["gate/open.plm", *(f"gate/phase-{number:02}.plm" for number in (1, 2, 3))]
            self.site.petlm("verify", *files)
            with open(self.site.file("gate/phases.csv"), encoding="utf-8") as file:
                tables.append((file.read(), *((self.dump(file), self.site.coverage_of(file)["intervals"]) for file in files)))
        for what, found, expected in zip(("table", "open gate", "phase 1", "phase 2", "phase 3"), *tables):
            same(what, found, expected)

    def gated_triples(self, run):
        """A triple is of the phase of its pair."""
        self.site.petlm("gate", run, "--triples", "--channel", 1, "--bins", 3, "-o", "gate-triples", "--force")
        of_pairs, of_triples = set(), set()
        for phase in ("phase-01.plm", "phase-02.plm", "phase-03.plm"):
            pairs, triples = os.path.join("gate", phase), os.path.join("gate-triples", phase)
            self.site.petlm("verify", triples)
            same(triples, self.site.coverage_of(triples)["intervals"], self.site.coverage_of(pairs)["intervals"])
            of_pairs.update((phase, *pair) for pair in columns(self.dump(pairs), PAIR))
            of_triples.update((phase, *pair) for pair in columns(self.dump(triples), PAIR))
        if not of_triples or not of_triples <= of_pairs:
            raise Different(f"{len(of_triples)} pairs of triples in the phases, {len(of_triples - of_pairs)} of them not among the pairs there")

    def refusals(self):
        """What asks for records that the run does not have says so."""
        commands = []
        if not self.run.has_coincidences:
            commands = [("dump",), ("cut", "-o", "none"), ("gate", "--channel", 1), ("image", "-o", "none"),
                        ("export", "--format", "csv", "-o", "none")]
            if self.draws:
                commands.append(("plot", "-o", "none"))
        elif not self.run.has_singles:
            commands = [("cut", "--singles", "-o", "none.plm"), ("resort", "-o", "none")]
        if not (self.run.has_triples and self.run.has_coincidences):
            commands.append(("cut", "--triples", "-o", "none.plm"))
        for name, *options in commands:
            done = self.site.run_program("petlm", name, self.run.directory, *options)
            same(f"status of {name}", done.returncode, 65)
            if "without" not in done.stderr:
                raise Different(f"{name}: {done.stderr}")
            same(f"what {name} leaves", glob.glob(self.site.file("none*")), [])

    def of_both(self, output, *arguments, some=()):
        """The files that petlm makes of the run and of the plain one, as text or bytes."""
        results = []
        for run in (self.target, self.run.plain):
            path = self.site.file("out")
            shutil.rmtree(path, ignore_errors=True)
            os.mkdir(path)
            self.site.petlm(*arguments, run, "-o", os.path.join("out", output))
            results.append({file: self.content(path, file, self.site.file(run))
                            for file in sorted(os.path.relpath(os.path.join(folder, name), path)
                                               for folder, _, names in os.walk(path) for name in names)})
        found, expected = results
        if not some:
            same("files", sorted(found), sorted(expected))
        for file in set(found).intersection(expected):
            if not file.startswith(some):
                same(file, found[file], expected[file])

    def content(self, directory, file, run):
        if file.endswith(NOT_COMPARED):
            return None
        with open(os.path.join(directory, file), "rb") as opened:
            data = opened.read()
        if not file.endswith(TEXTS):
            return data
        text = NAMES.sub("", data.decode().replace(run, "RUN"))
        return STARTS.sub("", text) if self.run.hosts else text

    def export(self):
        for form in ("castor", "stir", "coinstruct", "csv", "hdf5"):
            depth = ("--depth-mm", 0) if form in ("castor", "stir") else ()
            # Hosts start one after the other: CASToR and STIR have whole milliseconds since the first start.
            of_time = ("castor/prompts.cdf", "castor/delayeds.cdf", "stir/listmode", "stir/frames") if self.run.hosts else ()
            self.of_both(form + (".h5" if form == "hdf5" else ""), "export", "--format", form, *depth, some=of_time)

    def image(self):
        self.of_both("image", "image", "--depth-mm", 0, "--voxel-mm", 8, "--backend", "cpu", "--threads", 1)

    def plot(self):
        if not self.draws:
            return
        # Pictures of what spectra and histograms hold are made where there are any; these count in time of the host.
        self.of_both("plot", "plot", "--png-width", 200,
                     some=tuple("plot/" + name for name in ("energy-singles", "singles-map", "temperature", "energy-modules", "resolution")))

    def check(self):
        """Of so few counts, petcal says that they are too few, after it has read and compared both runs."""
        if self.run.options["spectra"] == "yes" and self.run.has_coincidences and not self.run.hosts:
            done = self.site.run_program("petcal", "check", "--reference", self.run.plain, "--time-ns", 1000, self.run.directory)
            if done.returncode != 78 or "too few counts for the photopeaks" not in done.stderr:
                raise Different(f"status {done.returncode}: {done.stdout}{done.stderr}")

    def python(self):
        try:
            sys.path.insert(0, os.path.join(self.site.tree, "tools", "python", "src"))
            import petacq  # pylint: disable=import-outside-toplevel
        except ImportError:
            return  # without NumPy
        finally:
            sys.path.pop(0)
        run = petacq.open_run(self.site.file(self.target))
        intervals = self.site.coverage(self.run.plain)["intervals"]
        same("intervals", [list(map(int, interval)) for interval in run.coverage.intervals], intervals)
        same("records", len(run.coincidences), self.dump(self.target).count("\n") - 1)
        triples = self.records_of(self.target, "--triples").count("\n") - 1 if self.run.has_triples else 0
        same("triples", 0 if run.triples is None else len(run.triples), triples)


def united(lists):
    whole = []
    for start, end in sorted(interval for intervals in lists for interval in intervals):
        if whole and whole[-1][1] == start:
            whole[-1][1] = end
        else:
            whole.append([start, end])
    return whole


def interval_options(intervals):
    return "--from-ticks", intervals[0][0], "--to-ticks", intervals[-1][1]


def columns(text, fields):
    return [[row[field] for field in fields] for row in csv.DictReader(io.StringIO(text))]
