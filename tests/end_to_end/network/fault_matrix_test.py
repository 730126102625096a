"""Every mistake of boards, networks and captures is named as itself: by health and the strip while it happens, by petctl
doctor, and by the verdict on the run, which the report shows.

    fault_matrix_test.py DIRECTORY_OF_PROGRAMS SOURCE [--only TEXT] [--jobs N] [--list]

fault_rows.py has the table."""

import argparse
import concurrent.futures
import functools
import html
import json
import os
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "foreign"), os.path.join(HERE, "..", "features"),
                os.path.join(HERE, "..", "..", "support")]

import boards as captures  # noqa: E402
import fault_rows  # noqa: E402
from daemon import Site  # noqa: E402
from drawing import petlm_draws  # noqa: E402

PATIENCE_S = 60
# What a loaded machine does, or a disk: not what is judged here.
HOST = {"latency_high", "disk_slow", "kernel_drops", "stage_stalled", "no_free_batch", "disk_space_low", "disk_time_low",
        "udp_no_port", "softnet_drops", "fragments_lost"}
# Findings of the doctor that only follow from another one; and the tick, of boards that a loaded machine holds up.
FOLLOWS = ("no BDM has singles", "have a BDM, DU, x or y out of range", "come too late", "have wrong markers",
           "the fullest energy of", "agree on an earlier time", "the kernel dropped", "have times far from", "a tick lasts about")
SETTINGS = {"coincidence": {"window_ns": 5}, "energy": {"lower_keV": 350, "upper_keV": 650}, "listmode": {},
            "health": {"min_disk_free_bytes": 0, "min_disk_time_s": 0}}


class Wrong(Exception):
    """The row does not hold."""


class Matrix:
    def __init__(self, programs, tree):
        self.programs, self.tree = programs, tree
        self.draws = petlm_draws(programs)
        self.shown = set()  # what a report has shown: the reasons, and the state of a run
        with open(os.path.join(tree, "config", "examples", "small.scanner.json"), encoding="utf-8") as file:
            self.scanner = json.load(file)

    def site(self, configuration, scanner):
        return Site(self.programs, scanner, {**SETTINGS, **configuration}, "--gain-keV-per-adc", "1")

    def play(self, row):
        """A run, in which the boards of the row send."""
        listed = {"accept_any": True} if row.anybody else {"ids": list(range(row.listed or len(row.boards)))}
        configuration = {"sources": listed}
        if row.layout:
            configuration["receive"] = {"layout": "own.layout.json"}
        with self.site(configuration, {**self.scanner, "sources": []} if row.anybody else self.scanner) as site:
            if row.layout:
                site.write("own.layout.json", row.layout)
            with site.daemon() as port:
                site.petctl("start", "--run", "r")
                for board in row.boards:
                    board.start(port)
                try:
                    until(lambda: live(site.status(), row))
                    until(lambda: doctor(site, row))
                    until(lambda: live(site.status(), row))
                finally:
                    for board in row.boards:
                        board.stop()
                site.petctl("stop")
            self.judge(site, row)

    @functools.cached_property
    def healthy(self):
        """The packets of four healthy boards."""
        with self.site({}, self.scanner) as site:
            site.program("petsim", "--crystals", "surface", "--scanner", site.file("scanner.json"), "--calibration", site.file("c.h5"), "--rate", "20000",
                         "--duration-s", "3", "--cylinder", "0,0,0,10,20,1", "--seed", "5", "--quiet", "--write",
                         site.file("all.pcap"))
            return [(host, int.from_bytes(datagram[6:8], "big"), datagram)
                    for host, _, datagram in captures.read(site.file("all.pcap"))]

    def replay(self, row):
        with self.site({}, self.scanner) as site:
            arguments = ["--config", site.file("petacqd.json"), "--run", "r"]
            for number, capture in enumerate(row.change(self.healthy)):
                captures.write(site.file(f"{number}.pcap"),
                               [(host, 40000 + source, datagram) for host, source, datagram in capture])
                arguments += ["--replay", site.file(f"{number}.pcap")]
            done = site.run_program("petacqd", *arguments)
            warnings = [line for line in done.stderr.splitlines() if " warning " in line and "buffer" not in line]
            expect(done.returncode == (65 if row.bad else 0), f"exit status {done.returncode}: {done.stderr[-500:]}")
            expect(any(row.warns in line for line in warnings) if row.warns else not warnings, f"warnings {warnings}")
            self.judge(site, row)

    def judge(self, site, row):
        """The verdict on the run, and the report."""
        verdict = site.run_json("r")["verdict"]
        bad = {reason[1:] for reason in row.verdict if reason[0] == "!"}
        wanted = {reason.lstrip("!") for reason in row.verdict}
        compare({reason["code"]: reason["message"] for reason in verdict["reasons"]}, wanted, row.allowed, "the verdict")
        state = "bad" if bad else "doubtful" if wanted else "good"
        expect(verdict["state"] == state, f"the run is {verdict['state']}, expected {state}: {verdict['reasons']}")
        # A report takes longer than all else: each reason and each state is looked for in one.
        said = {state, *(reason["code"] for reason in verdict["reasons"])}
        if self.draws and not said <= self.shown:
            self.shown |= said
            reported(site, verdict["reasons"], bad)

    def refer(self, row):
        with open(os.path.join(self.tree, row.file), encoding="utf-8") as file:
            expect(row.text in file.read(), f"{row.file} has no test with {row.text!r}")


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def until(condition):
    """Waits until the condition raises nothing."""
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            return condition()
        except Wrong:
            if time.monotonic() > end:
                raise
        time.sleep(0.2)


