"""PETSIRD files of scanners in the long form, read back by the official package: geometry, events, which modules pair; and the
import of the geometry."""

import contextlib
import io
import json
import os
import shutil
import unittest
from typing import Any

import numpy as np
import random_scanner
import support

import petacq
from petacq import optional
from petacq import petsird as tool
from petacq.layout import COINCIDENCE
from petacq.petsird_check import compare
from petacq.petsird_header import is_0_9
from petacq.scanner import command
from petacq.scanner.petsird_types import types_of

try:
    petsird = optional.petsird_package()
except petacq.PetacqError as error:
    raise unittest.SkipTest(str(error)) from error
support.programs_in_path()

from petsird.helpers import expand_detection_bin, get_detection_efficiency

EXAMPLES = support.SOURCE / "config" / "examples" / "scanners"
END = 3_000_000_000
PAIRS = 150
#: PETACQ_LONG=1: the example of 50,000 crystals, and many random scanners.
LONG = "PETACQ_LONG" in os.environ


def description_of(name: str) -> dict[str, Any]:
    """An example, the scanner of turned modules, or a random one, which is named by its number."""
    if name.isdigit():
        return random_scanner.random_description(np.random.default_rng(int(name)))
    if name == "turned":
        return support.TURNED
    scanner = json.loads((EXAMPLES / f"{name}.scanner.json").read_text())
    scanner.pop("rotation", None)  # petsird_blocks_test has a scanner that turns
    return scanner


def made_run(name: str) -> petacq.Run:
    """A run of pairs of any crystals."""
    folder = support.scratch() / f"{name}-run"
    if not folder.exists():
        folder.mkdir()
        scanner = description_of(name)
        count = petacq.Scanner.from_json(scanner).crystal_count
        random = np.random.default_rng(3)
        records = np.zeros(PAIRS, COINCIDENCE)
        records["time"] = np.sort(random.integers(0, END, PAIRS))
        records["crystal_a"] = random.integers(0, count, PAIRS)
        records["crystal_b"] = (records["crystal_a"] + random.integers(1, count, PAIRS)) % count
        records["dt"] = random.integers(0, 321, PAIRS)
        records["kind"] = random.integers(0, 4, PAIRS) == 0
        records["energy_a"] = records["energy_b"] = 511
        coverage = {
            "version": 1,
            "tick_ps": 10,
            "intervals": [[0, END]],
            "anchor": {"ticks": 0, "unix_ns": 1_800_000_000_000_000_000},
            "rules": {"coincidence": support.COINCIDENCE_RULES, "energy": None},
        }
        described = {"tick_ps": 10, "crystals": count, "coverage": coverage}
        (folder / "coincidences.plm").write_bytes(support.listmode(records.tobytes(), [PAIRS], **described))
        (folder / "run.json").write_text(json.dumps({"run_id": "small", "state": "complete", "scanner": scanner}))
    return petacq.open_run(folder)


def written(name: str):
    """The run, the path of its file, the header, and the lists of its prompts and delayeds by pair of types."""
    run = made_run(name)
    path = support.scratch() / f"{name}.petsird"
    path.unlink(missing_ok=True)
    report = tool.convert(run, path)
    lists = {"prompt_events": {}, "delayed_events": {}}
    with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
        header = reader.read_header()
        for block in reader.read_time_blocks():
            for key, of in lists.items():
                for a, row in enumerate(getattr(block.value, key)):
                    for b, events in enumerate(row):
                        of.setdefault((a, b), []).extend(events)
    return run, path, header.scanner, lists, report


def front_of(scanner, of_type: int, detection_bin: int) -> np.ndarray:
    """The middle of the front face of an element, from the matrices in the file."""
    at = expand_detection_bin(scanner, of_type, detection_bin)
    of = scanner.scanner_geometry.replicated_modules[of_type]
    elements = of.object.detecting_elements
    corners = np.array([corner.c for corner in elements.object.shape.corners], float)
    front = corners[corners[:, 0] == corners[:, 0].min()].mean(0)
    for transform in (elements.transforms[at.element_index], of.transforms[at.module_index]):
        matrix = np.array(transform.matrix, float)
        front = matrix[:, :3] @ front + matrix[:, 3]
    return front


