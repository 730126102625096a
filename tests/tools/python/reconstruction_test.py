"""CASToR and STIR, with the corrections of the exports, and petlm image reconstruct one run and must agree.

Takes minutes. CASToR needs castor-recon and CASTOR_CONFIG, STIR lm_to_projdata and OSMAPOSL; skipped without them.
"""

import math
import os
import re
import shutil
import subprocess
import unittest

import numpy as np
import support

try:
    import h5py
except ImportError as error:
    raise unittest.SkipTest("h5py is not installed") from error

CASTOR = shutil.which("castor-recon") and "CASTOR_CONFIG" in os.environ
STIR = shutil.which("lm_to_projdata") and shutil.which("OSMAPOSL")
if not CASTOR and not STIR:
    raise unittest.SkipTest("neither castor-recon with CASTOR_CONFIG nor lm_to_projdata and OSMAPOSL are installed")

RADIUS_MM, OBJECT_MM, LENGTH_MM = 12, 13, 32
ROD_MM, ROD_AT_MM = 3.5, 6.5
# How far an edge is blurred depends on projector and voxels: regions end this far from all edges.
EDGE_MM = 1.6
WARM_MBQ, CONTRAST = 4, 4
VOXEL_MM = 1.6
ITERATIONS, SUBSETS = 8, 6
MOST_DIFFERENT = 0.03


def rod(degrees):
    return ROD_AT_MM * math.cos(math.radians(degrees)), ROD_AT_MM * math.sin(math.radians(degrees))


HOT, COLD = (rod(0), rod(120)), rod(240)


def phantom():
    """Two hot rods and a cold one in a warm cylinder."""
    arguments = ["--cylinder", f"0,0,0,{RADIUS_MM},{LENGTH_MM},{WARM_MBQ}"]
    more = WARM_MBQ * (CONTRAST - 1) * (ROD_MM / RADIUS_MM) ** 2
    for x, y in HOT:
        arguments += ["--cylinder", f"{x:.4f},{y:.4f},0,{ROD_MM},{LENGTH_MM},{more:.4f}"]
    return [*arguments, "--cold", f"{COLD[0]:.4f},{COLD[1]:.4f},0,{ROD_MM},{LENGTH_MM}"]


