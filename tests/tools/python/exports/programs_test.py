"""CASToR and STIR reconstruct the exports of a frame, and petlm image the frame: they must agree.

CASToR needs castor-recon and CASTOR_CONFIG, STIR lm_to_projdata and OSMAPOSL; skipped without them.
"""

import os
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import numpy as np
import scene

CASTOR = shutil.which("castor-recon") and "CASTOR_CONFIG" in os.environ
STIR = shutil.which("lm_to_projdata") and shutil.which("OSMAPOSL")
MOST_DIFFERENT = 0.03


def interfile(header: Path, data: Path) -> dict[str, float]:
    """The figures of an image of CASToR or STIR."""
    text = header.read_text()
    shape = [int(n) for n in re.findall(r"!?matrix size ?\[\d\] := (\d+)", text)]
    voxel = tuple(float(mm) for mm in re.findall(r"scaling factor \(mm/pixel\) \[\d\] := ([\d.]+)", text))
    bytes_each = re.search(r"number of bytes per pixel := (\d)", text).group(1)
    return scene.figures(np.fromfile(data, f"<f{bytes_each}").reshape(shape[::-1]), voxel)


class Programs(unittest.TestCase):
    def check(self, who: str, found: dict[str, float], tof: str = "off") -> None:
        scene.check(self, who, found, scene.figures(scene.SHORT.image("frame.plm", tof=tof)), MOST_DIFFERENT)

    def castor(self, tof: str, *options: object) -> None:
        files = scene.SHORT.exported("castor", "frame.plm", *options)
        configuration = files / "configuration"
        shutil.copytree(os.environ["CASTOR_CONFIG"], configuration)
        for name in ("short.hscan", "short.lut"):
            shutil.copy(files / name, configuration / "scanner")
        size = ",".join(map(str, scene.SHORT.image("frame.plm", tof=tof).shape[::-1]))
        voxel = ",".join([str(scene.VOXEL_MM)] * 3)
        for projector in ("classicSiddon", "joseph"):
            subprocess.run(
                ["castor-recon", "-df", "prompts.cdh", "-norm", "lines.cdh", "-opti", "MLEM",
                 "-it", f"{scene.ITERATIONS}:1", "-oit", "-1", "-proj", projector, "-dim", size, "-vox", voxel,
                 "-dout", projector, "-th", "2"],
                cwd=files, check=True, capture_output=True, env=os.environ | {"CASTOR_CONFIG": str(configuration)},
            )  # fmt: skip
            image = files / projector / f"{projector}_it{scene.ITERATIONS}"
            found = interfile(image.with_suffix(".hdr"), image.with_suffix(".img"))
            self.check(f"CASToR {projector}, TOF {tof}", found, tof)

    @unittest.skipUnless(CASTOR, "castor-recon is not installed, or CASTOR_CONFIG not set")
    def test_castor_agrees(self) -> None:
        self.castor("off")

    @unittest.skipUnless(CASTOR, "castor-recon is not installed, or CASTOR_CONFIG not set")
    def test_castor_agrees_with_the_time_of_flight(self) -> None:
        self.castor(str(scene.TOF_PS), "--tof-resolution-ps", scene.TOF_PS)

    @unittest.skipUnless(STIR, "lm_to_projdata and OSMAPOSL are not installed")
    def test_stir_agrees(self) -> None:
        files = scene.SHORT.exported("stir", "frame.plm")
        parameters = (files / "osem.par").read_text()
        for key, value in (("subsets", 1), ("subiterations", scene.ITERATIONS)):
            parameters, found = re.subn(f"(number of {key} := )\\d+", rf"\g<1>{value}", parameters)
            self.assertEqual(found, 1)
        parameters = re.sub(r"(subiteration intervals := )\d+", rf"\g<1>{scene.ITERATIONS}", parameters)
        (files / "osem.par").write_text(parameters)
        for command in (["lm_to_projdata", "lm_to_projdata.par"], ["OSMAPOSL", "osem.par"]):
            subprocess.run(command, cwd=files, check=True, capture_output=True)
        image = files / f"image_{scene.ITERATIONS}"
        self.check("STIR", interfile(image.with_suffix(".hv"), image.with_suffix(".v")))


if __name__ == "__main__":
    unittest.main()
