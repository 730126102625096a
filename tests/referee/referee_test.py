"""The small set and its sums, the reference by hand, and the programs and PETsys' rules against the reference.

    referee_test.py DIRECTORY_OF_PROGRAMS
"""

import json
import sys
import tempfile
import unittest

import compare
import made_set
import petsys
from programs import Programs
from referee import SUMS, write_set
from rules import MODES, POLICIES, Geometry, Rules, Single, coincidences

BIN = sys.argv[1]
RING = Geometry(modules=8, crystals_of_module=2, min_module_difference=2, max_ring_difference=1)


def found(mode, policy, *singles, window=5, most=64):
    """Singles: (time, crystal, energy)."""
    return coincidences([Single(*single) for single in singles], Rules(window, mode, policy, RING, most))


class ReferenceByHand(unittest.TestCase):
    def test_good_pairs(self):
        self.assertTrue(RING.good(0, 4))
        self.assertFalse(RING.good(0, 2))  # modules 0 and 1
        self.assertFalse(RING.good(0, 14))  # modules 0 and 7, which are neighbours
        self.assertTrue(RING.good(0, 16 + 4))
        self.assertFalse(RING.good(0, 32 + 4))  # rings 0 and 2

    def test_windows(self):
        chain = [(0, 0, 500.0), (3, 4, 500.0), (5, 8, 500.0), (6, 12, 500.0), (8, 4, 500.0), (20, 0, 500.0)]
        self.assertEqual(found("single", "TakeAllGoods", *chain), [(0, 1), (0, 2), (1, 2), (3, 4)])
        self.assertEqual(found("single_opener", "TakeAllGoods", *chain), [(0, 1), (0, 2), (3, 4)])
        self.assertEqual(found("every", "TakeAllGoods", *chain), [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)])
        self.assertEqual(found("single", "RemoveMultiples", *chain), [(3, 4)])
        self.assertEqual(found("every", "RemoveMultiples", *chain), [(3, 4)])

    def test_largest_group(self):
        three = [(0, 0, 500.0), (1, 4, 500.0), (2, 8, 500.0)]
        self.assertEqual(found("single", "TakeAllGoods", *three, most=2), [])
        self.assertEqual(found("every", "TakeAllGoods", *three, most=2), [(1, 2)])

    def test_policies(self):
        # The third makes no good pair with the first, and they have the most energy.
        three = [(0, 0, 400.0), (2, 8, 300.0), (5, 2, 700.0)]
        expected = {"TakeAllGoods": [(0, 1), (1, 2)], "TakeWinnerOfGoods": [(1, 2)]}
        for policy in POLICIES:
            self.assertEqual(found("single", policy, *three), expected.get(policy, []), policy)
        opener = {"TakeAllGoods": [(0, 1)], "TakeWinnerOfGoods": [(0, 1)], "TakeIfOnlyOneGood": [(0, 1)]}
        for policy in POLICIES:
            self.assertEqual(found("single_opener", policy, *three), opener.get(policy, []), policy)
        # All are good, and two pairs have the most energy: the first of these wins.
        good = [(0, 0, 500.0), (1, 4, 500.0), (2, 8, 400.0)]
        for policy in ("TakeWinnerOfGoods", "TakeWinnerIfIsGood", "TakeWinnerIfAllAreGoods"):
            self.assertEqual(found("single", policy, *good), [(0, 1)], policy)


class SmallSet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.works, cls.sums = write_set(cls.directory.name, [made_set.SMALL, made_set.EQUAL])
        cls.programs = Programs(BIN, cls.directory.name)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def test_sums(self):
        with open(SUMS, encoding="ascii") as file:
            published = json.load(file)
        self.assertEqual(self.sums, {name: published[name] for name in self.sums})

    def test_captures_hold_the_singles(self):
        for work in self.works:
            self.assertEqual(self.programs.singles(work.scene), work.singles)
            for setting in compare.SETTINGS:
                row = compare.with_programs(work, self.programs, *setting)
                self.assertGreater(row["pairs"], 100, row)
                self.assertEqual(row["different"], 0, row)

    def test_petsys_takes_all_pairs_of_every_window(self):
        work = self.works[0]
        pairs = petsys.pairs(work.singles, made_set.WINDOW, made_set.GEOMETRY.good)
        self.assertEqual(pairs, coincidences(work.singles, work.rules("every", "TakeAllGoods")))
        for mode in MODES:
            row = compare.with_petsys(work, mode, "RemoveMultiples")
            self.assertEqual((row["only_ours"], row["both"]), (0, row["ours"]), row)
            self.assertEqual(row["petsys"], row["both"] + row["divided"] + row["policy_refuses"], row)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
