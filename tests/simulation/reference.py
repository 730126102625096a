"""What arrived, and what must come of it: slow and obvious (docs/reference/wire-format.md, docs/design/slices.md)."""

import struct

import numpy as np

from play import EPOCH_NS, LOWER_KEV, UPPER_KEV, WINDOW_TICKS

FRAME = np.dtype([("head", "u1"), ("bdm", "u1"), ("time", ">u8"), ("x", "u1"), ("y", "u1"), ("adc", ">u2"), ("t", "u1"),
                  ("tail", "u1")])
SINGLE = np.dtype([("time", "<u8"), ("crystal", "<u4"), ("energy", "<f4")])
ARRIVED = struct.Struct("<IIq")


def arrivals(path, life):
    """(ns of the story, bytes) of each datagram that reached the sockets of a daemon."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        which, size, ns = ARRIVED.unpack_from(data, at)
        at += ARRIVED.size
        if which == life:
            yield ns - EPOCH_NS, data[at : at + size]
        at += size


def well_formed(datagram, boards):
    return (len(datagram) >= 16 and len(datagram) % 16 == 0 and datagram[:5] == b"PETF\x01"
            and int.from_bytes(datagram[6:8], "big") < boards)


class Converter:
    """Section "Conversion" for the scanner of the simulation, whose calibration has no time offsets."""

    def __init__(self, scanner, calibration):
        g = scanner["geometry"]
        self.position_table, self.factor = calibration.position_table, calibration.energy_factor
        self.c_y, self.c_z = g["crystals"]["y"], g["crystals"]["z"]
        self.b_y, self.b_z = g["blocks"]["y"], g["blocks"]["z"]
        self.around, self.limits = g["channels"] * g["modules"]["y"], (g["bdm_count"], g["du_count"], g["position_size"])
        self.owner = np.full(256, -1)
        for source in scanner["sources"]:
            self.owner[source["bdms"]] = source["id"]

    def singles(self, datagrams):
        """Accepted ones, in the order of time, of distinct datagrams."""
        distinct = list(dict.fromkeys(datagrams))
        f = np.frombuffer(b"".join(d[16:] for d in distinct), FRAME)
        source = np.repeat([int.from_bytes(d[6:8], "big") for d in distinct], [len(d) // 16 - 1 for d in distinct])
        f = f[self.owner[f["bdm"]] == source]
        du, tail = f["head"] & 15, f["tail"] & 15
        good = ((f["head"] >> 4 == 10) & (tail == 5) & (f["bdm"] < self.limits[0]) & (du < self.limits[1])
                & (f["x"] < self.limits[2]) & (f["y"] < self.limits[2]))
        f, du = f[good], du[good].astype(np.int64)
        bdm = f["bdm"].astype(np.int64)
        origin = self.position_table[bdm, du, f["x"].astype(np.int64) + f["y"].astype(np.int64) * self.limits[2]].astype(np.int64)
        inside = origin < self.c_y * self.c_z
        f, du, bdm, origin = f[inside], du[inside], bdm[inside], origin[inside]
        local = origin % self.c_z + (self.c_y - 1 - origin // self.c_z) * self.c_z
        in_ring = bdm % self.around * self.b_y * self.c_y + du // self.b_z * self.c_y + local // self.c_z
        ring = bdm // self.around * self.b_z * self.c_z + du % self.b_z * self.c_z + local % self.c_z
        out = np.empty(len(f), SINGLE)
        out["time"], out["crystal"] = f["time"], in_ring + ring * (self.around * self.b_y * self.c_y)
        adc = f["adc"].astype(np.int64)
        bins = np.minimum(adc // 10, self.factor.shape[3] - 1)
        out["energy"] = adc.astype(np.float32) * self.factor[bdm, du, local, bins]
        out = out[(out["energy"] >= np.float32(LOWER_KEV)) & (out["energy"] <= np.float32(UPPER_KEV))]
        return out[np.argsort(out["time"], kind="stable")]


def prompts(singles):
    """Window mode "single", policy RemoveMultiples: (time, dt, crystal_a, crystal_b) of each prompt."""
    times, crystals = singles["time"].tolist(), singles["crystal"].tolist()
    found, i = [], 0
    while i < len(times):
        j = i + 1
        while j < len(times) and times[j] - times[i] <= WINDOW_TICKS:
            j += 1
        if j == i + 2 and crystals[i] != crystals[i + 1]:
            found.append((times[i], times[i + 1] - times[i], crystals[i], crystals[i + 1]))
        i = j
    return found
