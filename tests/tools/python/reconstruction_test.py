"""CASToR, STIR and petlm image reconstruct one run with the corrections of the exports, and must agree.

Takes minutes and needs castor-recon with CASTOR_CONFIG, lm_to_projdata and OSMAPOSL; skipped without them.
"""

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

for needed in ("castor-recon", "lm_to_projdata", "OSMAPOSL"):
    if shutil.which(needed) is None:
        raise unittest.SkipTest(f"{needed} is not installed")
if "CASTOR_CONFIG" not in os.environ:
    raise unittest.SkipTest("CASTOR_CONFIG does not name the configuration of CASToR")

RADIUS_MM, OBJECT_MM = 12, 13
MOST_DIFFERENT = 0.03


def make_run(folder):
    """A warm cylinder in water, seen by crystals of uneven efficiency, some of them dead."""
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
    support.call(
        "petsim", *scanner, "--calibration", folder / "small.h5", "--detector", folder / "detector.h5",
        "--cylinder", f"0,0,0,{RADIUS_MM},32,6", "--object", f"0,0,0,{OBJECT_MM},36", "--efficiency", 0.55,
        "--duration-s", 6, "--fast", "--write", folder / "stream.pcap",
    )  # fmt: skip
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


def mean_of(values, voxel_mm):
    """Of a region well inside the cylinder. ``values``: [z][y][x]."""
    axes = [(np.arange(n) - (n - 1) / 2) * mm for n, mm in zip(values.shape[::-1], voxel_mm)]
    z, y, x = np.meshgrid(*axes[::-1], indexing="ij")
    return float(values[(np.hypot(x, y) < RADIUS_MM - 3) & (abs(z) < 10)].mean())


class Reconstruction(unittest.TestCase):
    def test_three_programs_agree(self):
        folder = support.scratch() / "reconstruction"
        folder.mkdir()
        make_run(folder)
        corrected = (
            "--normalisation", folder / "normalisation.h5", "--attenuation", f"0,0,0,{OBJECT_MM},36", "--depth-mm", 0,
            "--nuclide", "F-18",
        )  # fmt: skip
        run = folder / "data" / "run"
        same = ("--iterations", 4, "--subsets", 6, "--smooth-mm", 0, "--voxel-mm", 1.6, "--backend", "cpu")
        support.call("petlm", "image", run, "--output", folder / "image", *corrected, *same)
        header = (folder / "image" / "image.nii").read_bytes()
        n = np.frombuffer(header, "<i2", 3, 42)
        means = {"petlm image": mean_of(np.frombuffer(header, "<f4", -1, 352).reshape(n[::-1]), (1.6,) * 3)}

        for program in ("castor", "stir"):
            support.call("petlm", "export", "--format", program, run, "--output", folder / program, *corrected)
        configuration = folder / "configuration"
        shutil.copytree(os.environ["CASTOR_CONFIG"], configuration)
        for name in ("small.hscan", "small.lut"):
            shutil.copy(folder / "castor" / name, configuration / "scanner")
        subprocess.run(
            ["castor-recon", "-df", "castor/prompts.cdh", "-norm", "castor/lines.cdh", "-opti", "MLEM", "-it", "4:6",
             "-proj", "joseph", "-dim", "40,40,28", "-vox", "1.6,1.6,1.6", "-dout", "castor-image", "-th", "2"],
            cwd=folder, check=True, capture_output=True, env=os.environ | {"CASTOR_CONFIG": str(configuration)},
        )  # fmt: skip
        values = np.fromfile(folder / "castor-image" / "castor-image_it4.img", "<f4")
        means["CASToR"] = mean_of(values.reshape(28, 40, 40), (1.6,) * 3)

        for command in (["lm_to_projdata", "lm_to_projdata.par"], ["OSMAPOSL", "osem.par"]):
            subprocess.run(command, cwd=folder / "stir", check=True, capture_output=True)
        header = (folder / "stir" / "image_24.hv").read_text()
        shape = [int(n) for n in re.findall(r"!matrix size ?\[\d\] := (\d+)", header)]
        voxel = [float(mm) for mm in re.findall(r"scaling factor \(mm/pixel\) \[\d\] := ([\d.]+)", header)]
        means["STIR"] = mean_of(np.fromfile(folder / "stir" / "image_24.v", "<f4").reshape(shape[::-1]), voxel)

        print(", ".join(f"{name} {mean:.1f} kBq/ml" for name, mean in means.items()))
        self.assertLess(max(means.values()) / min(means.values()) - 1, MOST_DIFFERENT)


if __name__ == "__main__":
    unittest.main()
