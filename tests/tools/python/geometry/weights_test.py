"""Normalisations of scanners in the long form: weights and factors of every line are those of petlm."""

import contextlib
import io
import json
import struct
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np
import random_scanner
import support

import petacq
from petacq.layout import COINCIDENCE
from petacq.normalisation import Normalisation, PairWeights
from petacq.petsird_efficiencies import pairs_of
from petacq.petsird_events import DEFAULTS, bins_of
from petacq.scanner import command
from petacq.scanner.good_pairs import modules_pair

try:
    import h5py
except ImportError as error:
    raise unittest.SkipTest("h5py is not installed") from error

#: An outer ring seen through the modules of an inner one; all materials.
THROUGH_AN_INSERT = {
    "name": "through",
    "tick_ps": 10,
    "position_size": 16,
    "module_types": [
        {"name": "all", "layers": [{"y": {"count": 1, "pitch_mm": 6}, "z": {"count": 2, "pitch_mm": 4, "size_mm": 3}, "length_mm": 2,
                                    "material": material} for material in random_scanner.MATERIALS]},
        {"name": "outer", "layers": [{"y": {"count": 3, "pitch_mm": 5}, "z": {"count": 3, "pitch_mm": 4}, "length_mm": 12}]},
    ],
    "modules": [
        {"type": "all", "ring": {"count": 5, "radius_mm": 20}},
        {"type": "outer", "ring": {"count": 9, "radius_mm": 60}},
    ],
}  # fmt: skip

#: Two rings of modules with two layers, which symmetries of the scanner turn and mirror.
SYMMETRIC = {
    "name": "symmetric",
    "tick_ps": 10,
    "position_size": 16,
    "module_types": [
        {"name": "both", "layers": [
            {"y": {"count": 3, "pitch_mm": 3}, "z": {"count": 2, "pitch_mm": 3}, "length_mm": 5},
            {"y": {"count": 2, "pitch_mm": 4}, "z": {"count": 3, "pitch_mm": 2}, "length_mm": 5, "material": "GSO"}]},
    ],
    "modules": [{"type": "both", "ring": {"count": 6, "radius_mm": 20}, "along_z": {"count": 2, "pitch_mm": 8}}],
    "good_pairs": {"min_angle_deg": 100},
}  # fmt: skip
END = 10**11
CYLINDER_MM = 14


def correction(from_: np.ndarray, to: np.ndarray) -> np.ndarray:
    """For the attenuation of water in a long cylinder around the axis."""
    across = np.linalg.norm((to - from_)[:, :2], axis=1)
    nearest = (from_[:, 0] * to[:, 1] - from_[:, 1] * to[:, 0]) / across
    chord = 2 * np.sqrt(np.maximum(CYLINDER_MM**2 - nearest**2, 0))
    return np.exp(0.0096 * chord * np.linalg.norm(to - from_, axis=1) / across)


def derived(site: Path) -> tuple[petacq.Run, Normalisation]:
    """A run of SYMMETRIC, and its normalisation by petcal."""
    (site / "s.json").write_text(json.dumps(SYMMETRIC))
    scanner = petacq.Scanner.load(site / "s.json")
    rng = np.random.default_rng(1)
    a, b = np.triu_indices(scanner.crystal_count, 1)
    modules = np.arange(len(scanner.arrangement.modules))
    good = modules_pair(scanner, modules, modules)[scanner.module(a), scanner.module(b)]
    a, b = a[good], b[good]
    # Along the chord of the cylinder that petcal is told.
    from_, to = (scanner.positions_mm(2)[of, :2] for of in (a, b))
    beside = (from_[:, 0] * to[:, 1] - from_[:, 1] * to[:, 0]) / np.linalg.norm(to - from_, axis=1)
    expected = PairWeights(scanner).of(a, b) * np.sqrt(np.maximum(100 - beside**2, 0))
    drawn = rng.choice(len(a), 30_000, p=expected / expected.sum())
    records = np.zeros(len(drawn), COINCIDENCE)
    records["crystal_a"], records["crystal_b"] = a[drawn], b[drawn]
    records["time"] = np.sort(rng.integers(0, END, len(records)))
    records["energy_a"] = records["energy_b"] = 511
    rules = {"coincidence": {"window_ticks": 320, "window_mode": "single"}, "energy": {"filter": True, "lower_keV": 350, "upper_keV": 650}}
    coverage = {"version": 1, "tick_ps": 10, "intervals": [[0, END]], "anchor": {"ticks": 0, "unix_ns": 0}, "rules": rules}
    described = {"tick_ps": 10, "crystals": scanner.crystal_count, "coverage": coverage}
    run = site / "run"
    run.mkdir()
    (run / "coincidences.plm").write_bytes(support.listmode(records.tobytes(), [len(records)], **described))
    of_run = {"run_id": "small", "state": "complete", "scanner": SYMMETRIC, "coverage": coverage}
    of_run |= {"ledger": {"pairs": {"delayeds_found": 1}}, "expected_randoms": {"from_delayeds": 1}}
    (run / "run.json").write_text(json.dumps(of_run))
    cylinder = ("--cylinder", 0, 0, 0, 10, 20)
    support.call("petcal", "derive", "normalisation", "--run", run, "--scanner", site / "s.json", *cylinder, "-o", site / "n.h5")
    return petacq.open_run(run), Normalisation.load(site / "n.h5", scanner)


