"""Scanners in the long form: places and addresses against petlm, and the import of geometry from files of other programs."""

import contextlib
import io
import json
import os
import struct
import unittest
from pathlib import Path

import numpy as np
import support
from random_scanner import random_description

import petacq
from petacq import histograms
from petacq.layout import COINCIDENCE
from petacq.scanner import command
from petacq.scanner.crystal_files import read_castor, read_stir_map
from petacq.scanner.good_pairs import modules_pair
from petacq.scanner.module_overlaps import Boxes, overlaps

EXAMPLES = support.SOURCE / "config" / "examples" / "scanners"
NAMES = sorted(path.name.split(".")[0] for path in EXAMPLES.glob("*.scanner.json"))
#: The total-body one takes long, and has nothing that the others have not.
SMALL = [name for name in NAMES if name != "total-body"]


def example(name: str) -> petacq.Scanner:
    return petacq.Scanner.load(EXAMPLES / f"{name}.scanner.json")


def exported(name: str, export_format: str, scanner: Path | None = None) -> Path:
    """The directory with an export of a run of one pair, by petlm. With the table of crystals."""
    site = support.scratch() / f"{name}-{export_format}"
    if not site.exists():
        site.mkdir()
        (site / "pair.bin").write_bytes(struct.pack("<IfdIfd", 0, 511, 100.0, 1, 511, 101.0))
        if scanner is None:
            description = json.loads((EXAMPLES / f"{name}.scanner.json").read_text())
            description.pop("rotation", None)  # the formats have one place for each crystal
            scanner = site / "still.scanner.json"
            scanner.write_text(json.dumps(description))
        support.call("petlm", "import", "--format", "coinstruct", site / "pair.bin", "--scanner", scanner, "-o", site / "pair.plm")
        to = site / "pair.csv" if export_format == "csv" else site / "out"
        support.call("petlm", "export", "--format", export_format, site / "pair.plm", "--scanner", scanner, "--output", to)
    return site


def table(path: Path) -> dict[str, np.ndarray]:
    names, *lines = path.read_text().splitlines()
    columns = np.array([line.split(",") for line in lines], float).T
    return dict(zip(names.split(","), columns))


def main(*arguments: object) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status = command.main([str(argument) for argument in arguments])
        except SystemExit as ended:
            status = int(ended.code or 0)
    return status, said.getvalue()


