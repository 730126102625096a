"""Reconstructs what petlm export writes for CASToR and STIR, by what their documentation says of the files.

Each referee reads nothing but the exported files. Lines are followed by points at even steps, each of which belongs to
the voxel that it lies in, and the image is that of MLEM. Both are slow and simple, and share nothing with the programs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

STEP_MM = 0.8


@dataclass(frozen=True)
class Grid:
    """Cubic voxels around the middle of the scanner; images are [z][y][x]."""

    shape: tuple[int, int, int]
    voxel_mm: float

    @property
    def voxels(self) -> int:
        return int(np.prod(self.shape))


class Lines:
    """The points of lines between two places each, [line][axis] in mm, that lie in the grid.

    With the time of flight, points weigh by a Gaussian around a place of each line: its distance from the middle
    towards the end.
    """

    def __init__(
        self,
        start: np.ndarray,
        end: np.ndarray,
        grid: Grid,
        beside_mm: np.ndarray | None = None,
        sigma_mm: float = 0,
    ) -> None:
        length = np.linalg.norm(end - start, axis=1)
        direction = (end - start) / length[:, None]
        middle = (start + end) / 2
        half = np.array(grid.shape[::-1]) * grid.voxel_mm / 2
        reach = min(length.max() / 2, float(np.linalg.norm(half) + np.abs(middle).max()))
        lines, voxels, weights = [], [], []
        for at in np.arange(-reach + STEP_MM / 2, reach, STEP_MM):
            place = np.floor((middle + at * direction + half) / grid.voxel_mm).astype(np.int64)
            inside = ((place >= 0) & (place < grid.shape[::-1])).all(axis=1) & (abs(at) < length / 2)
            x, y, z = place[inside].T
            lines.append(np.flatnonzero(inside))
            voxels.append((z * grid.shape[1] + y) * grid.shape[2] + x)
            if beside_mm is None:
                weights.append(np.full(len(x), STEP_MM))
            else:
                off = (at - beside_mm[inside]) / sigma_mm
                weights.append(STEP_MM * np.exp(-(off**2) / 2) / (sigma_mm * np.sqrt(2 * np.pi)))
        self.line, self.voxel, self.weight = map(np.concatenate, (lines, voxels, weights))
        self.count, self.grid = len(start), grid

    def integral(self, image: np.ndarray) -> np.ndarray:
        """Along each line, in mm; with the time of flight per mm of it."""
        return np.bincount(self.line, image[self.voxel] * self.weight, self.count)

    def spread(self, value: np.ndarray) -> np.ndarray:
        """The transpose of integral()."""
        return np.bincount(self.voxel, value[self.line] * self.weight, self.grid.voxels)


def mlem(
    at: Lines,
    factor: np.ndarray,
    counts: np.ndarray | float,
    background: np.ndarray | float,
    sensitivity: np.ndarray,
    iterations: int,
) -> np.ndarray:
    """Of counts that are expected to be factor * integral + background."""
    seen = sensitivity > 0.02 * sensitivity.max()
    image = seen.astype(float)
    for _ in range(iterations):
        expected = at.integral(image) * factor + background
        ratio = np.divide(counts, expected, out=np.zeros_like(expected), where=expected > 0)
        image = np.divide(image * at.spread(ratio * factor), sensitivity, out=np.zeros_like(image), where=seen)
    return image.reshape(at.grid.shape)


def keys(file: Path, separator: str) -> dict[str, str]:
    """Of a header; of keys that occur more than once, the last."""
    lines = (line.split(separator, 1) for line in file.read_text().splitlines() if line[:1] not in "#;")
    return {line[0].strip().lstrip("!"): line[1].strip() for line in lines if len(line) == 2}


def castor(folder: Path, grid: Grid, iterations: int) -> np.ndarray:
    """The image of prompts.cdh with the lines of lines.cdh."""
    header = keys(folder / "prompts.cdh", ":")
    scanner = keys(folder / f"{header['Scanner name']}.hscan", ":")
    table = np.fromfile(folder / f"{header['Scanner name']}.lut", "<f4").reshape(-1, 2, 3).astype(float)
    middle, outward = table[:, 0], table[:, 1] / np.linalg.norm(table[:, 1], axis=1)[:, None]
    depth, length, crystals = (
        np.array(scanner[key].split(","), float)
        for key in ("mean depth of interaction", "crystals size depth", "number of crystals in layer")
    )
    place = middle + np.repeat(depth - length / 2, crystals.astype(int))[:, None] * outward

    def read(name: str) -> tuple[np.ndarray, dict[str, str]]:
        """Events with the fields that the flags of the header announce, in the order of CASToR's documentation."""
        of = keys(folder / name, ":")
        assert of["Data type"] == "PET"
        listed = of["Data mode"] == "list-mode"
        optional = (("Attenuation", "acf"), ("Scatter", "scatter"), ("Random", "randoms"), ("Normalization", "norm"))
        fields = [(key, "<f4") for flag, key in optional if of.get(f"{flag} correction flag") == "1"]
        assert not {"Coincidence kind flag", "POI correction flag"} & of.keys()
        if of.get("TOF information flag") == "1":
            fields.append(("tof_ps", "<f4"))
        kind = np.dtype([*([("ms", "<u4")] if listed else []), *fields, ("a", "<u4"), ("b", "<u4")])
        events = np.fromfile(folder / of["Data filename"], kind)
        assert len(events) == int(of["Number of events"])
        return events, of

    events, _ = read("prompts.cdh")
    lines, _ = read("lines.cdh")
    start, duration = float(header["Start time (s)"]), float(header["Duration (s)"])
    assert "Isotope" not in header, "the decay has to be in the calibration factor"
    within = (events["ms"] >= int(start * 1000)) & (events["ms"] / 1000 < start + duration)
    assert within.all()
    events = events[events["norm"] > 0]
    per_second = 1 / float(header.get("Calibration factor", 1))

    def factor(of: np.ndarray) -> np.ndarray:
        """Counts for an integral of 1 kBq/ml mm."""
        correction = of["acf"] if "acf" in (of.dtype.names or ()) else 1
        return per_second * duration / (of["norm"].astype(float) * correction)

    sensitivity = Lines(place[lines["a"]], place[lines["b"]], grid).spread(factor(lines))
    background = {name: events[name] * duration for name in ("scatter", "randoms") if name in events.dtype.names}
    start_mm, end_mm = place[events["a"]], place[events["b"]]
    if "tof_ps" not in events.dtype.names:
        at = Lines(start_mm, end_mm, grid)
    else:
        # Arrival at the first crystal less that at the second; light flies forth and back.
        mm_per_ps = 0.299792458 / 2
        sigma_mm = mm_per_ps * float(header["TOF resolution (ps)"]) / np.sqrt(8 * np.log(2))
        at = Lines(start_mm, end_mm, grid, mm_per_ps * events["tof_ps"].astype(float), sigma_mm)
        # Scatter is per mm already, randoms are spread over the range.
        background["randoms"] = background["randoms"] / (mm_per_ps * float(header["List TOF measurement range (ps)"]))
    return mlem(at, factor(events), 1, sum(background.values()), sensitivity, iterations)


