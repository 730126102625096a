"""Frames of petlm frames as DICOM: read back with pydicom, they have the values, places and times of the NIfTI file."""

import csv
import json
import shutil
import struct
import subprocess
import unittest
from datetime import datetime
from unittest import mock

import numpy as np
import support

try:
    import pydicom
except ImportError as error:
    raise unittest.SkipTest("pydicom is not installed") from error

import petacq
from petacq.series import dicom


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

    def read(self, frames, name, **more):
        return [pydicom.dcmread(file) for file in petacq.write_dicom(frames, support.scratch() / name, **more)]

    def judge(self, name):
        """dciodvfy (dicom3tools), where it is installed, finds no error in any file."""
        judge = shutil.which("dciodvfy")
        if judge is None:
            return
        for file in sorted((support.scratch() / name).iterdir()):
            said = subprocess.run([judge, file], capture_output=True, text=True, timeout=support.PATIENCE_S)
            self.assertNotIn("Error", said.stderr + said.stdout)

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

    def test_a_point_off_the_axis_is_at_its_place(self):
        slices = self.values.shape[1]
        images = self.read(self.frames, "point")[:slices]
        brightest = max(images, key=lambda i: i.pixel_array.max() * float(i.RescaleSlope))
        y, x = np.unravel_index(brightest.pixel_array.argmax(), brightest.pixel_array.shape)
        row, column = (np.array(brightest.ImageOrientationPatient[i : i + 3], float) for i in (0, 3))
        found = np.array(brightest.ImagePositionPatient, float) + 4 * (x * row + y * column)
        right, front, up = support.SOURCE_POINT_MM
        np.testing.assert_allclose(found, (-right, -front, up), atol=4.1)
        self.judge("point")

    def test_curve_series_and_dicom_agree(self):
        # Whole voxels of an 8 x 8 x 2 box, as a mask in the grid of the frames.
        header = bytearray((self.frames / "frames.nii").read_bytes()[:352])
        struct.pack_into("<8h", header, 40, 3, *self.values.shape[:0:-1], 1, 1, 1, 1)
        box = np.zeros(self.values.shape[1:], "<f4")
        box[2:4, 8:16, 12:20] = 1
        (support.scratch() / "box.nii").write_bytes(header + box.tobytes())
        again = support.scratch() / "with-box"
        support.call(
            *("petlm", "frames", support.small_run(), "--output", again, "--schedule", "2x0.1s,0.15s"),
            *("--voxel-mm", 4, "--iterations", 1, "--subsets", 1, "--backend", "cpu", "--depth-mm", 0),
            *("--region", f"box={support.scratch() / 'box.nii'}"),
        )
        with open(again / "curves.csv", newline="", encoding="utf-8") as file:
            curve = [float(row["mean"]) for row in csv.DictReader(file)]
        images, slices = self.read(again, "box"), self.values.shape[1]
        for frame, length in enumerate((0.1, 0.1, 0.15)):
            self.assertGreater(curve[frame], 0)
            self.assertAlmostEqual(curve[frame] * length / self.values[frame][box > 0].mean(), 1, places=5)
            read = [i.pixel_array * float(i.RescaleSlope) for i in images[frame * slices : (frame + 1) * slices]]
            self.assertAlmostEqual(np.array(read)[box > 0].mean() / (curve[frame] * length), 1, places=4)

    def test_a_gated_series_has_what_the_standard_asks_for(self):
        for rejected, flag in ((0, "N"), (3, "")):

            def gate(about):
                about["Gates"] = {"period_s": 0.3, "cycles": 40, "cycles_rejected": rejected, "phases": 3}

            name = f"gated-{rejected}"
            for image in self.read(self.copy_with(f"to-{name}", gate), name):
                frame = (image.ImageIndex - 1) // self.values.shape[1]
                self.assertEqual(image.SeriesType, ["GATED", "IMAGE"])
                self.assertEqual((image.NumberOfRRIntervals, image.NumberOfTimeSlots), (1, 3))
                self.assertEqual((image.IntervalsAcquired, image.IntervalsRejected), (40, rejected))
                self.assertEqual(image.BeatRejectionFlag, flag)
                self.assertAlmostEqual(float(image.TriggerTime), 100 * frame)
            self.judge(name)

    def test_what_the_standard_requires_is_there_and_no_more(self):
        one = self.copy_with("to-static", lambda about: about.update(TracerName="FDG", InjectionStart=-7200.5,
                             InjectedRadioactivity=0.123456789012345, InjectedRadioactivityUnits="GBq"))
        image = self.read(one, "static", patient_name="Mäuschen^Mimi", species="Mus musculus", weight_kg=1 / 3)[0]
        self.assertEqual(str(image.PatientName), "Mäuschen^Mimi")
        self.assertNotIn("PatientPosition", image)  # as the code sequence is there
        for keyword in ("PatientBreedDescription", "PatientSexNeutered", "Laterality", "PatientOrientationCodeSequence"):
            self.assertIn(keyword, image)
        drug = image.RadiopharmaceuticalInformationSequence[0]
        self.assertAlmostEqual(float(drug.RadionuclideTotalDose) / 123456789.012345, 1, places=9)
        code = drug.RadionuclideCodeSequence[0]
        self.assertEqual((code.CodingSchemeDesignator, code.CodeMeaning), ("SCT", "^18^Fluorine"))
        began = datetime.fromisoformat(json.loads((one / "frames.json").read_text())["TimeZeroUTC"][:-1])
        injected = datetime.strptime(drug.RadiopharmaceuticalStartDateTime[:-5], "%Y%m%d%H%M%S.%f")
        self.assertAlmostEqual((began - injected).total_seconds(), 7200.5, places=3)
        self.judge("static")

    def test_codes_of_nuclides_are_those_of_pydicom(self):
        from petacq.nuclide_codes import NUCLIDE_CODES
        from pydicom.sr.codedict import codes

        known = {(getattr(codes.cid4020, name).scheme_designator, getattr(codes.cid4020, name).value):
                 getattr(codes.cid4020, name).meaning for name in codes.cid4020.dir()}
        for name, code in NUCLIDE_CODES.items():
            self.assertEqual(known.get((code.scheme, code.value), code.meaning), code.meaning)
            self.assertIn(f"^{name.split('-')[1]}^", code.meaning)

    def test_what_no_position_of_the_bed_saw_is_padding(self):
        part = self.copy_with("to-part", lambda about: None)
        data = bytearray((part / "frames.nii").read_bytes())
        values = np.frombuffer(data, "<f4", -1, 352).reshape(self.values.shape)
        values[0, 0] = np.nan
        values[0, 1, 0, 0] = np.nan
        (part / "frames.nii").write_bytes(data)
        images = self.read(part, "part")
        self.assertTrue((images[0].pixel_array == images[0].PixelPaddingValue).all())
        known = images[1].pixel_array != images[1].PixelPaddingValue
        self.assertFalse(known[0, 0])
        self.assertEqual(known.sum(), known.size - 1)
        self.assertNotIn("PixelPaddingValue", images[2])
        self.judge("part")

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
            self.assertEqual(image.RadiopharmaceuticalInformationSequence[0].RadionuclideCodeSequence[0].CodeValue, "77004003")
        self.assertEqual(images[0].DecayCorrection, "NONE")

    def test_decay_has_its_factor_and_time(self):
        def decay(about):
            about["ImageDecayCorrected"] = True
            about["DecayCorrectionFactor"] = [1.25, 1.123456789012345, 2]

        for image in self.read(self.copy_with("to-decay", decay), "decay"):
            frame = (image.ImageIndex - 1) // self.values.shape[1]
            self.assertEqual(image.DecayCorrection, "START")
            self.assertAlmostEqual(float(image.DecayFactor), (1.25, 1.123456789012345, 2)[frame])
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

    def test_an_interrupted_series_leaves_nothing(self):
        out = support.scratch() / "interrupted"
        with mock.patch("petacq.series.dicom._save", side_effect=[None, KeyboardInterrupt]):
            with self.assertRaises(KeyboardInterrupt):
                petacq.write_dicom(self.frames, out)
        self.assertEqual(list(support.scratch().glob("interrupted*")), [])

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
        for wrong in ({"study_uid": "1.2.x"}, {"patient_id": "m" * 65}, {"patient_name": "a\\b"}, {"description": "a\n"}):
            with self.assertRaisesRegex(petacq.PetacqError, "expected"):
                petacq.write_dicom(self.frames, out, **wrong)
        self.assertFalse(out.exists())
        self.assertEqual(dicom.main([str(self.frames), str(self.frames)]), 74)  # it exists
        self.assertEqual(dicom.main([str(support.scratch() / "nothing"), str(out)]), 74)
        self.assertEqual(dicom.main([]), 64)


if __name__ == "__main__":
    unittest.main()
