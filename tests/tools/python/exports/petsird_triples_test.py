"""Triples in PETSIRD files of made-up runs, read back by the official package."""

import io
import json
import shutil
import unittest
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import support

import petacq
from petacq import optional
from petacq import petsird as tool
from petacq.layout import TRIPLE
from petacq.petsird_check import compare
from petacq.petsird_header import is_0_9
from petacq.scanner.petsird_types import types_of

try:
    petsird = optional.petsird_package()
except petacq.PetacqError as error:
    raise unittest.SkipTest(str(error)) from error
support.programs_in_path()

from petsird.helpers import expand_detection_bin, get_detection_efficiency

EXAMPLES = support.SOURCE / "config" / "examples"
END, WINDOW, BEFORE, AFTER = 3_000_000_000, 320, 700, 2000
ABOVE, BELOW = (900.0, 1300.0), (50.0, 200.0)


def made_run(name: str, scanner: str, gammas: tuple[float, float] = ABOVE) -> petacq.Run:
    """A run of triples of any crystals, and of their pairs."""
    folder = support.scratch() / name
    if folder.exists():
        return petacq.open_run(folder)
    folder.mkdir()
    described = json.loads((EXAMPLES / scanner).read_text())
    count, tick_ps = petacq.Scanner.from_json(described).crystal_count, described["tick_ps"]
    random = np.random.default_rng(11)
    records = np.zeros(600, TRIPLE)
    records["time"] = np.sort(random.integers(0, END, 600))
    records["crystal_a"] = random.integers(0, count, 600)
    records["crystal_b"] = (records["crystal_a"] + random.integers(1, count, 600)) % count
    records["gamma_crystal"] = random.integers(0, count, 600)
    records["dt"] = random.integers(0, WINDOW + 1, 600)
    records["gamma_dt"] = random.integers(-BEFORE, AFTER + 1, 600)
    for field in ("energy_a", "energy_b"):
        records[field] = random.uniform(350, 650, 600)
    records["gamma_energy"] = random.uniform(*gammas, 600)
    records["kind"] = random.integers(0, 4, 600) == 0
    records["third"] = random.integers(0, 4, 600) == 0
    pairs = np.zeros(600, petacq.layout.COINCIDENCE)
    for field in pairs.dtype.names:
        pairs[field] = records[field]
    rules = {
        "coincidence": {**support.COINCIDENCE_RULES, "window_ticks": WINDOW},
        "energy": {"filter": True, "lower_keV": 350, "upper_keV": 650},
        "gammas": {"lower_keV": gammas[0], "upper_keV": gammas[1], "before_ticks": BEFORE, "after_ticks": AFTER, "policy": "all",
                   "delay_ticks": None},
    }
    coverage = {"version": 1, "tick_ps": tick_ps, "intervals": [[0, END]], "anchor": None, "rules": rules}
    more = {"tick_ps": tick_ps, "crystals": count, "coverage": coverage}
    of_pairs = {**coverage, "rules": {**rules, "gammas": None}}  # pairs are found without them
    (folder / "coincidences.plm").write_bytes(support.listmode(pairs.tobytes(), [600], **{**more, "coverage": of_pairs}))
    (folder / "triples.plm").write_bytes(support.listmode(records.tobytes(), [250, 350], kind=5, **more))
    (folder / "run.json").write_text(json.dumps({"run_id": "small", "state": "complete", "scanner": described}))
    return petacq.open_run(folder)


def written(run: petacq.Run, options: tool.Options = tool.DEFAULTS):
    path = support.scratch() / "triples.petsird"
    path.unlink(missing_ok=True)
    return path, tool.convert(run, path, options)


def read(path):
    with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
        return reader.read_header(), list(reader.read_time_blocks())


def sorted_pair(a: int, b: int, dt: int) -> tuple[int, int, int]:
    """Without a difference in time neither photon is the first."""
    return (a, b, dt) if dt else (*sorted((a, b)), 0)


def mm_per_tick(run: petacq.Run) -> float:
    return run.scanner.tick_ps * 0.299792458 / 2


