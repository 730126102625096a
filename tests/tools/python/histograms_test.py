import unittest
from collections import Counter

import numpy as np
import support

import petacq
from petacq import histograms


class Histograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = petacq.open_run(support.small_run())
        cls.scanner = cls.run_.scanner
        cls.records = cls.run_.coincidences.records()
        cls.prompts = cls.records[cls.records["kind"] == petacq.PROMPT]
        cls.delayeds = cls.records[cls.records["kind"] == petacq.DELAYED]

    def test_energy_spectrum(self):
        counts, edges = histograms.energy_spectrum(self.run_.coincidences, bin_keV=10, up_to_keV=600)
        energies = np.concatenate((self.prompts["energy_a"], self.prompts["energy_b"]))
        expected = np.histogram(energies, edges)[0]
        self.assertEqual(len(counts), 60)
        # np.histogram includes the last edge.
        np.testing.assert_array_equal(counts[:-1], expected[:-1])
        self.assertLess(counts.sum(), len(energies))
        peak = histograms.energy_spectrum(self.run_.singles)
        self.assertAlmostEqual(peak.centres[peak.counts.argmax()], 511, delta=15)

    def test_crystal_map(self):
        both = Counter(self.delayeds["crystal_a"].tolist()) + Counter(self.delayeds["crystal_b"].tolist())
        found = histograms.crystal_map(self.run_.coincidences, self.scanner, "delayed")
        self.assertEqual(found.shape, (24, 120))
        self.assertEqual({int(i): int(n) for i, n in enumerate(found.ravel()) if n}, dict(both))
        singles = histograms.crystal_map(self.run_.singles, self.scanner)
        self.assertEqual(singles.ravel().tolist(), self.run_.histograms["crystals"])

    def test_time_differences(self):
        ticks, counts = histograms.time_differences(self.run_.coincidences, 320)
        signed = [
            int(r["dt"]) if r["crystal_b"] > r["crystal_a"] else -int(r["dt"])
            for r in self.prompts[["dt", "crystal_a", "crystal_b"]]
        ]
        self.assertEqual({int(t): int(n) for t, n in zip(ticks, counts) if n}, dict(Counter(signed)))
        self.assertEqual(
            histograms.time_differences(self.run_.coincidences, 320, "delayed")[1].sum(), len(self.delayeds)
        )

    def test_rates(self):
        run = self.run_
        given = histograms.rates(run.coincidences, run.scanner.tick_ps, 0.1, run.start_ticks, run.stop_ticks)
        widths = np.diff(given.seconds)
        np.testing.assert_allclose(widths[:-1], 0.1)
        self.assertAlmostEqual((given.prompts * widths).sum(), len(self.prompts), places=3)
        self.assertAlmostEqual((given.delayeds * widths).sum(), len(self.delayeds), places=3)

    def test_michelogram(self):
        found = histograms.michelogram(self.run_.coincidences, self.scanner)
        self.assertEqual(found.sum(), len(self.prompts))
        expected = np.zeros((24, 24), int)
        for a, b in zip(self.prompts["crystal_a"].tolist(), self.prompts["crystal_b"].tolist()):
            first, second = sorted((a, b), key=lambda crystal: crystal % 120)
            expected[first // 120, second // 120] += 1
        np.testing.assert_array_equal(found, expected)

    def test_sinogram_shows_the_source_where_it_is(self):
        x, y, z = support.SOURCE_POINT_MM
        found = histograms.sinogram(self.run_.coincidences, self.scanner, angles=30, radial=64)
        self.assertEqual(found.counts.shape, (47, 30, 64))
        self.assertGreater(found.counts.sum(), 0.98 * len(self.prompts))
        rows = found.counts.sum(0)
        weights = rows / rows.sum(1, keepdims=True)
        # The mean position of the counts near the peak at each angle.
        for angle, row in zip(found.angles, weights):
            expected = x * np.cos(angle) + y * np.sin(angle)
            near = abs(found.radial_mm - expected) < 4
            self.assertGreater(row[near].sum(), 0.9)
            self.assertAlmostEqual((row[near] * found.radial_mm[near]).sum() / row[near].sum(), expected, delta=1.0)
        # Single-slice rebinning spreads an off-centre source along the axis, about its place.
        planes = found.counts.sum((1, 2))
        self.assertAlmostEqual((planes * found.planes_mm).sum() / planes.sum(), z, delta=2.5)

    def test_sinogram_of_one_line(self):
        pair = np.zeros(1, petacq.COINCIDENCE)
        pair["crystal_a"], pair["crystal_b"] = 2 + 120 * 3, 62 + 120 * 8  # opposite each other, on either side of x
        front = self.scanner.positions_mm()
        a, b = front[2 + 120 * 3], front[62 + 120 * 8]
        found = histograms.sinogram(pair, self.scanner)
        (plane,), (angle,), (column,) = np.nonzero(found.counts)
        self.assertEqual(plane, 11)
        self.assertAlmostEqual(found.planes_mm[plane], (a[2] + b[2]) / 2, delta=0.3)
        phi = found.angles[angle]
        for point in (a, b):
            s = point[0] * np.cos(phi) + point[1] * np.sin(phi)
            self.assertAlmostEqual(found.radial_mm[column], s, delta=0.5 + 32 * np.pi / 60)
        swapped = pair.copy()
        swapped["crystal_a"], swapped["crystal_b"] = pair["crystal_b"], pair["crystal_a"]
        np.testing.assert_array_equal(histograms.sinogram(swapped, self.scanner).counts, found.counts)

    def test_time_of_flight_points_to_the_source(self):
        """Positions, numbering and the sign of dt together."""
        front = self.scanner.positions_mm()
        a, b = front[self.prompts["crystal_a"]], front[self.prompts["crystal_b"]]
        source = np.array(support.SOURCE_POINT_MM)
        expected = np.linalg.norm(b - source, axis=1) - np.linalg.norm(a - source, axis=1)  # b later: further away
        measured = self.prompts["dt"] * self.scanner.tick_ps * 0.299792458
        true = abs(expected) > 20
        self.assertGreater(true.sum(), 1000)
        self.assertGreater((expected[true] > 0).mean(), 0.97)
        self.assertAlmostEqual(np.median(measured[true] - expected[true]), 0, delta=5)

    def test_an_array_a_file_and_blocks_give_the_same(self):
        wanted = histograms.michelogram(self.run_.coincidences, self.scanner, "all")
        for source in (self.records, self.run_.coincidences.blocks(), [self.records[:7], self.records[7:]]):
            np.testing.assert_array_equal(histograms.michelogram(source, self.scanner, "all"), wanted)
        with self.assertRaises(ValueError):
            histograms.michelogram(self.records, self.scanner, "prompts")

    def test_what_is_no_list_mode_is_refused_by_name(self):
        run = self.run_
        for call, said in (
            (lambda: histograms.energy_spectrum(run), "Run: expected run.coincidences"),
            (lambda: histograms.energy_spectrum(run.seconds), "records of start, .*expected coincidences or singles"),
            (lambda: histograms.energy_spectrum(run.coincidences[["time", "energy_a"]]), "records of time, energy_a: "),
            (lambda: histograms.time_differences(run.singles, 320), "records of time, crystal, energy: expected coincidences"),
            (lambda: histograms.michelogram(run.singles, run.scanner), "expected coincidences with"),
        ):
            with self.assertRaisesRegex(TypeError, said):
                call()
        for bad in (0, -1, float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, "bin_keV .*above 0"):
                histograms.energy_spectrum(run.coincidences, bin_keV=bad)
            with self.assertRaisesRegex(ValueError, "interval_s .*above 0"):
                histograms.rates(run.coincidences, 15.625, bad, 0, 1000)
        with self.assertRaisesRegex(ValueError, "kind 'true': expected prompt"):
            histograms.michelogram(run.coincidences, run.scanner, "true")


if __name__ == "__main__":
    unittest.main()