def compare(found, wanted, allowed, what):
    expect(set(wanted) <= set(found), f"{what} does not say {sorted(set(wanted) - set(found))}: {found}")
    more = set(found) - set(wanted) - set(allowed) - HOST
    expect(not more, f"{what} says {sorted(more)}, too: {found}")


def live(status, row):
    """Health and strip."""
    compare({reason["code"]: reason["message"] for reason in status["health"]["reasons"]}, row.health, row.allowed, "health")
    strip = status["recording"]
    expect(strip["word"] == row.strip[0] and all(text in strip["text"] for text in row.strip[1:]),
           f"strip: {strip['word']}: {strip['text']}, expected {row.strip}")


def doctor(site, row):
    done = site.run_program("petctl", "--socket", site.file("control.sock"), "doctor", "--seconds", "3", "--json")
    findings = json.loads(done.stdout)["findings"]
    problems = [(finding["subject"], finding["text"]) for finding in findings if finding["level"] == "problem"]
    for subject, text in row.doctor:
        expect(any(s == subject and text in t for s, t in problems), f"doctor does not say {subject}: {text}: {problems}")
    more = [f"{s}: {t}" for s, t in problems if not any(s == subject and text in t for subject, text in row.doctor) and
            not any(text in t for text in FOLLOWS)]
    expect(not more, f"doctor says {more}, too")
    expect(done.returncode == (1 if problems else 0), f"doctor: exit status {done.returncode}")


def reported(site, reasons, bad):
    """The report shows the reasons."""
    site.program("petlm", "plot", site.file("r"), "-o", site.file("plot"))
    with open(site.file("plot", "report.html"), encoding="utf-8") as file:
        page = file.read()
    shown = html.unescape(page[page.index('<ul class="verdict">'):page.index("</ul>")])
    for reason in reasons:
        expect(reason["message"] in shown, f"the report does not say {reason['message']}: {shown}")
    expect(not bad or 'class="bad"' in shown, f"the report has no mark: {shown}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs")
    parser.add_argument("tree")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    matrix = Matrix(os.path.abspath(options.programs), os.path.abspath(options.tree))
    table = [(row.finding, row.name, matrix.play, row) for row in fault_rows.rows()]
    table += [(row.finding, "replay: " + row.name, matrix.replay, row) for row in fault_rows.REPLAYS]
    table += [(row.finding, f"{row.what}: {row.file}", matrix.refer, row) for row in fault_rows.ELSEWHERE]
    table = [row for row in table if options.only in row[1]]
    if options.list:
        print("\n".join(f"{finding:<16}{name}" for finding, name, _, _ in table))
        return 0

    def attempt(play, row):
        try:
            play(row)
            return None
        except Wrong as wrong:
            return str(wrong)
        except Exception:  # pylint: disable=broad-exception-caught # whatever it is, it is this row's
            return traceback.format_exc(limit=-3)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda row: attempt(row[2], row[3]), table))
    failed = 0
    for (finding, name, _, _), wrong in zip(table, results):
        failed += wrong is not None
        print(f"{'FAIL' if wrong else 'pass'}  {finding:<16}{name}" + (f": {wrong}" if wrong else ""), flush=True)
    print(f"{len(table)} rows, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
