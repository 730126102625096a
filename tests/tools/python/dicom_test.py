"""Frames of petlm frames as DICOM: read back with pydicom, they have the values, places and times of the NIfTI file."""

import json
import shutil
import unittest

import numpy as np
import support

try:
    import pydicom
except ImportError as error:
    raise unittest.SkipTest("pydicom is not installed") from error

import petacq
from petacq import dicom


class Dicom(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.frames = support.scratch() / "frames"
        support.call(
            *("petlm", "frames", support.small_run(), "--output", cls.frames, "--schedule", "2x0.1s,0.15s"),
            *("--voxel-mm", 4, "--iterations", 1, "--subsets", 1, "--backend", "cpu", "--depth-mm", 0),
        )
        data = (cls.frames / "frames.nii").read_bytes()
        dim = np.frombuffer(data, "<i2", 5, 40)
        cls.values = np.frombuffer(data, "<f4", -1, 352).reshape(dim[:0:-1])
        cls.affine = np.vstack([np.frombuffer(data, "<f4", 12, 280).reshape(3, 4), [0, 0, 0, 1]])

    def copy_with(self, name, change):
        """The frames with another sidecar."""
        copy = support.scratch() / name
        shutil.copytree(self.frames, copy)
        about = json.loads((copy / "frames.json").read_text())
        change(about)
        (copy / "frames.json").write_text(json.dumps(about))
        return copy

    def read(self, frames, name):
        return [pydicom.dcmread(file) for file in petacq.write_dicom(frames, support.scratch() / name)]

    def test_values_and_places_are_those_of_the_frames(self):
        def calibrate(about):
            about["Units"] = "kBq/mL"

        slices = self.values.shape[1]
        for name, factor, unit in (("plain", 1, "CNTS"), ("calibrated", 1000, "BQML")):
            frames = self.frames if name == "plain" else self.copy_with("to-calibrate", calibrate)
            images = self.read(frames, name)
            self.assertEqual(len(images), 3 * slices)
            self.assertEqual(len({image.SOPInstanceUID for image in images}), len(images))
            self.assertEqual(len({image.SeriesInstanceUID for image in images}), 1)
            for image in images:
                self.assertEqual(image.Units, unit)
                frame, z = divmod(image.ImageIndex - 1, slices)
                expected = factor * self.values[frame, z]
                found = image.pixel_array * float(image.RescaleSlope) + float(image.RescaleIntercept)
                np.testing.assert_allclose(found, expected, atol=0.51 * float(image.RescaleSlope))
                # The middle of voxel (x, y, z) in both systems: DICOM's x and y are the opposite ones.
                row, column = (np.array(image.ImageOrientationPatient[i : i + 3], float) for i in (0, 3))
                for x, y in ((0, 0), (2, 5)):
                    at = np.array(image.ImagePositionPatient, float)
                    at = at + x * float(image.PixelSpacing[1]) * row + y * float(image.PixelSpacing[0]) * column
                    nifti = (self.affine @ [x, y, z, 1])[:3]
                    np.testing.assert_allclose(at, nifti * [-1, -1, 1], atol=1e-4)

    def test_times_are_those_of_the_frames(self):
        about = json.loads((self.frames / "frames.json").read_text())
        images = self.read(self.frames, "times")
        for image in images:
            frame = (image.ImageIndex - 1) // self.values.shape[1]
            self.assertEqual(image.SeriesType, ["DYNAMIC", "IMAGE"])
            self.assertEqual(image.NumberOfTimeSlices, 3)
            self.assertEqual(int(image.ActualFrameDuration), round(1000 * about["Frames"][frame]["recorded_s"]))
            start, duration = about["FrameTimesStart"][frame], about["FrameDuration"][frame]
            self.assertAlmostEqual(float(image.FrameReferenceTime), 1000 * (start + duration / 2), delta=0.01)
            self.assertEqual(image.SeriesDate + image.SeriesTime[:6], about["TimeZeroUTC"][:19].translate({45: "", 58: "", 84: ""}))
            self.assertEqual(image.RadiopharmaceuticalInformationSequence[0].RadionuclideCodeSequence[0].CodeValue, "C-111A1")
        self.assertEqual(images[0].DecayCorrection, "NONE")

    def test_decay_has_its_factor_and_time(self):
        def decay(about):
            about["ImageDecayCorrected"] = True
            about["DecayCorrectionFactor"] = [1.25, None, 2]

        for image in self.read(self.copy_with("to-decay", decay), "decay"):
            frame = (image.ImageIndex - 1) // self.values.shape[1]
            self.assertEqual(image.DecayCorrection, "START")
            self.assertEqual("DecayFactor" in image, frame != 1)
            if frame == 2:
                half_life_ms = 1000 * float(image.RadiopharmaceuticalInformationSequence[0].RadionuclideHalfLife)
                self.assertAlmostEqual(float(image.FrameReferenceTime) / half_life_ms, 1, places=6)

    def test_frames_without_data_are_left_out(self):
        def gap(about):
            about["Frames"][1]["data"] = False

        images = self.read(self.copy_with("to-gap", gap), "gap")
        slices = self.values.shape[1]
        self.assertEqual(len(images), 2 * slices)
        self.assertEqual([image.ImageIndex for image in images], list(range(1, 2 * slices + 1)))
        np.testing.assert_allclose(
            images[slices].pixel_array * float(images[slices].RescaleSlope),
            self.values[2, 0],
            atol=float(images[slices].RescaleSlope),
        )

    def test_the_same_frames_have_the_same_uids(self):
        first, again = self.read(self.frames, "first"), self.read(self.frames, "again")
        self.assertEqual([i.SOPInstanceUID for i in first], [i.SOPInstanceUID for i in again])

    def test_what_is_no_series_is_refused(self):
        out = support.scratch() / "none"
        for change, expected in (
            (lambda about: about.pop("Frames"), "expected the sidecar"),
            (lambda about: about["Frames"].pop(), "frames.json has 2 frames"),
            (lambda about: about.pop("TimeZeroUTC"), "time of day"),
        ):
            frames = self.copy_with(f"wrong-{expected[:4].strip()}", change)
            with self.assertRaisesRegex(petacq.PetacqError, expected):
                petacq.write_dicom(frames, out)
        self.assertFalse(out.exists())
        self.assertEqual(dicom.main([str(self.frames), str(self.frames)]), 74)  # it exists
        self.assertEqual(dicom.main([str(support.scratch() / "nothing"), str(out)]), 74)
        self.assertEqual(dicom.main([]), 64)


if __name__ == "__main__":
    unittest.main()