def found_in(run: petacq.Run, scanner, blocks, gammas) -> list[tuple[int, ...]]:
    """The triples as the file says them: ms, crystals and dt of the pair, crystal and dt of the gamma."""
    types = types_of(run.scanner)
    found = []
    for block in blocks:
        for a, table in enumerate(block.value.triple_events):
            for b, row in enumerate(table):
                for c, events in enumerate(row):
                    if not a >= b >= c:
                        assert events == []
                    for event in events:
                        photons = list(zip((a, b, c), event.detection_bins))
                        assert photons == sorted(photons, reverse=True)
                        arrivals = [0]
                        for other, tof in zip((b, c), event.tof_indices):
                            edges = scanner.tof_bin_edges[a][other].edges
                            arrivals.append(-round(float(edges[tof] + edges[tof + 1]) / 2 / mm_per_tick(run)))
                        pair, third = [], None
                        for (of_type, detection_bin), arrival in zip(photons, arrivals):
                            at = expand_detection_bin(scanner, of_type, detection_bin)
                            crystal = int(types[of_type].crystals[at.module_index][at.element_index])
                            edges = scanner.event_energy_bin_edges[of_type].edges
                            window = (float(edges[at.energy_index]), float(edges[at.energy_index + 1]))
                            if window == gammas:
                                third = (crystal, arrival)
                            else:
                                assert 350 <= window[0] and window[1] <= 650, window
                                pair.append((arrival, crystal))
                        (first, one), (second, other) = sorted(pair)
                        begin = int(block.value.time_interval.start)
                        found.append((begin, *sorted_pair(one, other, second - first), third[0], third[1] - first))
    return sorted(found)