def write_normalisation(path: Path, scanner: petacq.Scanner, rng: np.random.Generator, **attributes: str) -> None:
    """As docs/reference/normalisation-format.md has it. Each pair of modules is a class of its own, stated in one order."""
    at = scanner.arrangement.addresses
    modules = len(scanner.arrangement.modules)
    with h5py.File(path, "w") as out:
        efficiency = rng.uniform(0.5, 1.5, scanner.crystal_count)
        efficiency[rng.integers(scanner.crystal_count)] = 0
        out["efficiency"] = efficiency.astype("<f4")
        out["module"] = at.module.astype("<u4")
        counts = {}
        for name, places, rows in (("column", at.column, lambda of: of.y), ("row", at.row, lambda of: of.z)):
            of_layers = [[len(rows(layer)) for layer in of.layers] for of in scanner.arrangement.types]
            types = [m.type for m in scanner.arrangement.modules]
            layers = [(of_layers[types[m]], k) for m, k in zip(at.module.tolist(), at.layer.tolist())]
            before = np.array([sum(of[:k]) for of, k in layers])
            size = np.array([of[k] for of, k in layers])
            out[name] = (before + places).astype("<u2")
            out["mirrored_" + name] = (before + size - 1 - places).astype("<u2")
            counts[name] = np.array([sum(of_layers[t]) for t in types])
            out[name + "s"] = counts[name].astype("<u2")
        first, second = np.triu_indices(modules)
        of_pair = np.zeros((modules, modules), "<u4")
        of_pair[first, second] = of_pair[second, first] = np.arange(len(first))
        out["pair_class"] = of_pair
        # Reversed modules have factors of their own, so any turn is as good as another.
        turn = rng.integers(0, 16, (modules, modules)) * 2
        turn[np.tril_indices(modules, -1)] |= 1
        out["pair_turn"] = turn.astype("u1")
        out["class_a"], out["class_b"] = first.astype("<u4"), second.astype("<u4")
        for name, of in (("transaxial", counts["column"]), ("axial", counts["row"])):
            out[name] = rng.uniform(0.5, 1.5, int((of[first] * of[second]).sum())).astype("<f4")
        for key, value in attributes.items():
            out.attrs[key] = value


def lines_of(site: Path, document: object, rng: np.random.Generator, **attributes: str):
    """The scanner, its normalisation, and of petlm the lines: their crystals, and their corrections for attenuation and for the
    chance of a pair. None if the programs refuse the scanner."""
    site.mkdir(exist_ok=True)
    (site / "scanner.json").write_text(json.dumps(document))
    (site / "pair.bin").write_bytes(struct.pack("<IfdIfd", 0, 511, 100.0, 1, 511, 101.0))
    given = ("--scanner", site / "scanner.json", "-o", site / "pair.plm", "--force")
    try:
        support.call("petlm", "import", "--format", "coinstruct", site / "pair.bin", *given)
    except AssertionError as refused:
        if "overlap" not in str(refused) and "expected" not in str(refused):
            raise
        return None
    scanner = petacq.Scanner.load(site / "scanner.json")
    write_normalisation(site / "norm.h5", scanner, rng, **attributes)
    options = ("--scanner", site / "scanner.json", "--normalisation", site / "norm.h5", "--output", site / "out", "--force")
    depth = ("--depth-mm", attributes["depth_mm"]) if "depth_mm" in attributes else ()
    around_axis = ("--attenuation", f"0,0,0,{CYLINDER_MM},400,0.096", "--scatter", "none")
    support.call("petlm", "export", "--format", "castor", site / "pair.plm", *options, *depth, *around_axis)
    order = np.loadtxt(site / "out" / "crystals.csv", delimiter=",", skiprows=1, usecols=0, ndmin=1).astype(int)
    lines = np.fromfile(site / "out" / "lines.cdf", np.dtype([("attenuation", "<f4"), ("factor", "<f4"), ("ids", "<u4", 2)]))
    return scanner, Normalisation.load(site / "norm.h5", scanner), order[lines["ids"]], lines


