"""Frames of simulated runs with all that exports have to correct, and the means of regions of their images."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import support

try:
    import h5py
except ImportError as error:
    raise unittest.SkipTest("h5py is not installed") from error

# A short scanner has few lines, so that they can be followed without haste.
SCANNER = {
    "name": "short",
    "tick_ps": 15.625,
    "geometry": {
        "channels": 6, "modules": {"y": 2, "z": 1}, "blocks": {"y": 2, "z": 1}, "crystals": {"y": 5, "z": 4},
        "bdm_count": 12, "du_count": 2, "position_size": 64,
    },
    "dimensions": {
        "ring_radius_mm": 32, "crystal_pitch_y_mm": 1.6, "crystal_pitch_z_mm": 3, "crystal_length_mm": 12,
        "block_gap_y_mm": 0.4, "block_gap_z_mm": 0.5, "module_gap_z_mm": 1,
    },
    "sources": [{"id": i, "bdms": [3 * i, 3 * i + 1, 3 * i + 2]} for i in range(4)],
}  # fmt: skip
# Off the axis, longer than the scanner, in water.
AT_MM, RADIUS_MM, LENGTH_MM = (8, -5), 7, 24
OBJECT = "5,-3,0,13,30"
ACTIVITY_MBQ, HALF_LIFE_S, BRANCHING_RATIO = 16, 2, 0.9
# Neither end is that of a second of the run.
FRAME_S = (0.7, 3.2)
EFFICIENCY = 0.55
VOXEL_MM = 1.6

# Two layers of unequal grids, with few lines.
LAYERS = {
    "name": "layers",
    "tick_ps": 15.625,
    "position_size": 64,
    "module_types": [{"name": "both", "layers": [
        {"y": {"count": 4, "pitch_mm": 3.6}, "z": {"count": 4, "pitch_mm": 3}, "length_mm": 5},
        {"y": {"count": 3, "pitch_mm": 4.8}, "z": {"sizes_mm": [3, 5, 4]}, "length_mm": 6, "gap_mm": 0.5, "material": "GSO"},
    ]}],
    "modules": [{"type": "both", "ring": {"count": 12, "radius_mm": 31}}],
    "good_pairs": {"min_angle_deg": 80},
    "sources": [{"id": i, "bdms": [3 * i, 3 * i + 1, 3 * i + 2]} for i in range(4)],
}  # fmt: skip
# Flat sides of two modules each, as STIR's projection data hold them.
SIDES = {
    "name": "sides",
    "tick_ps": 15.625,
    "position_size": 64,
    "module_types": [{"name": "block", "layers": [
        {"y": {"count": 9, "pitch_mm": 1.65, "gaps": [{"after": 4, "mm": 0.4}]}, "z": {"count": 4, "pitch_mm": 3}, "length_mm": 10}]}],
    "modules": [{"type": "block", "polygon": {"sides": 6, "per_side": 2, "pitch_mm": 16.5, "radius_mm": 31}}],
    "good_pairs": {"min_angle_deg": 80},
    "sources": [{"id": i, "bdms": [3 * i, 3 * i + 1, 3 * i + 2]} for i in range(4)],
}  # fmt: skip


def call(folder: Path, name: str, *arguments: object) -> None:
    subprocess.run([support.program(name), *map(str, arguments)], cwd=folder, check=True, capture_output=True)


CORRECTED = (
    "--normalisation", "normalisation.h5", "--attenuation", OBJECT,
    "--nuclide", "X-1", "--half-life-s", HALF_LIFE_S, "--branching-ratio", BRANCHING_RATIO,
)  # fmt: skip
ITERATIONS = 10
# Of a pair whose photons have 100 ps each.
TOF_PS = 141
# How far an edge is blurred depends on projector and voxels.
EDGE_MM = 1.6


class Scene:
    """A folder with ``frame.plm``: of a decaying source, with dead time, a silent board, randoms, uneven crystals."""

    def __init__(self, scanner: dict[str, Any], activity_MBq: float, limits: dict[str, int]) -> None:
        self._scanner, self._activity_MBq, self._limits = scanner, activity_MBq, limits
        self._images: dict[object, np.ndarray] = {}

    @functools.cached_property
    def folder(self) -> Path:
        folder = support.scratch() / f"frame-{self._scanner['name']}"
        folder.mkdir()
        (folder / "scanner.json").write_text(json.dumps(self._scanner))
        configuration = json.loads((support.SOURCE / "config" / "examples" / "small.json").read_text())
        del configuration["$schema"]
        configuration |= {"scanner": "scanner.json", "calibration": "calibration.h5"}
        configuration["receive"] |= {"lock_memory": False, "batch_count": 32, "batch_bytes": 262144}
        configuration["coincidence"] |= {"window_ticks": 640, **self._limits}
        configuration["listmode"] = {"write_singles": True}
        (folder / "daemon.json").write_text(json.dumps(configuration))
        (folder / "data").mkdir()
        detector = ("--spot-sigma", 0.06, "--spot-jitter", 0, "--time-spread-ps", 0, "--gain-spread", 0.02)
        uneven = ("--efficiency-spread", 0.2, "--dead", 0.01)
        files = ("--scanner", "scanner.json", "--calibration", "calibration.h5")
        call(folder, "petsim", "make-detector", *files, "--output", "detector.h5", *detector, *uneven)
        call(
            folder, "petsim", *files, "--detector", "detector.h5", "--object", OBJECT, "--efficiency", EFFICIENCY,
            "--cylinder", f"{AT_MM[0]},{AT_MM[1]},0,{RADIUS_MM},{LENGTH_MM},{self._activity_MBq}", "--half-life-s", HALF_LIFE_S,
            "--dead-time-ticks", 60000, "--tag-dead-time", "3:0.05", "--time-resolution-ps", 100,
            "--silent", "1@1.2-1.9", "--cycle", 0.5, "--tag-trigger", 1, "--duration-s", 4,
            "--fast", "--write", "stream.pcap",
        )  # fmt: skip
        call(folder, "petacqd", "--config", "daemon.json", "--replay", "stream.pcap", "--whole", "--run", "run")
        with h5py.File(folder / "detector.h5") as true, h5py.File(folder / "normalisation.h5", "w") as out:
            efficiency = np.where(true["state"][:] == 1, 0, true["efficiency"][:])
            out["efficiency"] = (efficiency / efficiency.mean()).astype("<f4")
            if "geometry" in self._scanner:
                out["transaxial"] = np.ones((7, 10, 10), "<f4")
                out["axial"] = np.ones((4, 4), "<f4")
            out.attrs["activity_factor"] = EFFICIENCY**-2
        call(folder, "petlm", "cut", "data/run", "--output", "frame.plm", "--from-s", FRAME_S[0], "--to-s", FRAME_S[1])
        return folder

    def _depth(self, file: str, *options: object) -> tuple[object, ...]:
        """The option for the depth of interaction of all lines that the export of the file holds."""
        if "--depth-mm" in options:
            return ()
        (header,) = self.exported("castor", file, *options).glob("*.hscan")
        (line,) = (line for line in header.read_text().splitlines() if line.startswith("mean depth of interaction"))
        return ("--depth-mm", line.split(":")[1].strip())

    def image(self, file: str, *options: object, tof: str = "off") -> np.ndarray:
        """Values [z][y][x] by petlm image, by MLEM with voxels of VOXEL_MM, of lines at the depth of the export."""
        key = (file, *options, tof)
        if key not in self._images:
            output = file + (".image" if tof == "off" else ".tof")
            call(
                self.folder, "petlm", "image", file, "--output", output, *CORRECTED, "--iterations", ITERATIONS, "--subsets", 1,
                "--smooth-mm", 0, "--voxel-mm", VOXEL_MM, "--backend", "cpu", "--tof", tof, "--no-cache",
                *self._depth(file, *options), *options,
            )  # fmt: skip
            header = (self.folder / output / "image.nii").read_bytes()
            self._images[key] = np.frombuffer(header, "<f4", -1, 352).reshape(np.frombuffer(header, "<i2", 3, 42)[::-1])
        return self._images[key]

    def corrections(self, file: str) -> dict[str, bool]:
        """Whether the image of the file was corrected for each of them."""
        document = json.loads((self.folder / (file + ".image") / "image.json").read_text())
        return {name: correction["made"] for name, correction in document["corrections"].items()}

    def exported(self, name: str, file: str, *options: object) -> Path:
        """The folder of the export of the file."""
        output = self.folder / ".".join(map(str, (file, name, *options)))
        if not output.exists():
            call(self.folder, "petlm", "export", "--format", name, file, "--output", output, *CORRECTED, *options)
        return output


# Few decays tell whether lines end in the right crystals, with the right factors. PETACQ_LONG=1: enough for the bar of the short form.
LONG = "PETACQ_LONG" in os.environ
FEWER = 2 if LONG else 40
SHORT = Scene(SCANNER, ACTIVITY_MBQ, {"min_module_difference": 3, "max_ring_difference": 2})
TWO_LAYERS = Scene(LAYERS, ACTIVITY_MBQ / FEWER, {})
HEXAGON = Scene(SIDES, ACTIVITY_MBQ / FEWER, {})


def figures(values: np.ndarray, voxel_mm: tuple[float, float, float] = (VOXEL_MM,) * 3) -> dict[str, float]:
    """Means of regions, whose voxels count by the share of them that lies in it, and where the activity is.

    ``values``: [z][y][x].
    """
    parts = 4
    inside = (np.arange(parts) - (parts - 1) / 2) / parts
    axes = [
        ((np.arange(n) - (n - 1) / 2)[:, None] + inside).ravel() * mm for n, mm in zip(values.shape[::-1], voxel_mm)
    ]
    # Not the outermost planes: STIR's rays beside the middle of the end rings lie half outside of its image.
    x, y, z = axes[0], axes[1][:, None], abs(axes[2])[:, None, None] < 3
    away = np.hypot(x - AT_MM[0], y - AT_MM[1])

    def of_voxels(where: np.ndarray) -> np.ndarray:
        """The share of each voxel."""
        shape = [n for size in values.shape for n in (size, parts)]
        return np.broadcast_to(where, [n * parts for n in values.shape]).reshape(shape).mean(axis=(1, 3, 5))

    def mean(where: np.ndarray) -> float:
        share = of_voxels(where)
        return float((values * share).sum() / share.sum())

    found = {
        "cylinder": mean((away < RADIUS_MM - EDGE_MM) & z),
        "around its edge": mean((abs(away - RADIUS_MM) < 2 * EDGE_MM) & z),
        "water": mean((np.hypot(x + 1, y - 5) < 3) & z),
    }
    weight = values * of_voxels((away < RADIUS_MM + 2 * EDGE_MM) & z)
    for axis, name in ((2, "x"), (1, "y")):
        middle = axes[2 - axis].reshape(-1, parts).mean(axis=1)
        found[name] = float((weight.sum(axis=tuple({0, 1, 2} - {axis})) * middle).sum() / weight.sum())
    return found


def check(test: unittest.TestCase, who: str, found: dict[str, float], expected: dict[str, float], most: float) -> None:
    """That values differ by at most this share, those of the water by that of the cylinder's, and places by 0.15 mm."""
    print(who + ": " + ", ".join(f"{name} {found[name]:.4g} of {value:.4g}" for name, value in expected.items()))
    for name, value in expected.items():
        scale = {"x": 0.15 / most, "y": 0.15 / most, "water": expected["cylinder"]}.get(name, value)
        with test.subTest(who=who, what=name):
            test.assertLess(abs(found[name] - value) / scale, most)