def those_of(run: petacq.Run) -> list[tuple[int, ...]]:
    out = []
    for r in run.triples.records().tolist():
        named = dict(zip(TRIPLE.names, r))
        if named["kind"] == petacq.PROMPT and named["third"] == petacq.COINCIDENT:
            pair = sorted_pair(named["crystal_a"], named["crystal_b"], named["dt"])
            out.append((int(named["time"] * run.scanner.tick_ps // 10**9), *pair, named["gamma_crystal"], named["gamma_dt"]))
    return sorted(out)


class Triples(unittest.TestCase):
    def test_every_triple_is_there_with_its_gamma(self):
        for scanner, energy_bins, gammas in (
            ("small.scanner.json", 1, ABOVE),
            ("scanners/phoswich.scanner.json", 2, ABOVE),  # of two types of modules
            ("scanners/phoswich.scanner.json", 1, BELOW),
        ):
            with self.subTest(scanner, gammas=gammas):
                run = made_run(f"{scanner.split('/')[-1]}-{gammas[0]}", scanner, gammas)
                options = tool.Options(energy_bins=energy_bins)
                path, report = written(run, options)
                expected = those_of(run)
                self.assertEqual(report.triples, len(expected))
                self.assertGreater(len(expected), 300)
                self.assertEqual(compare(run, path, options).triples, len(expected))
                header, blocks = read(path)
                self.assertEqual(found_in(run, header.scanner, blocks, gammas), expected)
                self.assertEqual(header.scanner.triple_event_policy, petsird.TripleEventPolicy.OTHER)
                self.assertIn("triples with a delayed gamma", " ".join(report.not_held))

    def test_every_byte_is_the_one_that_the_package_writes(self):
        path, _ = written(made_run("bytes", "scanners/phoswich.scanner.json"))
        header, blocks = read(path)
        again = io.BytesIO()
        with petsird.BinaryPETSIRDWriter(again) as writer:
            writer.write_header(header)
            writer.write_time_blocks(iter(blocks))
        self.assertEqual(again.getvalue(), path.read_bytes())

    def test_prompts_and_delayeds_are_those_of_a_file_without_triples(self):
        """But for their numbers of bins."""
        run = made_run("pairs", "small.scanner.json")

        def pairs(options):
            header, blocks = read(written(run, options)[0])
            scanner, out = header.scanner, []
            middles = np.array(scanner.tof_bin_edges[0][0].edges, float)
            for kind in ("prompt_events", "delayed_events"):
                for number, block in enumerate(blocks):
                    for event in getattr(block.value, kind)[0][0]:
                        elements = [n // scanner.event_energy_bin_edges[0].number_of_bins() for n in event.detection_bins]
                        out.append((kind, number, *elements, round(middles[event.tof_idx : event.tof_idx + 2].mean(), 3)))
            return out

        self.assertEqual(pairs(tool.DEFAULTS), pairs(tool.Options(triples=False)))

    def test_left_out_the_file_is_that_of_a_run_without(self):
        run = made_run("without", "small.scanner.json")
        other = support.scratch() / "without-any"
        shutil.copytree(run.path, other)
        (other / "triples.plm").unlink()
        path, report = written(petacq.open_run(other))
        expected = path.read_bytes()
        self.assertNotIn("triples", " ".join(report.not_held))
        for options in (tool.Options(triples=False), tool.Options(only_events=True)):
            path, report = written(run, options)
            self.assertEqual(path.read_bytes(), expected)
            self.assertIn("triples: left out", report.not_held)

    @unittest.skipIf(is_0_9(petsird), "it has no function for it in its helpers of Python")
    def test_no_pair_has_a_photon_with_the_energy_of_a_gamma(self):
        path, _ = written(made_run("efficiency", "small.scanner.json"))
        scanner = read(path)[0].scanner
        size = len(scanner.scanner_geometry.replicated_modules[0].object.detecting_elements.transforms)
        first, second = 12 * size, 0  # opposite modules
        found = [get_detection_efficiency(scanner, [0, 0], 3 * first + k, 3 * second) for k in range(3)]
        self.assertEqual(found, [1, 0, 0])

    def test_without_tof_and_in_wide_bins(self):
        run = made_run("wide", "small.scanner.json")
        for width in (0, 7):
            options = tool.Options(tof_bin_ticks=width)
            path, _ = written(run, options)
            compare(run, path, options)
            header, blocks = read(path)
            edges = header.scanner.tof_bin_edges[0][0].edges
            events = [e for block in blocks for of in block.value.triple_events for e in of[0][0]]
            indices = {index for event in events for index in event.tof_indices}
            if width == 0:
                self.assertEqual(indices, {0})
                self.assertAlmostEqual(float(edges[1]), (WINDOW + 0.5) * mm_per_tick(run), places=4)
            else:
                self.assertLess(max(indices), len(edges) - 1)
                self.assertGreater(max(indices), (WINDOW + BEFORE) // width)

    def test_as_a_program(self):
        run = made_run("program", "small.scanner.json")
        path = support.scratch() / "program.petsird"
        said, complaints = io.StringIO(), io.StringIO()
        with redirect_stdout(said), redirect_stderr(complaints):
            self.assertEqual(tool.main([str(run.path), str(path), "--check"]), 0)
        self.assertIn(f"{len(those_of(run))} triples, checked", said.getvalue())
        path.unlink()
        with redirect_stdout(said), redirect_stderr(complaints):
            self.assertEqual(tool.main([str(run.path), str(path), "--no-triples"]), 0)
        self.assertIn("0 triples\n", said.getvalue())

    def test_compare_finds_a_difference_and_a_gamma_outside_its_window_is_refused(self):
        run = made_run("damaged", "small.scanner.json")
        path, _ = written(run)
        records = run.triples.records().copy()
        held = np.flatnonzero((records["kind"] == petacq.PROMPT) & (records["third"] == petacq.COINCIDENT))[100]
        for change, complaint in ((1, "events of"), (4000, "ticks apart")):
            changed = records.copy()
            changed["gamma_dt"][held] += change if changed["gamma_dt"][held] < 0 or change > 1 else -1
            more = run.triples.description
            (run.path / "triples.plm").write_bytes(support.listmode(changed.tobytes(), [600], kind=5, **more))
            with self.assertRaisesRegex(petacq.PetacqError, complaint):
                compare(petacq.open_run(run.path), path)


if __name__ == "__main__":
    unittest.main()
