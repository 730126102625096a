"""A single image of petlm image in DICOM and BIDS: as that of petlm frames with one frame of all records."""

import gzip
import importlib.util
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import support

import petacq
from petacq.series import bids
from petacq.series.frames import read_series

HAS_PYDICOM = importlib.util.find_spec("pydicom") is not None
OPTIONS = ("--voxel-mm", 8, "--iterations", 2, "--subsets", 2, "--backend", "cpu", "--depth-mm", 0)
STATED = {
    "TracerName": "FDG",
    "Manufacturer": "ACME",
    "ModeOfAdministration": "bolus",
    "InjectedRadioactivity": 5.5,
    "InjectedRadioactivityUnits": "MBq",
    "InjectionStart": -60,
}
#: What each program says of itself and of its records in other words, or which only one of them has.
OWN = ("SoftwareVersions", "ReconMethodImplementationVersion", "Notes", "Frames")


class Single(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run = support.small_run()
        cls.image, cls.frames = support.scratch() / "single", support.scratch() / "one-frame"
        support.call("petlm", "image", run, "--output", cls.image, *OPTIONS)
        length = petacq.open_run(run).duration_s
        support.call("petlm", "frames", run, "--output", cls.frames, "--schedule", f"{length:.12f}s", *OPTIONS)

    def copy_with(self, name, change):
        copy = support.scratch() / name
        shutil.copytree(self.image, copy)
        about = json.loads((copy / "image.json").read_text())
        change(about)
        (copy / "image.json").write_text(json.dumps(about))
        return copy

    def test_the_sidecar_is_that_of_a_frame_of_all_records(self):
        one, frame = read_series(self.image), read_series(self.frames)
        np.testing.assert_array_equal(one.values, frame.values)
        self.assertEqual((one.voxel_mm, one.first_mm), (frame.voxel_mm, frame.first_mm))
        self.assertEqual(set(one.about), set(frame.about))
        for key in set(one.about) - set(OWN):
            found, expected = one.about[key], frame.about[key]
            if key in ("FrameDuration", "DecayCorrectionFactor", "FrameTimesStart"):
                np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=key)
            else:
                self.assertEqual(found, expected, key)
        found, expected = one.about["Frames"][0], frame.about["Frames"][0]
        self.assertEqual(found["corrections"].keys(), expected["corrections"].keys())
        self.assertEqual(found["data"], expected["data"])
        self.assertAlmostEqual(found["recorded_s"], expected["recorded_s"], places=9)
        self.assertEqual(one.about["TracerRadionuclide"], "F18")
        self.assertTrue(one.about["SoftwareVersions"].startswith("petlm image "))

    @unittest.skipUnless(HAS_PYDICOM, "pydicom is not installed")
    def test_dicom(self):
        import pydicom

        def calibrate(about):
            about["unit"] = "kBq/ml"
            about["corrections"]["decay"]["made"] = True

        for name, folder, factor, unit in (
            ("plain", self.image, 1, "CNTS"),
            ("calibrated", self.copy_with("to-calibrate", calibrate), 1000, "BQML"),
        ):
            files = petacq.write_dicom(folder, support.scratch() / f"dicom-{name}", patient_id="m")
            images = [pydicom.dcmread(file) for file in files]
            values = petacq.open_image(self.image).values
            self.assertEqual(len(images), len(values))
            for image, expected in zip(images, values):
                self.assertEqual((image.Units, image.SeriesType, image.ImageType[0]), (unit, ["STATIC", "IMAGE"], "ORIGINAL"))
                found = image.pixel_array * float(image.RescaleSlope)
                np.testing.assert_allclose(found, factor * expected, atol=0.51 * float(image.RescaleSlope))
            self.assertEqual(images[0].SeriesDescription, "petlm image small")
            self.assertAlmostEqual(float(images[0].ActualFrameDuration), 1000 * petacq.open_run(support.small_run()).duration_s, delta=1)
        self.assertEqual((images[0].DecayCorrection, "DecayFactor" in images[0]), ("START", True))
        isotope = images[0].RadiopharmaceuticalInformationSequence[0]
        self.assertAlmostEqual(float(isotope.RadionuclideHalfLife), 6586.2, delta=10)

    def test_bids(self):
        root = support.scratch() / "dataset"
        keys = support.scratch() / "keys.json"
        keys.write_text(json.dumps(STATED))
        arguments = [str(self.image), str(root), "--subject", "01", "--species", "mus musculus", "--keys", str(keys)]
        self.assertEqual(bids.main(arguments), 0)
        stem = root / "sub-01" / "pet" / "sub-01_pet"
        self.assertEqual(gzip.decompress(stem.with_suffix(".nii.gz").read_bytes()), (self.image / "image.nii").read_bytes())
        sidecar = json.loads(stem.with_suffix(".json").read_text())
        self.assertEqual({key: sidecar[key] for key in STATED}, STATED)
        self.assertEqual((sidecar["InjectedMass"], sidecar["FrameTimesStart"]), ("n/a", [0]))
        made_by = json.loads((root / "dataset_description.json").read_text())["GeneratedBy"][0]["Name"]
        self.assertEqual(made_by, "petlm image")
        np.testing.assert_array_equal(petacq.open_image(stem.with_suffix(".nii.gz")).values, petacq.open_image(self.image).values)
        validator = shutil.which("bids-validator-deno") or shutil.which("bids-validator-deno", path=Path(sys.executable).parent)
        if validator is None:
            return
        said = subprocess.run([validator, root, "--format", "json"], capture_output=True, text=True, timeout=support.PATIENCE_S)
        found = [i for i in json.loads(said.stdout)["issues"]["issues"] if i["severity"] == "error"]
        self.assertEqual(found, [])

    def test_keys_may_be_stated_for_frames_too(self):
        image, sidecar = petacq.write_bids(self.frames, support.scratch() / "frames-dataset", "02", stated=STATED)
        self.assertEqual(json.loads(sidecar.read_text())["TracerName"], "FDG")

    def test_what_cannot_be_stated(self):
        root = support.scratch() / "refused"
        for stated, reason in (
            ({}, "BIDS needs InjectedRadioactivity, InjectionStart: state them with petacq-bids --keys"),
            ({"Units": "x"}, "Units cannot be stated: expected keys that petlm does not know: Manufacturer, "),
            ({"TracerRadionuclide": "C11"}, "TracerRadionuclide cannot be stated"),
            ({"TracerName": 7}, "TracerName: expected a text, found 7"),
            ({"InjectionStart": "n/a"}, "InjectionStart: expected a number, found 'n/a'"),
            ({"InjectedMass": "much"}, 'InjectedMass: expected a number or "n/a", found \'much\''),
        ):
            with self.assertRaisesRegex(petacq.PetacqError, reason):
                petacq.write_bids(self.image, root, "01", stated=stated)
        keys = support.scratch() / "wrong.json"
        for text in ("{", "[]"):
            keys.write_text(text)
            self.assertEqual(bids.main([str(self.image), str(root), "--subject", "1", "--keys", str(keys)]), 65)
        self.assertEqual(bids.main([str(self.image), str(root), "--subject", "1", "--keys", str(keys / "none")]), 74)
        self.assertFalse(root.exists())

    def test_images_that_do_not_tell_enough(self):
        for name, change, reason in (
            ("other", lambda about: about.update(program="petsim"), "expected that of petlm image"),
            ("older", lambda about: about.pop("iterations"), "of an earlier petlm image"),
            ("timeless", lambda about: about["coverage"].update(intervals=None), "not known when the records"),
            ("without", lambda about: about.pop("corrections"), "expected the sidecar of petlm image"),
        ):
            with self.assertRaisesRegex(petacq.PetacqError, reason):
                read_series(self.copy_with(name, change))
        with self.assertRaises(FileNotFoundError):
            read_series(support.scratch())


if __name__ == "__main__":
    unittest.main()
