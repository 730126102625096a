"""Random scanners in the short form, their calibrations, configurations and captures: the same for a seed on any machine.

Nothing here comes from the programs. random.random() alone is documented to give the same numbers with every version of Python.
"""

import math
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "faults"))

from datagrams import END_OF_STREAM, Sent, datagram, frame, write_capture  # noqa: E402 pylint: disable=wrong-import-position

POLICIES = ("RemoveMultiples", "TakeAllGoods", "TakeWinnerOfGoods", "TakeIfOnlyOneGood", "TakeWinnerIfIsGood", "TakeWinnerIfAllAreGoods")
BINS = 4  # of 10 ADC counts
HITS = 2000  # and those that come with them


class Dice:
    def __init__(self, seed):
        self._random = random.Random(seed)

    def below(self, count):
        return int(self._random.random() * count)

    def among(self, first, last):
        return first + self.below(last + 1 - first)

    def chance(self, share):
        return self._random.random() < share

    def one_of(self, values):
        return values[self.below(len(values))]

    def between(self, lowest, highest, digits=2):
        return round(lowest + self._random.random() * (highest - lowest), digits)


def scanner(dice):
    modules_y, modules_z = dice.among(1, 2), dice.among(1, 3)
    channels = dice.among(3, 10)
    blocks, crystals = (
        {"y": dice.among(1, 3), "z": dice.among(1, 3)}, {"y": dice.among(1, 6), "z": dice.among(1, 6)})
    around = channels * modules_y
    pitch, gap = dice.between(1, 4), dice.between(0, 1)
    wide = blocks["y"] * crystals["y"] * pitch + (blocks["y"] - 1) * gap
    # Modules fit the sides of the polygon.
    radius = round(wide / (2 * math.tan(math.pi / around)) * dice.between(1.02, 1.3) + 0.1, 2)
    bdms = list(range(around * modules_z))
    sources = dice.among(1, 4)
    return {
        "name": "ring", "tick_ps": dice.one_of((10, 15.625, 25, 50)),
        "geometry": {
            "channels": channels, "modules": {"y": modules_y, "z": modules_z}, "blocks": blocks, "crystals": crystals,
            "bdm_count": len(bdms), "du_count": blocks["y"] * blocks["z"], "position_size": dice.among(8, 32)},
        "dimensions": {
            "ring_radius_mm": radius, "crystal_pitch_y_mm": pitch, "crystal_pitch_z_mm": dice.between(1, 4),
            "crystal_length_mm": dice.between(5, 20), "block_gap_y_mm": gap, "block_gap_z_mm": dice.between(0, 1),
            "module_gap_z_mm": dice.between(0, 3), "crystal_material": dice.one_of(("BGO", "LYSO", "GSO"))},
        "sources": [{"id": 10 + s, "bdms": bdms[s::sources]} for s in range(sources)]}


def calibration(described, dice):
    """The raw tables that petcal import reads: positions, energy factors, time offsets."""
    g = described["geometry"]
    units, crystals = g["bdm_count"] * g["du_count"], g["crystals"]["y"] * g["crystals"]["z"]
    # Some positions are outside of any crystal.
    positions = bytes(dice.below(crystals + 1) for _ in range(units * g["position_size"] ** 2))
    factors = struct.pack(f"<{units * crystals * BINS}f", *(dice.among(200, 300) / 1024 for _ in range(units * crystals * BINS)))
    offsets = struct.pack(f"<{units * crystals}i", *(dice.among(-40, 40) for _ in range(units * crystals)))
    return positions, factors, offsets


def configuration(described, dice):
    """What it says of conversion and pairs."""
    g = described["geometry"]
    around, rings = g["channels"] * g["modules"]["y"], g["modules"]["z"] * g["blocks"]["z"] * g["crystals"]["z"]
    window = dice.among(50, 800)
    coincidence = {
        "window_ticks": window, "window_mode": dice.one_of(("single", "every")), "multiples_policy": dice.one_of(POLICIES),
        "max_multiplicity": dice.one_of((3, 5, 64))}
    if dice.chance(0.7):
        coincidence["min_module_difference"] = dice.below(around // 2 + 1)
    if dice.chance(0.5):
        coincidence["max_ring_difference"] = dice.below(rings)
    if dice.chance(0.8):
        coincidence |= {"delay_ticks": window + dice.among(1, 5000), "delayeds": dice.one_of(("shifted_group", "delayed_window"))}
    lower = dice.among(300, 450)
    energy = {"filter": dice.chance(0.8), "lower_keV": lower, "upper_keV": lower + dice.among(50, 300)}
    return {"coincidence": coincidence, "energy": energy, "pipeline": {"backend": "cpu", "threads": 1, "slice_frames": dice.among(300, 5000)}}


def capture(file, described, window, dice):
    """Hits alone, pairs and larger groups; wrong markers, addresses and energies; tags; a datagram lost and one twice."""
    g, sources = described["geometry"], described["sources"]
    source_of = {bdm: index for index, source in enumerate(sources) for bdm in source["bdms"]}
    by_source = [[] for _ in sources]
    ticks = 10**9
    for _ in range(HITS):
        ticks += dice.below(4 * window)
        for _ in range(1 + dice.chance(0.7) + dice.chance(0.3) * dice.among(1, 4)):
            at = ticks + dice.below(window + window // 4)
            bdm = dice.below(g["bdm_count"])
            address = {"bdm": bdm, "du": dice.below(g["du_count"]), "x": dice.below(g["position_size"]), "y": dice.below(g["position_size"])}
            if dice.chance(0.01):
                address["y"] = min(g["position_size"], 255)
            wrong = {"tail": 6} if dice.chance(0.01) else {}
            by_source[source_of[bdm]].append((at, frame(at, adc=dice.among(100, 2600), **address, **wrong)))
        if dice.chance(0.02):
            tag = struct.pack(">BBQIBB", 0xB0 | dice.below(16), dice.below(3), ticks, dice.below(2), 0, 5)
            by_source[dice.below(len(sources))].append((ticks, tag))
    sent = []
    for source, frames in zip(sources, by_source):
        frames.sort()
        number, size = dice.below(1000), dice.among(20, 90)
        for first in range(0, len(frames), size):
            part = frames[first : first + size]
            last = END_OF_STREAM if first + size >= len(frames) else 0
            seconds = part[-1][0] * described["tick_ps"] * 1e-12
            one = Sent(round(seconds, 6), source["id"], datagram(source["id"], number, [bytes_of for _, bytes_of in part], last))
            if last or not dice.chance(0.01):
                sent.append(one)
            if not last and dice.chance(0.01):
                sent.append(one)
            number += 1
    sent.sort(key=lambda one: one.time)
    write_capture(file, sent)