class Places(unittest.TestCase):
    def test_all_examples_are_there(self):
        self.assertEqual(len(NAMES), 10)

    def test_places_and_addresses_are_those_of_petlm(self):
        for name in SMALL:
            with self.subTest(name):
                s, expected = example(name), table(exported(name, "csv") / "pair.crystals.csv")
                self.assertFalse(s.is_ring)
                self.assertEqual(s.crystal_count, len(expected["crystal"]))
                places = np.column_stack([expected[key] for key in "xyz"])
                outward = np.column_stack([expected[f"outward_{key}"] for key in "xyz"])
                sizes = np.column_stack([expected[key] for key in ("length", "size_y", "size_z")])
                np.testing.assert_allclose(s.positions_mm(), places, rtol=0, atol=1e-9)
                np.testing.assert_allclose(s.outward(), outward, rtol=0, atol=1e-9)
                np.testing.assert_allclose(s.sizes_mm(), sizes, rtol=0, atol=1e-9)
                crystal = np.arange(s.crystal_count)
                np.testing.assert_allclose(s.positions_mm(sizes[:, 0] / 2), places + outward * sizes[:, :1] / 2, atol=1e-9)
                for key, found in zip(("module", "layer", "column", "row"), s.address(crystal)):
                    np.testing.assert_array_equal(found, expected[key])
                for key in ("bdm", "du", "local"):
                    np.testing.assert_array_equal(getattr(s, key)(crystal), expected[key])
                np.testing.assert_array_equal(s.crystal(s.bdm(crystal), s.du(crystal), s.local(crystal)), crystal)

    def test_modules_that_are_tilted_and_turned_are_where_petlm_has_them(self):
        document = support.scratch() / "turned.scanner.json"
        document.write_text(json.dumps(support.TURNED))
        s = petacq.Scanner.load(document)
        expected = table(exported("turned", "csv", document) / "pair.crystals.csv")
        places = np.column_stack([expected[key] for key in "xyz"])
        np.testing.assert_allclose(s.positions_mm(), places, rtol=0, atol=1e-9)
        self.assertGreater(np.abs(s.outward()[:, 2]).max(), 0.2)

    def test_sinograms_have_every_line_where_its_crystals_are(self):
        for name in ("phoswich", "insert", "box"):
            with self.subTest(name):
                s, rng = example(name), np.random.default_rng(2)
                pairs = np.zeros(200, COINCIDENCE)
                pairs["crystal_a"], pairs["crystal_b"] = rng.integers(0, s.crystal_count, (2, 200))
                places = s.positions_mm(2.5)
                for k in range(0, 200, 10):
                    found = histograms.sinogram(pairs[k : k + 1], s, depth_mm=2.5)
                    a, b = places[pairs["crystal_a"][k]], places[pairs["crystal_b"][k]]
                    ((plane, angle, radial),) = np.argwhere(found.counts)
                    fronts = s.positions_mm()[[pairs["crystal_a"][k], pairs["crystal_b"][k]]]
                    step = np.diff(found.planes_mm)[0]
                    self.assertLessEqual(abs(found.planes_mm[plane] - fronts[:, 2].mean()), step / 2 + 1e-6)
                    phi, beside = found.angles[angle], found.radial_mm[radial]
                    normal = np.array([-(b - a)[1], (b - a)[0]]) / np.hypot(*(b - a)[:2])
                    across = np.array([np.cos(phi), np.sin(phi)])
                    normal *= np.sign(normal @ across)
                    apart = np.degrees(np.arccos(np.minimum(normal @ across, 1)))
                    self.assertLessEqual(apart, 90 / len(found.angles) + 1e-6)
                    self.assertLessEqual(abs(normal @ a[:2] - beside), np.diff(found.radial_mm)[0] / 2 + 1e-6)
                np.testing.assert_array_equal(
                    histograms.crystal_map(pairs, s),
                    np.bincount(np.concatenate([pairs["crystal_a"], pairs["crystal_b"]]), minlength=s.crystal_count),
                )
                with self.assertRaisesRegex(petacq.ScannerError, name):
                    histograms.michelogram(pairs, s)

    def test_both_forms_have_the_same_interface(self):
        ring = petacq.Scanner.load(support.SOURCE / "config" / "examples" / "small.scanner.json")
        self.assertTrue(ring.is_ring)
        crystal = np.arange(ring.crystal_count)
        address = ring.address(crystal)
        np.testing.assert_array_equal(address.module, ring.bdm(crystal))
        self.assertEqual(len(set(zip(*(part.tolist() for part in address)))), ring.crystal_count)
        np.testing.assert_array_equal(ring.sizes_mm()[5], (ring.crystal_length_mm, 1.6, 1.7))

    def test_what_a_ring_has_is_refused_and_what_does_not_exist_is_no_crystal(self):
        s = example("phoswich")
        for name in ("rings", "crystals_in_ring", "modules_in_ring", "ring_radius_mm"):
            with self.assertRaisesRegex(petacq.ScannerError, "phoswich"):
                getattr(s, name)
        self.assertEqual(s.crystal([0, 0, 99], [0, 9, 0], [112, 0, 0]).tolist(), [112, -1, -1])
        with self.assertRaisesRegex(petacq.ScannerError, "expected less than 3164"):
            s.bdm(3164)

    def test_modules_that_face_along_the_axis_have_no_angle_around_it(self):
        layer = {"y": {"count": 1, "pitch_mm": 3}, "z": {"count": 1, "pitch_mm": 3}, "length_mm": 2}
        facing = {"discs": [[1e-17, -1e-17, 1], [0, 0, -1]], "tilted": [[1e-3, -1e-3, 1], [1e-3, 0, -1]]}
        for name, outward in facing.items():
            scanner = petacq.Scanner.from_json({
                "name": name, "tick_ps": 10, "position_size": 1, "module_types": [{"name": "m", "layers": [layer]}],
                "modules": [{"type": "m", "place": {"front_mm": [0, 0, 30 * o[2]], "outward": o}} for o in outward]
                + [{"type": "m", "ring": {"count": 4, "radius_mm": 15}}],
                "good_pairs": {"min_angle_deg": 40},
            })
            modules = np.arange(6)
            good = modules_pair(scanner, modules, modules)
            with self.subTest(name):
                self.assertEqual(good[0, 1], name == "tilted")
                self.assertEqual(good[:2, 2:].any(), name == "tilted")
                np.testing.assert_array_equal(good[2:, 2:], ~np.eye(4, dtype=bool))

    def test_mistakes_are_refused_with_what_was_expected(self):
        def changed(path, value):
            document = json.loads((EXAMPLES / "unequal-blocks.scanner.json").read_text())
            *parts, last = path
            at = document
            for part in parts:
                at = at[part]
            at[last] = value
            return document

        layer = ("module_types", 0, "layers", 0)
        for path, value, said in (
            (("module_types",), [], "at least one"),
            (("modules",), 3, "expected an array"),
            (("modules", 0, "type"), "other", "expected the name of one of /module_types"),
            (("modules", 0, "panel"), {"radius_mm": 3, "count": 1, "pitch_mm": 2}, "found ring and panel"),
            (("modules", 0, "ring"), None, "found none"),
            (("modules", 0, "ring", "count"), 0, "expected an integer"),
            (("modules", 0, "ring", "radius_mm"), "far", "expected a number"),
            ((*layer, "y", "sizes_mm"), [1.0], "found both"),
            ((*layer, "y", "size_mm"), 5, "at most the pitch"),
            ((*layer, "y", "gaps", 0, "after"), 15, "expected an integer from 1 to 14"),
            (("module_types", 0, "units"), [{"y": [0, 3]}], "in exactly one unit"),
            (("module_types", 0, "units", 0, "y"), [6, 0], "a first and a last of 15"),
            (("channel_map",), {"units": [{"bdm": 0, "du": 0, "module": 0, "unit": 0}]}, "every unit of every module"),
            (("channel_map",), {"units": [{"bdm": 0, "du": 0, "module": 99}]}, "expected an integer from 0 to 23"),
            (("tick_ps",), 0, "above 0"),
            (("position_size",), True, "expected an integer"),
        ):
            with self.subTest(path), self.assertRaisesRegex(petacq.ScannerError, said):
                petacq.Scanner.from_json(changed(path, value))