class AnyScanner(unittest.TestCase):
    def check_events(self, name: str) -> None:
        run, path, scanner, lists, report = written(name)
        compare(run, path)
        places = run.scanner.positions_mm()
        # Numbers of 32 bits: to half a unit of the last place in each of rotation and translation.
        tolerance = max(6e-6, 3e-8 * 3 * np.abs(places).max())
        records = np.concatenate(list(run.coincidences.blocks()))
        for kind, key in ((petacq.PROMPT, "prompt_events"), (petacq.DELAYED, "delayed_events")):
            expected = records[records["kind"] == kind]
            self.assertEqual(sum(map(len, lists[key].values())), len(expected))
            # The lower crystal, the higher one, and how many ticks later the lower one had its photon.
            of_run = [
                (a, b, -dt) if a < b else (b, a, dt)
                for a, b, dt in zip(*(expected[key].astype(int).tolist() for key in ("crystal_a", "crystal_b", "dt")))
            ]
            found = []
            for (a, b), events in lists[key].items():
                if a < b:
                    self.assertEqual(events, [])
                    continue
                edges = np.array(scanner.tof_bin_edges[a][b].edges, float)
                ticks = (edges[1:] + edges[:-1]) / 2 / (run.scanner.tick_ps * 0.299792458 / 2)
                for event in events:
                    first, second = event.detection_bins
                    self.assertTrue(a > b or first >= second)
                    fronts = np.array([front_of(scanner, a, first), front_of(scanner, b, second)])
                    apart = np.linalg.norm(places - fronts[:, None], axis=2)
                    self.assertLess(apart.min(1).max(), tolerance)
                    one, other = apart.argmin(1).tolist()
                    later = round(ticks[event.tof_idx])
                    found.append((one, other, later) if one < other else (other, one, -later))
            self.assertEqual(sorted(found), sorted(of_run))
        self.assertIn("BDMs and DUs", " ".join(report.not_held))

    def test_every_event_is_between_its_crystals(self):
        names = ("phoswich", "insert", "two-heads", "box", "hexagon", "unequal-blocks", "turned")
        for name in names + (("monolithic",) if LONG else ()):
            with self.subTest(name):
                self.check_events(name)

    def test_random_scanners(self):
        for seed in range(60 if LONG else 4):
            with self.subTest(seed=seed):
                self.check_events(str(seed))
                self.check_import(str(seed))

    def test_singles_and_dead_time_are_those_of_the_crystals(self):
        run = made_run("phoswich")
        count = run.scanner.crystal_count
        random = np.random.default_rng(8)
        bdm = run.scanner.bdm(np.arange(count))
        modules = run.scanner.bdm_count
        singles, blind = random.integers(0, 1000, count), random.uniform(0, 0.5, modules) * END
        alive = 1 - blind[bdm] / END
        names = (("start", "<u8"), ("length", "<u8"), ("module_dead_time", "<f8", modules), ("crystal_unpaired", "<u4", count))
        record = np.zeros(1, np.dtype([*names, ("crystal_grouped", "<u4", count)]))
        record["length"], record["module_dead_time"], record["crystal_unpaired"] = END, blind, singles
        folder = support.scratch() / "with-seconds"
        shutil.copytree(run.path, folder)
        (folder / "seconds.plm").write_bytes(support.seconds_file(record))
        run = petacq.open_run(folder)
        path = support.scratch() / "seconds.petsird"
        tool.convert(run, path)
        compare(run, path)
        with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
            scanner = reader.read_header().scanner
            blocks = [block.value for block in reader.read_time_blocks()]
        (counted,) = (block for block in blocks if isinstance(block, petsird.SinglesHistogramTimeBlock))
        (dead,) = (block for block in blocks if isinstance(block, petsird.DeadTimeTimeBlock))
        both = ("singles_histograms", "singles_per_detection_bin_histogram")  # 0.9.1, 0.12
        table = next(getattr(counted, name) for name in both if hasattr(counted, name))
        self.assertEqual([len(of) for of in table], [28 * 49, 28 * 64])
        places = run.scanner.positions_mm()
        for of_type, values in enumerate(table):
            for element in range(0, len(values), 37):
                crystal = np.linalg.norm(places - front_of(scanner, of_type, element), axis=1).argmin()
                self.assertEqual(int(values[element]), singles[crystal])
                fraction = dead.alive_time_fractions.singles_alive_time_fractions[of_type][element]
                self.assertAlmostEqual(float(fraction), alive[crystal], places=6)

    def test_materials_are_named(self):
        _, _, scanner, _, report = written("phoswich")
        named = {material.id: material.name for material in scanner.bulk_materials}
        modules = scanner.scanner_geometry.replicated_modules
        self.assertEqual([named[of.object.detecting_elements.object.material_id] for of in modules], ["LYSO", "GSO"])
        self.assertNotIn("material of the crystals", " ".join(report.not_held))

    @unittest.skipIf(is_0_9(petsird), "its helper knows one type")
    def test_modules_that_do_not_pair_have_the_efficiency_0(self):
        run, _, scanner, _, _ = written("two-heads")
        (of,) = scanner.scanner_geometry.replicated_modules
        elements = len(of.object.detecting_elements.transforms)
        modules = run.scanner.arrangement.modules
        for a in range(len(modules)):
            for b in range(a + 1):
                found = get_detection_efficiency(scanner, [0, 0], a * elements + 1, b * elements)
                self.assertEqual(found, float(modules[a].group != modules[b].group), (a, b))
        self.assertEqual(len({m.group for m in modules}), 2)

    def check_import(self, name: str) -> tuple[petacq.Scanner, petacq.Scanner]:
        """What petacq-geometry finds in the file, and the scanner of the run."""
        run, path, *_ = written(name)
        document = support.scratch() / f"{name}.found.json"
        numbers = support.scratch() / f"{name}.numbers.csv"
        said = io.StringIO()
        options = ("--petsird", path, "--tick-ps", 10, "-o", document, "--numbers", numbers, "--force")
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = command.main([str(option) for option in options])
        self.assertEqual(status, 0, said.getvalue())
        found = petacq.Scanner.load(document)
        places, sizes, outward = run.scanner.positions_mm(), run.scanner.sizes_mm(), run.scanner.outward()
        self.assertEqual(found.crystal_count, run.scanner.crystal_count)
        in_file = np.concatenate([of.crystals.ravel() for of in types_of(run.scanner)])
        mapped = in_file[np.loadtxt(numbers, int, delimiter=",", skiprows=1, ndmin=2)[:, 1]]
        np.testing.assert_array_equal(np.sort(mapped), np.arange(len(places)))
        tolerance = max(6e-6, 2e-7 * np.abs(places).max())
        self.assertLess(np.linalg.norm(found.positions_mm() - places[mapped], axis=1).max(), tolerance)
        np.testing.assert_allclose(found.outward(), outward[mapped], atol=1e-6)
        # Rows and columns of a module that is turned by a quarter change places. Numbers of 32 bits tell sizes less well.
        of_file = sizes[mapped]
        of_file[:, 1:].sort()
        of_found = found.sizes_mm()
        of_found[:, 1:].sort()
        np.testing.assert_allclose(of_found, of_file, atol=5e-5 if name.isdigit() else 1e-6)
        return found, run.scanner

    def test_geometry_comes_back(self):
        names = ("phoswich", "insert", "box", "two-heads", "unequal-blocks", "two-rings", "partial-ring", "hexagon", "turned")
        for name in names:
            with self.subTest(name):
                found, scanner = self.check_import(name)
                self.assertEqual(found.name, name)
                # Modules and layers are those of the description.
                self.assertEqual(len(found.arrangement.modules), len(scanner.arrangement.modules))
                self.assertEqual(len(found.arrangement.types), len(scanner.arrangement.types))

    def test_damaged_files_get_an_error(self):
        _, path, *_ = written("two-heads")
        data = path.read_bytes()
        site = support.scratch() / "damaged.petsird"
        for wrong in (b"", b"yardl", data[:100], data[: len(data) // 2], b"\xff" * 1000, data[:50] + b"\x00" * 50 + data[100:]):
            site.write_bytes(wrong)
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                status = command.main(["--petsird", str(site), "--tick-ps", "10", "-o", str(site) + ".json"])
            self.assertEqual(status, 65, said.getvalue())
            self.assertIn("damaged.petsird", said.getvalue())
        self.assertFalse((support.scratch() / "damaged.petsird.json").exists())


if __name__ == "__main__":
    unittest.main()
