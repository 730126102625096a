import json
import unittest

import numpy as np
import support

import petacq

EXAMPLES = support.SOURCE / "config" / "examples"


class Scanner(unittest.TestCase):
    def setUp(self):
        self.scanner = petacq.Scanner.load(EXAMPLES / "small.scanner.json")

    def test_numbers(self):
        s = self.scanner
        self.assertEqual((s.modules_in_ring, s.bdm_count, s.du_count), (12, 24, 6))
        self.assertEqual((s.crystals_in_ring, s.rings, s.crystal_count), (120, 24, 2880))

    def test_crystal_follows_the_formulas_and_back(self):
        for name in ("small", "mouse"):
            s = petacq.Scanner.load(EXAMPLES / f"{name}.scanner.json")
            g = json.loads((EXAMPLES / f"{name}.scanner.json").read_text())["geometry"]
            n, by, bz = g["channels"] * g["modules"]["y"], g["blocks"]["y"], g["blocks"]["z"]
            cy, cz = g["crystals"]["y"], g["crystals"]["z"]
            seen = set()
            for bdm in range(g["bdm_count"]):
                for du in range(g["du_count"]):
                    local = np.arange(cy * cz)
                    in_ring = bdm % n * by * cy + du // bz * cy + local // cz
                    ring = bdm // n * bz * cz + du % bz * cz + local % cz
                    crystal = s.crystal(bdm, du, local)
                    np.testing.assert_array_equal(crystal, in_ring + ring * n * by * cy)
                    np.testing.assert_array_equal(s.in_ring(crystal), in_ring)
                    np.testing.assert_array_equal(s.ring(crystal), ring)
                    np.testing.assert_array_equal(s.bdm(crystal), bdm)
                    np.testing.assert_array_equal(s.du(crystal), du)
                    np.testing.assert_array_equal(s.local(crystal), local)
                    np.testing.assert_array_equal(s.module(crystal), bdm % n)
                    seen.update(crystal.tolist())
            self.assertEqual(seen, set(range(s.crystal_count)))
            self.assertEqual(sorted(s.local_of_origin(np.arange(cy * cz))), list(range(cy * cz)))
        self.assertEqual(self.scanner.local_of_origin([0, 3, 19]).tolist(), [16, 19, 3])

    def test_places(self):
        s = self.scanner
        front, outward = s.positions_mm(), s.outward()
        self.assertEqual(front.shape, (2880, 3))
        # On the plane of the module's face; centred; 12 fold symmetric.
        np.testing.assert_allclose((front * outward).sum(1), 32)
        np.testing.assert_allclose(front.mean(0), 0, atol=1e-9)
        np.testing.assert_allclose(s.positions_mm(5) - front, 5 * outward, atol=1e-12)
        # Module 0 is on +x, counter-clockwise is +y there; module 3 on +y, where it is -x.
        step = front[1] - front[0]
        np.testing.assert_allclose(step, (0, 1.6, 0), atol=1e-12)
        np.testing.assert_allclose(front[5] - front[4], (0, 2.0, 0), atol=1e-12)
        np.testing.assert_allclose(front[33] - front[32], (-1.6, 0, 0), atol=1e-12)
        # Along the axis: pitch 1.7, between blocks 0.5 more, between modules 1.
        steps = np.diff(front[7::120, 2])
        expected = [1.7 + (1.0 if r == 11 else 0.5 if r % 4 == 3 else 0) for r in range(23)]
        np.testing.assert_allclose(steps, expected)

    def test_json_of_run_json_is_the_same(self):
        document = json.loads((EXAMPLES / "small.scanner.json").read_text())
        document["dimensions"].pop("module_gap_z_mm")
        self.assertEqual(petacq.Scanner.from_json(document).module_gap_z_mm, 0)

    def test_comments_are_as_good_as_blanks(self):
        plain = EXAMPLES / "small.scanner.json"
        text = plain.read_text(encoding="utf-8")
        path = support.scratch() / "commented.scanner.json"
        path.write_text("// a \"scanner\"\n" + text.replace("{", "{ /* { \" */ ").replace(",\n", ", // the next\n"))
        self.assertEqual(petacq.Scanner.load(path), petacq.Scanner.load(plain))
        name = '// a /* name */ " // of it'
        path.write_text(text.replace('"small"', json.dumps(name)))
        self.assertEqual(petacq.Scanner.load(path).name, name)

    def test_what_cannot_be(self):
        document = json.loads((EXAMPLES / "small.scanner.json").read_text())

        def changed(section, key, value):
            return {**document, section: {**document[section], key: value}}

        for wrong in (
            [],
            {},
            {**document, "tick_ps": 0},
            {**document, "tick_ps": "10"},
            {**document, "geometry": 3},
            changed("geometry", "channels", 0),
            changed("geometry", "channels", 6.5),
            changed("geometry", "channels", True),
            changed("geometry", "modules", {"y": 2, "z": 2, "x": 2}),
            changed("geometry", "bdm_count", 25),
            changed("geometry", "du_count", 5),
            changed("dimensions", "ring_radius_mm", None),
            changed("dimensions", "ring_radius_mm", float("nan")),
            changed("dimensions", "block_gap_y_mm", -1),
        ):
            with self.assertRaises(petacq.ScannerError, msg=str(wrong)):
                petacq.Scanner.from_json(wrong)
        path = support.scratch() / "broken.scanner.json"
        path.write_text("{")
        with self.assertRaisesRegex(petacq.ScannerError, "broken.scanner.json"):
            petacq.Scanner.load(path)


if __name__ == "__main__":
    unittest.main()
