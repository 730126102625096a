"""The simulation repeats itself, and finds what is planted.

    simulation_test.py DIRECTORY_OF_PROGRAMS
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import planted
import planted_faults
import simulate
from shorten import shorten
from story import Story, draw

LENGTH_MS = 14000
SETTINGS = """seed 7
length_ms 15000
boards 4
decays_per_s 200
send_ms 60
status_ms 500
"""
START = '2100 request {"jsonrpc":"2.0","id":1,"method":"start","params":{"run":"r1"}}\n'


def check(condition, what):
    if not condition:
        raise SystemExit(f"failed: {what}")


def same_seed_same_trace(simulator):
    traces = []
    for seed in (5, 14):
        story = draw(seed, LENGTH_MS)
        again = []
        for _ in range(2):
            outcome, failures = simulator.play(story)
            check(not failures, f"seed {seed}: {failures}")
            again.append(outcome.trace)
        check(again[0] == again[1], f"seed {seed}: two traces: {again}")
        traces.append(again[0])
    check(traces[0] != traces[1], "two seeds have one trace")


def lost_sync_is_found(simulator):
    """A disk that says it has synced, and has not, loses records in a power cut that had been written long before."""
    story = Story.parse(SETTINGS + "2000 delay 1 20\n" + START + "5000 silence 2 450\n9000 power_cut 5\n")
    outcome, failures = simulator.play(story)
    check(not failures and [life.exit for life in outcome.lives] == [91, 0], f"a sound disk: {failures}")
    _, failures = simulator.play(story, "forget_writes")
    lost = [text for text in failures if text.startswith("power:")]
    check(lost, f"a disk that forgets writes is not noticed: {failures}")
    shortest = simulator.shorten(story, lost[0], "forget_writes")
    check([event.what for event in shortest.events] == ["request", "power_cut"], f"shortened to {shortest}")


def each_check_finds_its_fault(simulator):
    missed = planted_faults.missed(simulator)
    check(not missed, f"planted faults are not found: {missed}")


def mended_faults_stay_mended(simulator):
    """Each story failed once."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stories")
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            _, failures = simulator.play(Story.parse(file.read()))
        check(not failures, f"{name}: {failures}")


def stories_are_read_as_written():
    story = draw(3)
    check(Story.parse(str(story)) == Story.parse(str(Story.parse(str(story)))), "a story changes when it is read")
    check(str(draw(3)) == str(story) != str(draw(4)), "a seed has one story")
    for text, said in [("seed 1\n", "missing"), (SETTINGS + "12\n", "found: 12"), (SETTINGS + "sead 1\n", "found: sead 1")]:
        try:
            Story.parse(text)
        except ValueError as error:
            check(said in str(error), f"{text!r}: {error}")
        else:
            check(False, f"{text!r} is accepted")


def shortest_is_found():
    for needed in ([3], [0, 19], [4, 5, 17]):
        found = shorten(range(20), lambda events, needed=needed: set(needed) <= set(events))
        check(found == needed, f"{needed} became {found}")


DEFECT = """found_by stories

name one
file a.cpp
breaks it
     if (a)
-        b();
+        c();
"""


def planted_defects_fit():
    """Each is still to be planted in the sources, without building any."""
    planted.check_all(simulate.SOURCE)
    (defect,) = planted.parse(DEFECT, "list")
    check(defect.plant("x\n  if (a)\n  b();\ny") == "x\n  if (a)\n  c();\ny", "a defect is not planted as it stands")
    for text, said in [("if (a)\n", "not there any more"), ("if (a)\nb();\nif (a)\nb();", "2 times")]:
        try:
            defect.plant(text)
        except planted.PlantedError as error:
            check(said in str(error), f"{text!r}: {error}")
        else:
            check(False, f"{text!r}: planted")
    for old, new in [("name one", "name One"), ("found_by stories", "found_by"), ("+        c();", "+        b();"), ("file a.cpp\n", "")]:
        try:
            planted.parse(DEFECT.replace(old, new), "list")
        except planted.PlantedError:
            continue
        check(False, f"{new!r} is accepted")


def main(binaries):
    planted_defects_fit()
    stories_are_read_as_written()
    shortest_is_found()
    if not os.path.exists(os.path.join(binaries, os.pardir, "lib", "libsimulation.so")):
        return simulate.IMPOSSIBLE
    simulator = simulate.Simulator(binaries)
    try:
        same_seed_same_trace(simulator)
        lost_sync_is_found(simulator)
        each_check_finds_its_fault(simulator)
        mended_faults_stay_mended(simulator)
    finally:
        simulator.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
