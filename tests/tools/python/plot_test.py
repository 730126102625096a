"""petlm plot against the histograms of the module: two implementations of one definition."""

import csv
import html.parser
import unittest

import numpy as np
import support

import petacq
from petacq import histograms


def table(file):
    with open(file, encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


class Page(html.parser.HTMLParser):
    """The contents of the page, and the resources that it would load."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.alts, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("src", "srcset", "href") and not value.startswith("data:image/svg+xml;base64,"):
                self.loads.append(value)
            if name == "alt":
                self.alts.append(value)
            if name == "id":
                self.ids.append(value)


class Plot(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = petacq.open_run(support.small_run())
        cls.scanner = cls.run_.scanner
        cls.folder = support.scratch() / "plot"
        try:
            support.call("petlm", "plot", cls.run_.path, "--depth-mm", 0, "-o", cls.folder, "--force")
        except AssertionError as error:
            if "built without cairo" in str(error):
                raise unittest.SkipTest("petlm was built without cairo") from None
            raise

    def both_kinds(self, name, expected):
        """Compares the columns of a CSV with a function of the kind."""
        found = table(self.folder / f"{name}.csv")
        for kind in ("prompt", "delayed"):
            np.testing.assert_array_equal(found[kind + "s"], np.ravel(expected(kind)), f"{name}, {kind}")
        return found

    def test_energies(self):
        def spectrum(kind):
            counts, _ = histograms.energy_spectrum(self.run_.coincidences, up_to_keV=1020, kind=kind)
            return np.append(counts, 2 * self.pairs(kind) - counts.sum())

        found = self.both_kinds("energy-pairs", spectrum)
        np.testing.assert_array_equal(found["from_keV"], np.arange(256) * 4)
        singles = table(self.folder / "energy-singles.csv")["singles"]
        np.testing.assert_array_equal(singles, np.sum(self.run_.histograms["energy"], axis=0))

    def pairs(self, kind):
        return int((self.run_.coincidences["kind"] == (petacq.PROMPT if kind == "prompt" else petacq.DELAYED)).sum())

    def test_time_differences(self):
        found = table(self.folder / "time-differences.csv")
        for kind in ("prompt", "delayed"):
            ticks, counts = histograms.time_differences(self.run_.coincidences, 320, kind)
            expected = [
                counts[(ticks >= a) & (ticks <= b)].sum() for a, b in zip(found["from_ticks"], found["to_ticks"])
            ]
            np.testing.assert_array_equal(found[kind + "s"], expected)

    def test_maps(self):
        crystals = table(self.folder / "singles-map.csv")["counts"]
        np.testing.assert_array_equal(crystals, self.run_.histograms["crystals"])
        self.both_kinds("michelogram", lambda kind: histograms.michelogram(self.run_.coincidences, self.scanner, kind))

    def test_sinogram(self):
        both = {kind: histograms.sinogram(self.run_.coincidences, self.scanner, kind) for kind in ("prompt", "delayed")}
        found = self.both_kinds("sinogram", lambda kind: both[kind].counts.sum(0))
        one = both["prompt"]
        np.testing.assert_allclose(found["phi_deg"], np.repeat(np.rad2deg(one.angles), len(one.radial_mm)))
        np.testing.assert_allclose(found["s_mm"], np.tile(one.radial_mm, len(one.angles)), atol=1e-9)
        planes = table(self.folder / "axial-profile.csv")
        np.testing.assert_allclose(planes["z_mm"], one.planes_mm, atol=1e-9)
        # A pair outside the sinogram still has a plane.
        self.assertLessEqual(one.counts.sum(), planes["prompts"].sum())
        self.assertEqual(planes["prompts"].sum(), self.pairs("prompt"))

    def test_rates(self):
        found = table(self.folder / "rates.csv")
        begin, width = int(found["from_ticks"][0]), int(found["to_ticks"][0] - found["from_ticks"][0])
        bins = (self.run_.coincidences["time"].astype(np.int64) - begin) // width
        kinds = self.run_.coincidences["kind"]
        for kind, number in (("prompts", petacq.PROMPT), ("delayeds", petacq.DELAYED)):
            np.testing.assert_array_equal(found[kind], np.bincount(bins[kinds == number], minlength=len(found[kind])))

    def test_report(self):
        page = Page((self.folder / "report.html").read_text(encoding="utf-8"))
        self.assertEqual(page.loads, [])
        self.assertEqual(len(page.alts), 2 * 13)  # light and dark ones
        self.assertIn("loss", page.ids)
        self.assertTrue(all(page.alts))
        for name in page.ids:
            self.assertTrue((self.folder / f"{name}.png").read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main()
