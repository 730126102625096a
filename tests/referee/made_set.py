"""The published set: captures, and the singles that they hold, with the truth. The same bytes for a seed on any machine.

Nothing here comes from the programs, and all numbers are whole or exact: random.random() alone is documented to give the same
numbers with every version of Python, and no sine or logarithm is taken of it.
"""

import csv
import hashlib
import json
import os
import random
import struct
import sys
from dataclasses import dataclass
from typing import NamedTuple

from rules import Geometry, Single

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))

from datagrams import END_OF_STREAM, Sent, datagram, frame, write_capture  # noqa: E402 pylint: disable=wrong-import-position

GEOMETRY = Geometry(modules=12, crystals_of_module=4, min_module_difference=3, max_ring_difference=5)
RINGS = 8
WINDOW = 300  # ticks
LOWEST, HIGHEST = 350, 650  # keV
TICK_PS = 15.625
POSITIONS = 8  # the sides of the position table; a module has crystals at the first four x
SOURCES = 2
FRAMES = 80  # of a datagram


@dataclass(frozen=True)
class Stretch:
    """Annihilations and noise, `gap` ticks apart in the mean."""

    events: int
    gap: int
    again: float = 0.03  # part of the singles whose crystal fires once more within the window


@dataclass(frozen=True)
class Scene:
    name: str
    seed: int
    stretches: tuple
    step: int = 1  # of the time. Of 1, no two times are equal


SMALL = Scene("small", 101, (Stretch(1500, 6000), Stretch(1500, 300), Stretch(1500, 90), Stretch(1500, 900, again=0.5)))
EQUAL = Scene("equal", 102, (Stretch(1500, 300),), step=64)
LARGE = Scene("large", 103, (Stretch(200_000, 1800),))


class Dice:
    def __init__(self, seed):
        self._random = random.Random(seed)

    def below(self, count):
        return int(self._random.random() * count)

    def chance(self, part):
        return self._random.random() < part


class Hit(NamedTuple):
    time: int
    module: int
    x: int
    ring: int
    adc: int
    annihilation: int  # 0: none

    def crystal(self):
        """docs/reference/geometry.md: columns are counted from the far side."""
        return self.module * GEOMETRY.crystals_of_module + 3 - self.x + self.ring * GEOMETRY.modules * GEOMETRY.crystals_of_module

    def energy(self):
        """Exact, and so are sums of two: the factors are whole numbers over 2048."""
        return self.adc * (512 + self.module) / 2048

    def accepted(self):
        return LOWEST <= self.energy() <= HIGHEST


def hits_of(scene):
    """All hits of a scene, in order of time."""
    dice = Dice(scene.seed)
    hits, times = [], set()

    def add(time, where, adc, annihilation):
        time = time // scene.step * scene.step
        while scene.step == 1 and time in times:
            time += 1
        times.add(time)
        hits.append(Hit(time, *where, adc, annihilation))

    def anywhere_in(module):
        return module % GEOMETRY.modules, dice.below(GEOMETRY.crystals_of_module), dice.below(RINGS)

    now = 10**9
    number = 0
    for stretch in (stretch for stretch in scene.stretches for _ in range(stretch.events)):
        number += 1
        now += 1 + dice.below(2 * stretch.gap)
        module = dice.below(GEOMETRY.modules)
        if dice.chance(0.15):  # noise
            add(now, anywhere_in(module), 1200 + dice.below(1800), 0)
            continue
        add(now + dice.below(40), anywhere_in(module), 1900 + dice.below(220), number)
        if dice.chance(0.5):
            add(now + dice.below(40), anywhere_in(module + 5 + dice.below(3)), 1900 + dice.below(220), number)
        if dice.chance(0.1):  # a photon that scatters into another module nearby
            add(now + dice.below(60), anywhere_in(module + 1 + dice.below(2)), 700 + dice.below(900), number)
        if dice.chance(stretch.again):
            last = hits[-1]
            add(last.time + 1 + dice.below(WINDOW), (last.module, last.x, last.ring), 1500 + dice.below(700), number)
    return sorted(hits)


