"""What arrived, and what must come of it: slow and obvious (docs/reference/wire-format.md, docs/design/slices.md)."""

import struct

import numpy as np

from play import EPOCH_NS, GAMMA, LOWER_KEV, UPPER_KEV

FRAME = np.dtype([("head", "u1"), ("bdm", "u1"), ("time", ">u8"), ("x", "u1"), ("y", "u1"), ("adc", ">u2"), ("t", "u1"),
                  ("tail", "u1")])
SINGLE = np.dtype([("time", "<u8"), ("crystal", "<u4"), ("energy", "<f4")])
TAG = np.dtype([("time", "<u8"), ("value", "<u4"), ("source", "<u2"), ("channel", "u1"), ("kind", "u1")])
TAG_FRAME = np.dtype([("head", "u1"), ("kind", "u1"), ("time", ">u8"), ("value", ">u4"), ("reserved", "u1"), ("tail", "u1")])
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


def arrived_bytes(life, ns, datagram):
    """As the library writes them down."""
    return ARRIVED.pack(life, len(datagram), ns + EPOCH_NS) + datagram


def well_formed(datagram):
    return len(datagram) >= 16 and len(datagram) % 16 == 0 and datagram[:5] == b"PETF\x01"


def source(datagram):
    return datagram[6] << 8 | datagram[7]


class Frames:
    """Those of distinct datagrams, and the source of each."""

    def __init__(self, datagrams):
        distinct = list(dict.fromkeys(datagrams))
        self.sources = np.repeat([source(d) for d in distinct], [len(d) // 16 - 1 for d in distinct])
        self.data = b"".join(d[16:] for d in distinct)


def tags(frames):
    """In the order of the frames."""
    f = np.frombuffer(frames.data, TAG_FRAME)
    good = (f["head"] >> 4 == 11) & (f["tail"] & 15 == 5)
    f, out = f[good], np.empty(good.sum(), TAG)
    out["time"], out["value"], out["kind"], out["channel"], out["source"] = f["time"], f["value"], f["kind"], f["head"] & 15, frames.sources[good]
    return out


def packets(path):
    """The datagrams of a raw capture up to the last whole one (raw IPv4 in pcap)."""
    with open(path, "rb") as file:
        data = file.read()
    at, found = 24, []
    while at + 16 <= len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        if at + 16 + size > len(data) or size < 28:
            break
        found.append(data[at + 16 + 28 : at + 16 + size])
        at += 16 + size
    return found


class Converter:
    """Section "Conversion" for the scanner of the simulation."""

    def __init__(self, scanner, calibration):
        g = scanner["geometry"]
        self.position_table, self.factor = calibration.position_table, calibration.energy_factor
        self.offset = np.zeros(1, np.int32) if calibration.time_offset is None else calibration.time_offset
        self.c_y, self.c_z = g["crystals"]["y"], g["crystals"]["z"]
        self.b_y, self.b_z = g["blocks"]["y"], g["blocks"]["z"]
        self.around, self.limits = g["channels"] * g["modules"]["y"], (g["bdm_count"], g["du_count"], g["position_size"])
        self.owner = np.full(256, -1)
        for source in scanner["sources"]:
            self.owner[source["bdms"]] = source["id"]

    def singles(self, frames, gammas):
        """Accepted ones, and gammas if the story has them, in the order of the frames."""
        f = np.frombuffer(frames.data, FRAME)
        f = f[self.owner[f["bdm"]] == frames.sources]
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
        out["crystal"] = in_ring + ring * (self.around * self.b_y * self.c_y)
        offset = self.offset[out["crystal"]] if len(self.offset) > 1 else 0
        out["time"] = f["time"].astype(np.int64) + offset
        adc = f["adc"].astype(np.int64)
        bins = np.minimum(adc // 10, self.factor.shape[3] - 1)
        out["energy"] = adc.astype(np.float32) * self.factor[bdm, du, local, bins]
        return out[in_window(out, LOWER_KEV, UPPER_KEV) | (gammas & in_window(out, GAMMA["lower_keV"], GAMMA["upper_keV"]))]


def in_window(singles, lower, upper):
    return (singles["energy"] >= np.float32(lower)) & (singles["energy"] <= np.float32(upper))