class Touching(unittest.TestCase):
    """Two boxes side by side along z: petcal and the import agree when they only touch."""

    def refused(self, depth_mm: float) -> tuple[bool, bool]:
        places = [{"front_mm": [30, 0, z], "outward": [1, 0, 0]} for z in (0, 10 - depth_mm)]
        layer = {"y": {"count": 1, "pitch_mm": 10}, "z": {"count": 1, "pitch_mm": 10}, "length_mm": 10}
        document = support.scratch() / "touching.scanner.json"
        document.write_text(
            json.dumps(
                {
                    "name": "touching",
                    "tick_ps": 10,
                    "position_size": 8,
                    "module_types": [{"name": "block", "layers": [layer]}],
                    "modules": [{"type": "block", "place": place} for place in places],
                }
            )
        )
        half = np.full((2, 3), 5.0)
        middle = np.array([[35.0, 0, place["front_mm"][2]] for place in places])
        found = overlaps(Boxes(np.arange(2), middle, np.broadcast_to(np.eye(3), (2, 3, 3)), half))
        command = ("petcal", "make", "--scanner", document, "-o", support.scratch() / "touching.h5", "--force")
        try:
            support.call(*command)
        except AssertionError as refused:
            self.assertIn("module 0 (of /modules/0) overlaps module 1 (of /modules/1)", str(refused))
            return True, len(found) > 0
        return False, len(found) > 0

    def test_by_how_much_they_may_reach_into_each_other(self):
        self.assertEqual(self.refused(0.0009), (False, False))
        self.assertEqual(self.refused(0.0011), (True, True))


