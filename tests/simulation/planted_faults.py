"""Each check fails when it must: one story in which all is well, and for each check a fault that it has to find.

Most faults are planted into what the story left: its files, what arrived, and what was answered. The others are played.
"""

import dataclasses
import json
import os
import shutil

import reference
from story import Story

STORY = """seed 11
length_ms 24000
boards 4
decays_per_s 100
send_ms 60
status_ms 500
gammas 1
capture 1
spectra 1
gamma_one_in 3
echo_one_in 4
tag_one_in 5
2100 request {"jsonrpc":"2.0","id":1,"method":"start","params":{"run":"r1"}}
5000 request {"jsonrpc":"2.0","id":2,"method":"stop"}
5300 calibration 1
5400 request {"jsonrpc":"2.0","id":3,"method":"reload"}
5500 silence 2 3000
6500 request {"jsonrpc":"2.0","id":4,"method":"start","params":{"run":"r2"}}
12000 kill
15000 burst 1 1000
"""


class Planted:
    """What a story left, to be changed. Life 0 is killed in run r2, after run r1; life 1 ends in order."""

    def __init__(self, story, outcome, directory):
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(outcome.directory, directory, symlinks=True)
        self.story, self.directory = story, directory
        self.lives = [dataclasses.replace(life) for life in outcome.lives]

    def set(self, life, **values):
        self.lives[life] = dataclasses.replace(self.lives[life], **values)

    def change_answers(self, life, before, after):
        self.set(life, events=[(at, what, text.replace(before, after)) for at, what, text in self.lives[life].events])

    def configured_otherwise(self, **settings):
        self.story = Story({**self.story.settings, **settings}, self.story.events)

    def path(self, run, name):
        return os.path.join(self.directory, "data", run, name)

    def change_description(self, run, change):
        with open(self.path(run, "run.json"), encoding="utf-8") as file:
            description = json.load(file)
        change(description)
        with open(self.path(run, "run.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)

    def cut(self, run, name, size):
        path = self.path(run, name)
        os.truncate(path, os.path.getsize(path) - size)

    def change_arrived(self, life, change):
        """`change` gets the list of (ns of the story, datagram)."""
        path = os.path.join(self.directory, "arrived")
        lives = {number: list(reference.arrivals(path, number)) for number in range(len(self.lives))}
        change(lives[life])
        with open(path, "wb") as file:
            for number, datagrams in lives.items():
                for at, datagram in datagrams:
                    file.write(reference.arrived_bytes(number, at, datagram))


def a_full_one(datagrams):
    """In the middle of run r1."""
    return next(i for i, (at, datagram) in enumerate(datagrams) if at > 3 * 10**9 and len(datagram) > 16 + 10 * 16)


def lose_arrival(datagrams):
    del datagrams[a_full_one(datagrams)]


def add_arrival(datagrams):
    """The same hits a tick later, under another number."""
    at, datagram = datagrams[a_full_one(datagrams)]
    other = bytearray(datagram)
    other[8] ^= 1
    for frame in range(16, len(other), 16):
        other[frame + 9] ^= 1
    datagrams.append((at, bytes(other)))


def forget_count(events):
    """The last answer tells of fewer frames than those before it."""
    last = max(i for i, (_, what, text) in enumerate(events) if what == "answer" and '"id":"status"' in text)
    at, what, text = events[last]
    answer = json.loads(text)
    answer["result"]["total"]["frames"]["received"] = 1
    return [*events[:last], (at, what, json.dumps(answer, separators=(",", ":"))), *events[last + 1 :]]


def count_more(description):
    description["ledger"]["frames"]["accepted"] += 1


def take_later(description):
    description["taken"]["start_ticks"] += 10**11


def other_calibration(description, calibrations):
    description["calibration_sha256"] = calibrations[0]


def faults(calibrations):
    """(name of the check, what is planted)"""
    return [
        ("exit", lambda p: p.set(1, exit=1)),
        ("start", lambda p: p.set(1, begin_ns=0, events=[e for e in p.lives[1].events if e[1] != "connected"])),
        ("answers", lambda p: p.set(0, events=[e for e in p.lives[0].events if e[1] != "answer" or e[0] < 3 * 10**9])),
        ("ledger", lambda p: p.set(1, events=forget_count(p.lives[1].events))),
        ("reception", lambda p: p.change_arrived(1, lose_arrival_at_first)),
        ("ledger", lambda p: p.change_description("r1", count_more)),
        ("ledger", lambda p: p.change_answers(0, '"written":', '"written":9')),
        ("exact", lambda p: p.change_arrived(0, lose_arrival)),
        ("complete", lambda p: p.change_arrived(0, add_arrival)),
        ("interval", lambda p: p.change_description("r1", take_later)),
        ("pairs", lambda p: p.configured_otherwise(delayeds=1)),
        ("triples", lambda p: p.configured_otherwise(gammas=2)),
        ("capture", lambda p: p.cut("r1", "raw.pcap", 1)),
        ("calibration", lambda p: p.change_description("r2", lambda d: other_calibration(d, calibrations))),
        ("recovery", lambda p: p.change_description("r2", lambda d: d.update(coverage=[]))),
        ("interrupted", lambda p: p.change_answers(1, '"r2"', '"another"')),
        ("files", lambda p: p.cut("r1", "seconds.plm", 1)),
        ("files", lambda p: os.remove(p.path("r1", "ledger.csv"))),
        ("power", lambda p: shutil.rmtree(p.path("r1", ""))),
        ("health", lambda p: p.change_answers(0, '"source_silent"', '"another"')),
        ("health", lambda p: p.change_answers(1, '"kernel_drops"', '"another"')),
    ]


def lose_arrival_at_first(datagrams):
    del datagrams[0]


# Played: (name of the check, what the library plants, the event in place of the kill)
PLAYED = [
    ("memory", "leak", "14000 kill"),
    ("standstill", "", "7000 disk_slow 9000 200000"),
    ("power", "forget_names", "9000 power_cut 5"),
]


def names(failures):
    return {text.split(":")[0] for text in failures}


def missed(simulator):
    """The checks that did not find their faults, and what they said. Raises AssertionError if all is not well without them."""
    story = Story.parse(STORY)
    outcome, found = simulator.play(story)
    assert not found, found
    result = []
    for check, plant in faults(simulator.checks.calibrations):
        planted = Planted(story, outcome, os.path.join(simulator.work, "planted"))
        plant(planted)
        found = simulator.checks.failures(planted.story, dataclasses.replace(outcome, directory=planted.directory, lives=planted.lives))
        if check not in names(found):
            result.append((check, found))
    for check, fault, event in PLAYED:
        _, found = simulator.play(Story.parse(STORY.replace("12000 kill", event)), fault)
        if check not in names(found):
            result.append((f"{check} ({fault or event})", found))
    return result