def stir(folder: Path, grid: Grid, iterations: int) -> np.ndarray:
    """The image of osem.par, of the prompts that lm_to_projdata.par bins."""
    parameters = (folder / "osem.par").read_text()
    factors = re.findall(r"normalisation projdata filename := (\S+)", parameters)
    additive = re.search(r"additive sinogram := (\S+)", parameters)
    header = keys(folder / "template.hs", ":=")
    assert header["Scanner geometry (BlocksOnCylindrical/Cylindrical/Generic)"] == "Generic"
    # Before, keys of energy windows had no [1], and STIR stops at it.
    assert "energy window lower level[1]" not in header or header["version of keys"] != "STIR3.0"
    in_ring, rings = int(header["Number of detectors per ring"]), int(header["Number of rings"])
    positions = np.loadtxt(folder / header["Name of crystal map"])
    place = np.zeros((rings, in_ring, 3))
    place[positions[:, 0].astype(int), positions[:, 1].astype(int)] = positions[:, 3:]

    def integers(key: str) -> list[int]:
        return [int(n) for n in header[key].strip("{}").split(",")]

    # A bin: segment by segment, view by view, then axial and tangential positions.
    views, tangential = int(header["matrix size [3]"]), int(header["matrix size [1]"])
    differences = integers("minimum ring difference per segment")
    assert differences == integers("maximum ring difference per segment")
    assert integers("matrix size [2]") == [rings - abs(d) for d in differences]
    ends = []
    for d in differences:
        view, axial, t = np.meshgrid(
            np.arange(views), np.arange(rings - abs(d)), np.arange(tangential) - tangential // 2, indexing="ij"
        )
        ring = axial + max(-d, 0)
        det_1 = (view + np.floor_divide(t, 2)) % in_ring
        det_2 = (view + views - np.floor_divide(t + 1, 2)) % in_ring
        ends.append(np.stack([ring, det_1, ring + d, det_2], axis=-1).reshape(-1, 4))
    ring_1, det_1, ring_2, det_2 = np.concatenate(ends).T
    bin_of = np.full((rings * in_ring,) * 2, -1)
    one, two = ring_1 * in_ring + det_1, ring_2 * in_ring + det_2
    bin_of[one, two] = bin_of[two, one] = np.arange(len(one))

    # Prompts of the frame.
    frames = [line.split() for line in (folder / "frames.fdef").read_text().splitlines()]
    skipped = sum(float(length) for number, length in frames if number == "0")
    (length,) = (float(length) for number, length in frames if number == "1")
    data = (folder / "listmode.clm.safir").read_bytes()
    assert data[:32].rstrip(b"\0") == b"SAFIR CListModeData"
    records = np.frombuffer(data, "<u8", -1, 32)
    is_time = records >> np.uint64(63) == 1
    latest = np.maximum.accumulate(np.where(is_time, np.arange(len(records)), 0))
    seconds = (records[latest] & np.uint64((1 << 48) - 1)).astype(float) / 1000
    prompt = ~is_time & (records >> np.uint64(62) & np.uint64(1) == 0)
    prompt &= (seconds >= skipped) & (seconds < skipped + length)
    codes = records[prompt].astype(np.int64)
    of_one = (codes & 255) * in_ring + (codes >> 16 & 65535)
    of_two = (codes >> 8 & 255) * in_ring + (codes >> 32 & 65535)
    bins = bin_of[of_one, of_two]
    prompts = np.bincount(bins[bins >= 0], minlength=len(one)).astype(float)

    def projections(name: str) -> np.ndarray:
        return np.fromfile(folder / keys(folder / name, ":=")["name of data file"], "<f4").astype(float)

    # STIR: prompts = (integral in voxels + additive) / (the product of the factors).
    zoom = float(keys(folder / "osem.par", ":=")["zoom"])
    voxel_mm = 10 * float(header["Default bin size (cm)"]) / zoom
    per_count = np.prod([projections(name) for name in factors], axis=0)
    used = per_count < 1e15
    at = Lines(place[ring_1, det_1][used], place[ring_2, det_2][used], grid)
    factor = 1 / (voxel_mm * per_count[used])
    background = (projections(additive.group(1)) / per_count)[used] if additive else 0
    return mlem(at, factor, prompts[used], background, at.spread(factor), iterations)