class Import(unittest.TestCase):
    def check(self, document: Path, numbers: Path, places: np.ndarray, tolerance: float) -> petacq.Scanner:
        """Every crystal of the file, at its place, is in the description once."""
        found = petacq.Scanner.load(document)
        mapped = np.loadtxt(numbers, int, delimiter=",", skiprows=1, ndmin=2)
        np.testing.assert_array_equal(mapped[:, 0], np.arange(found.crystal_count))
        np.testing.assert_array_equal(np.sort(mapped[:, 1]), np.arange(len(places)))
        self.assertLess(np.linalg.norm(found.positions_mm() - places[mapped[:, 1]], axis=1).max(), tolerance)
        return found

    def imported(self, *options: object) -> tuple[Path, Path]:
        document, numbers = support.scratch() / "found.scanner.json", support.scratch() / "numbers.csv"
        status, said = main(*options, "--tick-ps", 10, "-o", document, "--numbers", numbers, "--force")
        self.assertEqual(status, 0, said)
        return document, numbers

    def test_a_scanner_of_castor(self):
        for name in SMALL:
            with self.subTest(name):
                s, site = example(name), exported(name, "castor") / "out"
                (header,) = site.glob("*.hscan")
                order = table(site / "crystals.csv")["crystal"].astype(int)
                document, numbers = self.imported("--castor", header)
                self.check(document, numbers, s.positions_mm()[order], 5e-6)
                crystal = np.loadtxt(numbers, int, delimiter=",", skiprows=1)[:, 1]
                found = petacq.Scanner.load(document)
                np.testing.assert_allclose(found.sizes_mm(), s.sizes_mm()[order[crystal]], atol=1e-6)
                # petcal takes it: its modules do not overlap, and every key is one that petacqd knows.
                support.call("petcal", "make", "--scanner", document, "--output", support.scratch() / "any.h5", "--bins", 4, "--force")

    def test_modules_types_and_layers_are_found(self):
        (header,) = (exported("phoswich", "castor") / "out").glob("*.hscan")
        document, _ = self.imported("--castor", header, "--gap-mm", 0.15)
        found = json.loads(document.read_text())
        self.assertEqual(len(found["module_types"]), 1)
        self.assertEqual([layer["length_mm"] for layer in found["module_types"][0]["layers"]], [6, 8])
        (item,) = found["modules"]
        self.assertEqual(item["ring"], {"count": 14, "radius_mm": 32})
        self.assertEqual(item["along_z"], {"count": 2, "pitch_mm": 13.2, "middle_mm": 0})

    def test_layers_that_widen_outwards_are_those_of_one_module(self):
        layers = [{"y": {"count": 6, "pitch_mm": pitch}, "z": {"count": 4, "pitch_mm": 2.7}, "length_mm": 5} for pitch in (2.7, 3.3)]
        described = {
            "name": "tapered",
            "tick_ps": 10,
            "position_size": 16,
            "module_types": [{"name": "tapered", "layers": layers}],
            "modules": [{"type": "tapered", "ring": {"count": 8, "radius_mm": 20}}],
        }
        path = support.scratch() / "tapered.scanner.json"
        path.write_text(json.dumps(described))
        (header,) = (exported("tapered", "castor", path) / "out").glob("*.hscan")
        document, _ = self.imported("--castor", header)
        found = json.loads(document.read_text())
        self.assertEqual([layer["y"]["pitch_mm"] for of in found["module_types"] for layer in of["layers"]], [2.7, 3.3])
        self.assertEqual([item["ring"] for item in found["modules"]], [{"count": 8, "radius_mm": 20}])
        np.testing.assert_allclose(petacq.Scanner.load(document).positions_mm(), petacq.Scanner.load(path).positions_mm(), atol=1e-5)

    def test_turns_of_grids_are_found_from_places_alone(self):
        path = support.scratch() / "grids.scanner.json"
        path.write_text(json.dumps(support.TURNED))
        (header,) = (exported("grids", "castor", path) / "out").glob("*.hscan")
        found = json.loads(self.imported("--castor", header)[0].read_text())
        turns = {round(item["place"].get("turn_deg", 0), 4) for item in found["modules"] if "place" in item}
        self.assertEqual(turns - {0}, {module["place"].get("turn_deg", 0) for module in support.TURNED["modules"]} - {0})

    def test_a_map_of_stir(self):
        for name in ("box", "hexagon", "unequal-blocks", "monolithic"):
            with self.subTest(name):
                s, site = example(name), exported(name, "stir") / "out"
                lengths = s.sizes_mm()[0, 0]
                # One pair, of no field of view: the depth is that of a line through the axis.
                depth = np.abs(np.loadtxt(site / "crystal_map.txt")[:, 3:] - s.positions_mm()[self.order(site)])
                depth = np.linalg.norm(depth, axis=1)
                document, numbers = self.imported("--stir-map", site / "crystal_map.txt", "--length-mm", lengths, "--depth-mm", depth[0])
                self.check(document, numbers, s.positions_mm()[self.order(site)], 3e-4)

    def order(self, site: Path) -> np.ndarray:
        return table(site / "crystals.csv")["crystal"].astype(int)

    def test_a_map_as_stir_has_them_in_its_examples(self):
        """Number by number that of examples/SAFIR_genericScanner: twelve flat modules of 15 crystals with a gap of 0.5 mm."""
        lines = ["#ring\t#detector\t#layer\tx\ty\tz"]
        along = (np.arange(15) - 7) * 2.2 + np.where(np.arange(15) >= 7, 0.25, -0.25)
        for ring in range(16):
            z = (ring - 7.5) * 2.2 + (0.25 if ring >= 8 else -0.25)
            for module in range(12):
                angle = np.pi / 2 + module * np.pi / 6
                for column, y in enumerate(along):
                    x, y = 70.5 * np.cos(angle) - y * np.sin(angle), 70.5 * np.sin(angle) + y * np.cos(angle)
                    lines.append(f"{ring}\t{module * 15 + column}\t0\t{round(x, 4)}\t{round(y, 4)}\t{round(z, 4)}")
        path = support.scratch() / "dual_ring.txt"
        path.write_text("\n".join(lines) + "\n")
        document, numbers = self.imported("--stir-map", path, "--length-mm", 13, "--depth-mm", 6.5)
        found = json.loads(document.read_text())
        (layer,) = found["module_types"][0]["layers"]
        self.assertEqual(layer["y"], {"count": 15, "pitch_mm": 2.2, "gaps": [{"after": 7, "mm": 0.5}]})
        self.assertEqual(layer["z"], {"count": 16, "pitch_mm": 2.2, "gaps": [{"after": 8, "mm": 0.5}]})
        self.assertEqual(found["modules"], [{"type": "type 0", "ring": {"count": 12, "radius_mm": 64}}])
        s = petacq.Scanner.load(document)
        read = read_stir_map(path, [13], [6.5])
        self.check(document, numbers, read.front_mm, 2e-4)
        self.assertEqual(s.crystal_count, 16 * 180)
        # An export of what was found has the same places, rings and detectors, which it counts from another one.
        (to := support.scratch() / "dual_ring").mkdir()
        back = self.export_stir(to, document, 6.5)
        again, given = (np.loadtxt(map_file) for map_file in (back / "crystal_map.txt", path))
        shifts = set()
        for ring in range(16):
            here, there = (rows[rows[:, 0] == ring] for rows in (again, given))
            apart = np.linalg.norm(here[:, None, 3:] - there[:, 3:], axis=2)
            self.assertLess(apart.min(1).max(), 2e-4)
            shifts.update((here[:, 1] - there[apart.argmin(1), 1]) % 180)
        self.assertEqual(len(shifts), 1)

    def test_maps_of_random_scanners(self):
        """PETACQ_LONG=1: many."""
        checked, seed = 0, 0
        while checked < (40 if "PETACQ_LONG" in os.environ else 3):
            seed += 1
            (site := support.scratch() / f"random{seed}").mkdir()
            path = site / "scanner.json"
            path.write_text(json.dumps(random_description(np.random.default_rng(seed))))
            try:
                out = self.export_stir(site, path, 0)
            except AssertionError as refused:
                self.assertRegex(str(refused), "overlap|expected")
                continue
            with self.subTest(seed=seed):
                layers = int(np.loadtxt(out / "crystal_map.txt", ndmin=2)[:, 2].max()) + 1
                lengths, depths = ",".join(["5"] * layers), ",".join(["0"] * layers)
                found = self.imported("--stir-map", out / "crystal_map.txt", "--length-mm", lengths, "--depth-mm", depths)
                self.check(*found, petacq.Scanner.load(path).positions_mm()[self.order(out)], 3e-4)
                checked += 1

    def export_stir(self, site: Path, scanner: Path, depth_mm: float) -> Path:
        """The export of one pair."""
        (site / "pair.bin").write_bytes(struct.pack("<IfdIfd", 0, 511, 100.0, 1, 511, 101.0))
        of_pair = ("--scanner", scanner, "--output")
        support.call("petlm", "import", "--format", "coinstruct", site / "pair.bin", *of_pair, site / "pair.plm")
        support.call("petlm", "export", "--format", "stir", site / "pair.plm", "--depth-mm", depth_mm, *of_pair, site / "out")
        return site / "out"

    def test_a_cylinder_without_flat_modules_faces_the_axis(self):
        path = support.scratch() / "cylinder.txt"
        angles = 2 * np.pi * np.arange(60) / 60
        rows = [f"{r} {d} {63 * np.cos(a):.3f} {63 * np.sin(a):.3f} {r * 2.2:.3f}" for r in range(3) for d, a in enumerate(angles)]
        path.write_text("#ring det x y z\n" + "\n".join(rows) + "\n")
        document, numbers = self.imported("--stir-map", path, "--length-mm", 10, "--depth-mm", 0)
        points = np.array([row.split()[2:] for row in rows], float)
        found = self.check(document, numbers, points, 2e-3)
        outward = found.outward()
        np.testing.assert_allclose(outward[:, 2], 0, atol=1e-9)
        np.testing.assert_allclose((outward * found.positions_mm()).sum(1), 63, atol=0.01)

    def test_hostile_files_get_an_error_that_names_the_file(self):
        site = support.scratch() / "hostile"
        site.mkdir(exist_ok=True)
        (header,) = (exported("phoswich", "castor") / "out").glob("*.hscan")
        text, lut = header.read_text(), header.with_suffix(".lut").read_bytes()

        def castor(text=text, lut=lut):
            (site / "x.hscan").write_text(text)
            (site / "x.lut").write_bytes(lut)
            return main("--castor", site / "x.hscan", "--tick-ps", 10, "-o", site / "out.json")

        nan = lut[:4] + struct.pack("<f", float("nan")) + lut[8:]
        nowhere = lut[:12] + struct.pack("<3f", 0, 0, 0) + lut[24:]
        twice = lut[:24] + lut[:24] + lut[48:]
        for wrong in (
            {"text": ""},
            {"text": text.replace("crystals size depth", "depth")},
            {"text": text.replace("number of crystals in layer: ", "number of crystals in layer: x")},
            {"text": text.replace("number of crystals in layer: ", "number of crystals in layer: 7,")},
            {"text": text.replace("crystals size trans: ", "crystals size trans: -")},
            {"lut": b""},
            {"lut": lut[:-1]},
            {"lut": nan},
            {"lut": nowhere},
            {"lut": twice},
        ):
            with self.subTest(wrong.keys()):
                status, said = castor(**wrong)
                self.assertEqual(status, 65, said)
                self.assertIn("expected", said)
                self.assertNotIn("Traceback", said)

        def stir(text, *options):
            (site / "map.txt").write_text(text)
            options = options or ("--length-mm", 10, "--depth-mm", 0)
            return main("--stir-map", site / "map.txt", *options, "--tick-ps", 10, "-o", site / "out.json")

        good = "0 0 0 1 10 0\n0 1 0 2 10 0\n"
        for text in ("", "#\n", "0 0\n", "0 0 0 1 2 x\n", "0 -1 0 1 2 3\n", "0 0 0 1 2 nan\n", "0 0 0 inf 2 3\n", "a" * 100_000,
                     good + "0 1 0 2 10 0\n", "0 0 0 0 0 0\n", good + "0 2 0 2 10 0\n", "0 0 0 0 1 2 3\n", "\x00\x01\x02"):
            with self.subTest(text[:30]):
                status, said = stir(text)
                self.assertEqual(status, 65, said)
                self.assertIn("expected", said)
        self.assertEqual(stir(good, "--length-mm", 10)[0], 64)
        self.assertEqual(stir(good, "--length-mm", "ten", "--depth-mm", 0)[0], 64)
        self.assertEqual(stir(good, "--length-mm", 10, "--depth-mm", 11)[0], 65)
        self.assertEqual(stir(good, "--length-mm", "10,10", "--depth-mm", 1)[0], 65)
        self.assertEqual(main("--castor", site / "none.hscan", "--tick-ps", 10, "-o", site / "out.json")[0], 74)
        self.assertEqual(main("--castor", header, "-o", site / "out.json")[0], 64)
        self.assertEqual(list(site.glob("out.json*")), [])
        (site / "out.json").write_text("mine")
        status, said = main("--castor", header, "--tick-ps", 10, "-o", site / "out.json")
        self.assertEqual((status, (site / "out.json").read_text()), (65, "mine"))
        self.assertIn("--force", said)

    def test_crystals_that_form_no_grid_are_rows(self):
        (header,) = (exported("box", "castor") / "out").glob("*.hscan")
        read = read_castor(header)
        # Without every seventh crystal.
        site = support.scratch() / "holes"
        site.mkdir(exist_ok=True)
        kept = np.arange(len(read)) % 7 != 0
        values = np.frombuffer(header.with_suffix(".lut").read_bytes(), "<f4").reshape(-1, 6)[kept]
        (site / "x.lut").write_bytes(values.tobytes())
        (site / "x.hscan").write_text(header.read_text().replace(": 4096", f": {len(values)}"))
        document, numbers = self.imported("--castor", site / "x.hscan")
        self.check(document, numbers, read.front_mm[kept], 1e-5)


if __name__ == "__main__":
    unittest.main()