def singles_of(hits):
    """The singles in order, and the annihilation of each."""
    rows = sorted((Single(hit.time, hit.crystal(), hit.energy()), hit.annihilation) for hit in hits if hit.accepted())
    return [single for single, _ in rows], [annihilation for _, annihilation in rows]


def scanner():
    return {
        "name": "referee", "tick_ps": TICK_PS,
        "geometry": {
            "channels": GEOMETRY.modules, "modules": {"y": 1, "z": 1}, "blocks": {"y": 1, "z": 1},
            "crystals": {"y": GEOMETRY.crystals_of_module, "z": RINGS}, "bdm_count": GEOMETRY.modules, "du_count": 1,
            "position_size": POSITIONS},
        "dimensions": {
            "ring_radius_mm": 40, "crystal_pitch_y_mm": 2, "crystal_pitch_z_mm": 2, "crystal_length_mm": 10, "block_gap_y_mm": 0,
            "block_gap_z_mm": 0, "module_gap_z_mm": 0},
        "sources": [{"id": 1 + s, "bdms": list(range(s, GEOMETRY.modules, SOURCES))} for s in range(SOURCES)]}


def configuration():
    return {
        "scanner": "referee.scanner.json", "calibration": "referee.h5", "data_dir": ".", "control": {"socket": "control.sock"},
        "http": {"listen": ""}, "listmode": {"write_singles": True},
        "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}], "lock_memory": False, "batch_count": 32, "batch_bytes": 262144},
        "energy": {"filter": True, "lower_keV": LOWEST, "upper_keV": HIGHEST},
        "coincidence": {
            "window_ticks": WINDOW, "min_module_difference": GEOMETRY.min_module_difference,
            "max_ring_difference": GEOMETRY.max_ring_difference},
        "pipeline": {"backend": "cpu", "threads": 1}}


def calibration():
    """The tables that petcal import reads, by name: positions, energy factors, time offsets."""
    crystals = GEOMETRY.crystals_of_module * RINGS
    cells = [x * RINGS + y if x < GEOMETRY.crystals_of_module else crystals for y in range(POSITIONS) for x in range(POSITIONS)]
    factors = [(512 + module) / 2048 for module in range(GEOMETRY.modules) for _ in range(crystals)]
    return {
        "positions": bytes(cells) * GEOMETRY.modules,
        "factors": struct.pack(f"<{len(factors)}f", *factors),
        "offsets": bytes(4 * len(factors))}


def write_scene(directory, scene):
    """Writes NAME.pcap, and NAME.singles.csv with the truth. Returns singles and annihilations."""
    hits = hits_of(scene)
    sent = []
    for source in range(SOURCES):
        of_source = [hit for hit in hits if hit.module % SOURCES == source]
        for number, first in enumerate(range(0, len(of_source), FRAMES)):
            part = of_source[first : first + FRAMES]
            last = END_OF_STREAM if first + FRAMES >= len(of_source) else 0
            frames = [frame(hit.time, bdm=hit.module, x=hit.x, y=hit.ring, adc=hit.adc) for hit in part]
            # Whole microseconds, as a capture has them.
            sent.append(Sent(part[-1].time // 64000 * 1e-6, 1 + source, datagram(1 + source, number, frames, last)))
    sent.sort(key=lambda one: (one.time, one.source))
    write_capture(os.path.join(directory, f"{scene.name}.pcap"), sent)
    singles, annihilations = singles_of(hits)
    with open(os.path.join(directory, f"{scene.name}.singles.csv"), "w", encoding="ascii", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("time", "crystal", "energy", "annihilation"))
        rows.writerows((*single, annihilation) for single, annihilation in zip(singles, annihilations))
    return singles, annihilations


def write_setup(directory):
    """Writes what petacqd and petcal need to read the captures."""
    for name, document in (("referee.scanner.json", scanner()), ("petacqd.json", configuration())):
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            json.dump(document, file, indent=1)
    for name, table in calibration().items():
        with open(os.path.join(directory, name), "wb") as file:
            file.write(table)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_of(scene):
    return [f"{scene.name}.{kind}" for kind in ("pcap", "singles.csv")]
