"""Features meet: short runs that together hold every possible pair of options, and every tool over each of them. What comes out is
that of a plain run by the same rules: the same records, coverage and seconds, and the same results of the tools.

--long: all runs; otherwise the first ones. --only: the runs with these numbers. --keep: leaves them in a new directory."""

import argparse
import os
import re
import sys
import tempfile

import acquisition
import covering
from tools import Tools

SHORT = 8  # runs: they hold four of five pairs
RULES = ("framing", "format", "tags", "policy", "mode", "delayeds", "gammas")


class Plain:
    """The replays with default options, each made once."""

    def __init__(self, site):
        self._site = site
        self._made = {}

    def run(self, options, *interval):
        rules = {option: options[option] for option in RULES}
        key = (*rules.values(), *interval)
        if key not in self._made:
            directory = f"plain-{len(self._made) + 1:02}"
            configuration = self._site.configure(rules, directory)
            self._site.replay(configuration, self._site.capture(rules)[0], "r", *interval)
            self._made[key] = os.path.join(directory, "r")
        return self._made[key]


class Made:
    """A run of the array, and the plain one to compare it with."""

    def __init__(self, site, plain, number, options):
        self.options = options
        self.name = f"run-{number:02}"
        self.directory = os.path.join(self.name, "r")
        self.hosts = []
        self.host_time = None  # ns since 1970 before and after a live daemon had the data
        interval = ("--from-s", acquisition.FROM_S, "--to-s", acquisition.TO_S) if options["interval"] == "from-to" else ()
        getattr(self, "_" + options["source"])(site, plain, interval)

    def _replay(self, site, plain, interval):
        site.replay(site.configure(self.options, self.name), site.capture(self.options)[0], "r", *interval)
        self.plain = plain.run(self.options, *interval)

    def _live(self, site, plain, interval):
        asked = ("--duration", acquisition.DURATION_S) if self.options["interval"] == "duration" else interval
        self.host_time = site.live(self.options, site.configure(self.options, self.name), "r", *asked)
        if self.options["interval"] == "duration":  # counts from the first data
            whole = site.coverage(plain.run(self.options))
            start = whole["intervals"][0][0]
            interval = ("--from-ticks", start, "--to-ticks",
                        start + round(acquisition.DURATION_S * 1e12 / whole["tick_ps"]))
        self.plain = plain.run(self.options, *interval)

    def _hosts(self, site, plain, interval):
        for host, capture in zip("ab", site.capture(self.options)[1:]):
            configuration = site.configure(self.options, f"{self.name}{host}", host)
            site.replay(configuration, capture, "r", *interval)
            self.hosts.append(os.path.join(f"{self.name}{host}", "r"))
        os.makedirs(site.file(self.name))
        site.petlm("resort", *self.hosts, "-o", self.directory)
        # What all hosts have.
        spans = [site.coverage(host)["intervals"][0] for host in self.hosts]
        self.plain = plain.run(self.options, "--from-ticks", max(start for start, _ in spans), "--to-ticks",
                               min(end for _, end in spans))

    @property
    def has_coincidences(self):
        return self.options["coincidences"] == "on" or bool(self.hosts)

    @property
    def has_triples(self):
        return self.options["gammas"] == "on"

    @property
    def has_singles(self):
        return self.options["singles"] == "yes" and not self.hosts


def chosen(arguments, count):
    if arguments.only:
        return [int(number) for number in arguments.only.split(",")]
    return range(1, (count if arguments.long else SHORT) + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", type=os.path.abspath)
    parser.add_argument("tree", type=os.path.abspath)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", metavar="NUMBER,...")
    parser.add_argument("--keep", metavar="DIRECTORY", type=os.path.abspath)
    arguments = parser.parse_args()
    runs = covering.covering_array()
    covering.prove(runs)
    wrong, made = [], 0
    with tempfile.TemporaryDirectory() as directory:
        if arguments.keep:
            directory = arguments.keep
            os.mkdir(directory)
        site = acquisition.Site(arguments.programs, arguments.tree, directory)
        plain = Plain(site)
        for number in chosen(arguments, len(runs)):
            options = runs[number - 1]
            print(f"run {number}: " + ", ".join(f"{option} {value}" for option, value in options.items()), flush=True)
            try:
                run = Made(site, plain, number, options)
            except (acquisition.ProgramFailed, TimeoutError) as error:
                complaints = [f"cannot be made: {error}"]
            else:
                complaints = Tools(site, run).complaints()
            for complaint in complaints:
                print("  WRONG " + re.sub(r"\s+", " ", complaint)[:600], flush=True)
            wrong += complaints
            made += 1
    print(f"{len(covering.possible_pairs())} pairs in {len(runs)} runs; of {made} runs, {len(wrong)} results are wrong")
    sys.exit(0 if made and not wrong else 1)


if __name__ == "__main__":
    main()