def make_run(folder):
    """The phantom in water, seen by crystals of uneven efficiency, some of them dead."""
    examples = support.SOURCE / "config" / "examples"
    shutil.copy(examples / "small.scanner.json", folder)
    configuration = (examples / "small.json").read_text()
    limits = '"delay_ticks": 6400, "min_module_difference": 3, "max_ring_difference": 3'
    (folder / "small.json").write_text(configuration.replace('"delay_ticks": 6400', limits))
    (folder / "data").mkdir()
    scanner = ("--scanner", folder / "small.scanner.json")
    detector = ("--spot-sigma", 0.06, "--spot-jitter", 0, "--time-spread-ps", 0, "--gain-spread", 0.02)
    uneven = ("--efficiency-spread", 0.2, "--dead", 0.005)
    files = ("--output", folder / "detector.h5", "--calibration", folder / "small.h5")
    support.call("petsim", "make-detector", *scanner, *files, *detector, *uneven)
    simulation = (
        *scanner, "--calibration", folder / "small.h5", "--detector", folder / "detector.h5",
        *phantom(), "--crystals", "surface", "--object", f"0,0,0,{OBJECT_MM},36", "--efficiency", 0.55,
        "--duration-s", 8, "--fast", "--write", folder / "stream.pcap",
    )  # fmt: skip
    subprocess.run([support.program("petsim"), *map(str, simulation)], check=True, capture_output=True)
    subprocess.run(
        [support.program("petacqd"), "--config", "small.json", "--replay", "stream.pcap", "--whole", "--run", "run"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    with h5py.File(folder / "detector.h5") as true, h5py.File(folder / "normalisation.h5", "w") as out:
        efficiency = np.where(true["state"][:] == 1, 0, true["efficiency"][:])
        out["efficiency"] = (efficiency / efficiency.mean()).astype("<f4")
        out["transaxial"] = np.ones((7, 10, 10), "<f4")
        out["axial"] = np.ones((24, 24), "<f4")
        out.attrs["activity_factor"] = 0.55**-2


def means_of(values, voxel_mm):
    """By region, whose voxels count by the share of them that lies in it: grids differ. ``values``: [z][y][x]."""
    parts = 5
    inside = (np.arange(parts) - (parts - 1) / 2) / parts
    axes = [(np.arange(n) - (n - 1) / 2) * mm for n, mm in zip(values.shape[::-1], voxel_mm)]
    z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
    shares = {}
    for step_x, step_y in ((a * voxel_mm[0], b * voxel_mm[1]) for a in inside for b in inside):
        at_x, at_y = x + step_x, y + step_y
        cylinder = (np.hypot(at_x, at_y) < RADIUS_MM - EDGE_MM) & (abs(z) < 10)
        away = [np.hypot(at_x - rod_x, at_y - rod_y) for rod_x, rod_y in (*HOT, COLD)]
        regions = {
            "cylinder": cylinder,
            "warm": cylinder & (np.minimum.reduce(away) > ROD_MM + EDGE_MM),
            "hot rods": cylinder & (np.minimum(*away[:2]) < ROD_MM - EDGE_MM),
            "cold rod": cylinder & (away[2] < ROD_MM - EDGE_MM),
        }
        for name, where in regions.items():
            shares[name] = shares.get(name, 0) + where
    return {name: float((values * share).sum() / share.sum()) for name, share in shares.items()}


def interfile(header, data):
    """Values [z][y][x] and the size of a voxel, of CASToR or STIR."""
    text = header.read_text()
    shape = [int(n) for n in re.findall(r"!?matrix size ?\[\d\] := (\d+)", text)]
    voxel = [float(mm) for mm in re.findall(r"scaling factor \(mm/pixel\) \[\d\] := ([\d.]+)", text)]
    bytes_each = re.search(r"number of bytes per pixel := (\d)", text).group(1)
    return np.fromfile(data, f"<f{bytes_each}").reshape(shape[::-1]), voxel


class Reconstruction(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.scratch() / "reconstruction"
        cls.folder.mkdir()
        make_run(cls.folder)
        cls.corrected = (
            "--normalisation", cls.folder / "normalisation.h5", "--attenuation", f"0,0,0,{OBJECT_MM},36",
            "--depth-mm", 0, "--nuclide", "F-18",
        )  # fmt: skip
        same = ("--iterations", ITERATIONS, "--subsets", SUBSETS, "--smooth-mm", 0, "--voxel-mm", VOXEL_MM)
        image = cls.folder / "image"
        run = cls.folder / "data" / "run"
        support.call("petlm", "image", run, "--output", image, *cls.corrected, *same, "--backend", "cpu")
        header = (image / "image.nii").read_bytes()
        n = np.frombuffer(header, "<i2", 3, 42)
        cls.expected = means_of(np.frombuffer(header, "<f4", -1, 352).reshape(n[::-1]), (VOXEL_MM,) * 3)

    def export(self, name):
        run = self.folder / "data" / "run"
        support.call("petlm", "export", "--format", name, run, "--output", self.folder / name, *self.corrected)
        return self.folder / name

    def check(self, program, found):
        print(", ".join(f"{name}: {program} {found[name]:.1f}, petlm image {mean:.1f} kBq/ml"
                        for name, mean in self.expected.items()))  # fmt: skip
        for name, mean in self.expected.items():
            # The cold rod has no activity to be a share of.
            scale = self.expected["warm"] if name == "cold rod" else mean
            with self.subTest(program=program, region=name):
                self.assertLess(abs(found[name] - mean) / scale, MOST_DIFFERENT)

    @unittest.skipUnless(CASTOR, "castor-recon is not installed, or CASTOR_CONFIG not set")
    def test_castor_agrees(self):
        files = self.export("castor")
        configuration = self.folder / "configuration"
        shutil.copytree(os.environ["CASTOR_CONFIG"], configuration)
        for name in ("small.hscan", "small.lut"):
            shutil.copy(files / name, configuration / "scanner")
        for projector in ("classicSiddon", "joseph"):
            subprocess.run(
                ["castor-recon", "-df", "castor/prompts.cdh", "-norm", "castor/lines.cdh", "-opti", "MLEM",
                 "-it", f"{ITERATIONS}:{SUBSETS}", "-oit", "-1", "-proj", projector, "-dim", "40,40,28",
                 "-vox", f"{VOXEL_MM},{VOXEL_MM},{VOXEL_MM}", "-dout", projector, "-th", "2"],
                cwd=self.folder, check=True, capture_output=True,
                env=os.environ | {"CASTOR_CONFIG": str(configuration)},
            )  # fmt: skip
            image = self.folder / projector / f"{projector}_it{ITERATIONS}"
            found = means_of(*interfile(image.with_suffix(".hdr"), image.with_suffix(".img")))
            self.check("CASToR " + projector, found)

    @unittest.skipUnless(STIR, "lm_to_projdata and OSMAPOSL are not installed")
    def test_stir_agrees(self):
        files = self.export("stir")
        last = ITERATIONS * SUBSETS
        parameters = (files / "osem.par").read_text()
        asked = parameters.replace("number of subiterations := 24", f"number of subiterations := {last}")
        self.assertNotEqual(asked, parameters)
        (files / "osem.par").write_text(asked)
        for command in (["lm_to_projdata", "lm_to_projdata.par"], ["OSMAPOSL", "osem.par"]):
            subprocess.run(command, cwd=files, check=True, capture_output=True)
        self.check("STIR", means_of(*interfile(files / f"image_{last}.hv", files / f"image_{last}.v")))


if __name__ == "__main__":
    unittest.main()
