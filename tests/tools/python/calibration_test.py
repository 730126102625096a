import json
import unittest

import numpy as np
import support

import petacq

try:
    import h5py
except ImportError as error:
    raise unittest.SkipTest("h5py is not installed (python3-h5py)") from error


class Calibration(unittest.TestCase):
    def setUp(self):
        self.run_ = petacq.open_run(support.small_run())
        self.path = support.small_run().parents[1] / "small.h5"
        self.calibration = self.run_.calibration()

    def test_is_what_petcal_says(self):
        scanner = self.path.with_name("small.scanner.json")
        said = json.loads(support.call("petcal", "inspect", self.path, "--scanner", scanner, "--json"))
        c = self.calibration
        self.assertEqual(c.sha256, said["sha256"])
        self.assertEqual(list(c.position_table.shape), said["position_table"]["shape"])
        self.assertEqual(list(c.energy_factor.shape), said["energy_factor"]["shape"])
        self.assertEqual(c.bins, 16)
        outside = (c.position_table >= c.scanner.crystals_per_du).mean()
        self.assertAlmostEqual(outside, said["position_table"]["outside_fraction"], places=6)
        self.assertEqual(c.time_offset.shape, (2880,))

    def test_every_position_leads_to_a_crystal_of_its_block(self):
        c, s = self.calibration, self.calibration.scanner
        size = s.position_size
        y, x = np.divmod(np.arange(size * size), size)
        found = set()
        for bdm in (0, 11, 12, 23):
            for du in range(s.du_count):
                crystal = c.crystal(bdm, du, x, y)
                inside = crystal >= 0
                np.testing.assert_array_equal(s.bdm(crystal[inside]), bdm)
                np.testing.assert_array_equal(s.du(crystal[inside]), du)
                np.testing.assert_array_equal(~inside, c.position_table[bdm, du] >= s.crystals_per_du)
                found.update(crystal[inside].tolist())
        self.assertEqual(len(found), 4 * s.du_count * s.crystals_per_du)

    def test_energy_is_one_product_of_floats(self):
        c, s = self.calibration, self.calibration.scanner
        for crystal in (0, 1234, 2879):
            for adc in (0, 9, 10, 155, 160, 65535):
                table = c.energy_factor[int(s.bdm(crystal)), int(s.du(crystal)), int(s.local(crystal))]
                expected = np.float32(adc) * table[min(adc // 10, 15)]
                self.assertEqual(c.energy_keV(crystal, adc), expected)

    def test_another_calibration_than_the_runs_is_refused(self):
        other = support.scratch() / "other.h5"
        scanner = self.path.with_name("small.scanner.json")
        support.call("petcal", "make", "--scanner", scanner, "--output", other, "--seed", 9)
        with self.assertRaisesRegex(petacq.CalibrationError, "SHA-256"):
            self.run_.calibration(other)
        self.assertIsNone(petacq.Calibration.load(other, self.run_.scanner).time_offset)

    def test_what_does_not_fit(self):
        scanner = self.run_.scanner
        mouse = petacq.Scanner.load(support.SOURCE / "config/examples/mouse.scanner.json")
        with self.assertRaisesRegex(petacq.CalibrationError, r"position_table.*\[48, 4, 65536\]"):
            petacq.Calibration.load(self.path, mouse)
        with self.assertRaises(FileNotFoundError):
            petacq.Calibration.load(support.scratch() / "none.h5", scanner)
        cut = support.scratch() / "cut.h5"
        cut.write_bytes(self.path.read_bytes()[:5000])
        with self.assertRaises(petacq.CalibrationError):
            petacq.Calibration.load(cut, scanner)
        cut.write_bytes(b"not HDF5")
        with self.assertRaises(petacq.CalibrationError):
            petacq.Calibration.load(cut, scanner)
        wrong = support.scratch() / "wrong.h5"
        for name, value in (
            ("position_table", np.zeros((24, 6, 4096), np.int32)),
            ("energy_factor", np.full((24, 6, 20, 4), np.nan, np.float32)),
            ("energy_factor", np.full((24, 6, 20, 4), -1, np.float32)),
            ("energy_factor", np.zeros((24, 6, 20), np.float32)),
            ("time_offset", np.zeros(7, np.int32)),
        ):
            with h5py.File(self.path) as source, h5py.File(wrong, "w") as file:
                for key in source:
                    file[key] = value if key == name else source[key][()]
            with self.assertRaisesRegex(petacq.CalibrationError, name):
                petacq.Calibration.load(wrong, scanner)

    def test_entries_of_two_bytes(self):
        description = json.loads((support.SOURCE / "config/examples/small.scanner.json").read_text(encoding="utf-8"))
        description.pop("sources")
        description["frame_version"] = 2
        description["geometry"]["crystals"] = {"y": 15, "z": 20}
        description["dimensions"]["ring_radius_mm"] = 300
        file, path = support.scratch() / "wide.scanner.json", support.scratch() / "wide.h5"
        file.write_text(json.dumps(description), encoding="utf-8")
        support.call("petcal", "make", "--scanner", file, "--output", path)
        scanner = petacq.Scanner.load(file)
        self.assertEqual(scanner.frame_version, 2)
        c = petacq.Calibration.load(path, scanner)
        self.assertEqual(c.position_table.dtype, np.dtype(np.uint16))
        self.assertEqual(set(np.unique(c.position_table)), {*range(300), 65535})
        for frame_version in (1, 3, "2"):
            with self.assertRaises(petacq.ScannerError):
                petacq.Scanner.from_json({**description, "frame_version": frame_version})


if __name__ == "__main__":
    unittest.main()