class Weights(unittest.TestCase):
    def check(self, found: object) -> int:
        scanner, normalisation, crystals, lines = found
        a, b = crystals.T
        of_both = normalisation.efficiency[a].astype(float) * normalisation.efficiency[b] * normalisation.of_lines(a, b)
        chance = PairWeights(scanner, normalisation.depth_mm).of(a, b) * of_both
        # Crystals that do not see each other's front face have lines within faces: rounding decides what those cross.
        line, outward = np.diff(scanner.positions_mm()[crystals], axis=1)[:, 0], scanner.outward()
        facing = ((line * outward[a]).sum(1) < 0) & ((line * outward[b]).sum(1) > 0)
        np.testing.assert_allclose((chance * lines["factor"])[facing], 1, rtol=3e-4)
        if normalisation.depth_mm is not None:
            ends = scanner.positions_mm(normalisation.depth_mm)
            np.testing.assert_allclose(lines["attenuation"][facing], correction(ends[a[facing]], ends[b[facing]]), rtol=1e-5)
        # Every line of live crystals of modules that pair is there, but for what the places of crystals refuse.
        modules = np.arange(len(scanner.arrangement.modules))
        good = modules_pair(scanner, modules, modules)
        self.assertTrue(good[scanner.module(a), scanner.module(b)].all())
        if "max_z_difference_mm" not in scanner.description.get("good_pairs", {}):
            alive = np.flatnonzero(normalisation.efficiency)
            module = scanner.module(alive)
            pairs = np.triu(good[module[:, None], module[None, :]], 1)
            self.assertEqual(len(a), np.count_nonzero(pairs))
        return int(facing.sum())

    def check_import(self, site: Path, scanner: petacq.Scanner) -> None:
        """petacq-geometry finds every crystal of the table of CASToR, and petcal takes what it writes."""
        document, numbers = site / "found.json", site / "numbers.csv"
        options = ("--castor", site / "out" / "random.hscan", "--tick-ps", "10", "-o", document, "--numbers", numbers)
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(command.main([*map(str, options)]), 0)
        found = petacq.Scanner.load(document)
        order = np.loadtxt(site / "out" / "crystals.csv", delimiter=",", skiprows=1, usecols=0, ndmin=1).astype(int)
        crystal = order[np.loadtxt(numbers, int, delimiter=",", skiprows=1, ndmin=2)[:, 1]]
        np.testing.assert_array_equal(np.sort(crystal), np.arange(scanner.crystal_count))
        # Numbers of 32 bits; sizes as far as these tell them.
        apart = np.linalg.norm(found.positions_mm() - scanner.positions_mm()[crystal], axis=1)
        self.assertLess(apart.max(), 2e-7 * np.abs(scanner.positions_mm()).max())
        np.testing.assert_allclose(found.sizes_mm(), scanner.sizes_mm()[crystal], atol=1e-4)
        np.testing.assert_allclose(found.outward(), scanner.outward()[crystal], atol=1e-6)
        support.call("petcal", "make", "--scanner", document, "--output", site / "found.h5")

    def test_random_scanners(self) -> None:
        seen = 0
        for seed in range(16):
            with self.subTest(seed=seed):
                rng = np.random.default_rng(seed)
                document = random_scanner.random_description(rng)
                if petacq.Scanner.from_json(document).crystal_count > 250:
                    continue
                found = lines_of(support.scratch() / f"random{seed}", document, rng)
                if found is None:
                    continue
                self.check_import(support.scratch() / f"random{seed}", found[0])
                if self.check(found) > 0:
                    seen += 1
        self.assertGreater(seen, 3)

    def test_modules_and_layers_on_the_way_absorb(self) -> None:
        for depth in ({}, {"depth_mm": "0"}, {"depth_mm": "1.5"}):
            with self.subTest(depth=depth):
                site = support.scratch() / f"through{depth.get('depth_mm', '')}"
                found = lines_of(site, THROUGH_AN_INSERT, np.random.default_rng(3), **depth)
                self.assertGreater(self.check(found), 5000)

    def test_petcal_refuses_records_of_an_unknown_scanner(self) -> None:
        site = support.scratch() / "unknown"
        lines_of(site, THROUGH_AN_INSERT, np.random.default_rng(3), depth_mm="0")
        records = ("--run", site / "pair.plm", "--scanner", site / "scanner.json", "--cylinder", 0, 0, 0, 5, 9)
        support.call("petcal", "derive", "normalisation", *records, "-o", site / "no.h5", status=78)
        self.assertFalse((site / "no.h5").exists())

    def test_efficiencies_of_petsird_are_those_of_every_pair(self) -> None:
        run, normalisation = derived(support.scratch())
        self.assertGreater(len(np.unique(normalisation.classes.pair_turn)), 5)
        rng = np.random.default_rng(4)
        uneven = {name: rng.uniform(0.5, 1.5, len(getattr(normalisation, name))) for name in ("transaxial", "axial")}
        normalisation = replace(normalisation, **uneven)
        weights = PairWeights(run.scanner)
        bins = bins_of(run, DEFAULTS)
        pairs = pairs_of(run.scanner, 0, normalisation, bins)
        self.assertTrue(pairs.of_normalisation)
        for a, b in bins.pairs_of_types:
            first, second = bins.types[a], bins.types[b]
            table, groups = pairs.table(first, second), pairs.groups(first, second)
            self.assertLess(len(groups), np.count_nonzero(table >= 0) / 1.5)
            for of_a, of_b in np.argwhere(table >= 0):
                crystals = first.crystals[of_a][:, None], second.crystals[of_b][None, :]
                expected = weights.of(*crystals) * normalisation.of_lines(*crystals)
                np.testing.assert_allclose(groups[table[of_a, of_b]], expected, rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
