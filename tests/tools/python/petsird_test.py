"""The official package must read the run back unchanged."""

import contextlib
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import unittest
from dataclasses import replace

import numpy as np
import support

import petacq
from petacq import optional, petsird_events
from petacq import petsird as tool
from petacq.normalisation import Normalisation
from petacq.petsird_check import compare
from petacq.petsird_header import is_0_9

try:
    import h5py
except ImportError as error:
    raise unittest.SkipTest("h5py is not installed") from error
try:
    petsird = optional.petsird_package()
except petacq.PetacqError as error:
    raise unittest.SkipTest(str(error)) from error
support.programs_in_path()
from petsird.helpers import expand_detection_bin, get_detection_efficiency  # noqa: E402
from petsird.helpers.geometry import get_detecting_box  # noqa: E402


def read(path):
    """Header; prompts and delayeds as rows (start ms, stop ms, bin a, bin b, TOF index)."""
    events = {"prompt_events": [], "delayed_events": []}
    intervals = []
    with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
        header = reader.read_header()
        for block in reader.read_time_blocks():
            if not isinstance(block, petsird.TimeBlock.EventTimeBlock):
                continue
            interval = block.value.time_interval
            intervals.append((interval.start, interval.stop))
            for name, rows in events.items():
                for event in getattr(block.value, name)[0][0] if getattr(block.value, name) else []:
                    rows.append((interval.start, interval.stop, *event.detection_bins, event.tof_idx))
    return header, intervals, *(np.array(rows, np.int64).reshape(-1, 5) for rows in events.values())


def has_delayeds(information):
    if is_0_9(petsird):
        return information.delayed_events_are_stored
    return information.delayed_event_policy != petsird.CoincidencePolicy.NONE


def main(*arguments):
    """Exit status, standard output, standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = tool.main([str(a) for a in arguments])
        except SystemExit as leave:
            status = leave.code
    return status, out.getvalue(), err.getvalue()


def written_normalisation(normalisation):
    """The path of its file; it need not have all of it."""
    path = support.scratch() / "normalisation.h5"
    with h5py.File(path, "w") as file:
        for name in ("efficiency", "transaxial", "axial"):
            file[name] = getattr(normalisation, name)
        if normalisation.activity_factor is not None:
            file.attrs["activity_factor"] = normalisation.activity_factor
    return path


class Petsird(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_ = petacq.open_run(support.small_run())
        cls.records = cls.run_.coincidences.records()
        cls.path = support.scratch() / "run.petsird"
        cls.status, cls.out, cls.err = main(cls.run_.path, cls.path, "--check", "--tof-resolution-ps", 28)
        cls.header, cls.intervals, cls.prompts, cls.delayeds = read(cls.path)
        cls.information = cls.header.scanner

    def expanded(self, bins):
        return [expand_detection_bin(self.information, 0, int(b)) for b in bins]

    def test_it_is_written_and_says_what_it_does_not_hold(self):
        self.assertEqual(self.status, 0, self.err)
        prompts = int((self.records["kind"] == petacq.PROMPT).sum())
        self.assertIn(f"{prompts:,} prompts, {len(self.records) - prompts:,} delayeds, checked", self.out)
        for word in ("times", "energies", "energy resolution", "delay", "singles"):
            self.assertIn(word, self.err)
        self.assertNotIn("TOF resolution", self.err)

    def test_every_event_is_that_of_the_run(self):
        s = self.run_.scanner
        boxes = {}  # by detection bin: the middle of the front face
        for kind, found in ((petacq.PROMPT, self.prompts), (petacq.DELAYED, self.delayeds)):
            records = self.records[self.records["kind"] == kind]
            self.assertEqual(len(found), len(records))
            self.assertGreater(len(found), 50)
            since = (records["time"] - np.uint64(self.run_.start_ticks)) * s.tick_ps * 1e-9
            np.testing.assert_array_equal(found[:, 0], np.floor(since))
            np.testing.assert_array_equal(found[:, 1], found[:, 0] + 1)
            # One TOF bin for each tick, centred on it: the arrival of the first less that of the second. The first has
            # the larger detection bin: it need not be the earlier one.
            self.assertTrue((found[:, 2] > found[:, 3]).all())
            elements = petsird_events.bins_of(self.run_, tool.DEFAULTS).element
            swapped = elements[records["crystal_a"]] < elements[records["crystal_b"]]
            self.assertEqual(len(set(swapped.tolist())), 2)
            edges = self.information.tof_bin_edges[0][0].edges.astype(float)
            middle = (edges[:-1] + edges[1:]) / 2
            expected = np.where(swapped, 1, -1) * records["dt"].astype(float) * s.tick_ps * 0.299792458 / 2
            np.testing.assert_allclose(middle[found[:, 4]], expected, atol=1e-3)
            front = s.positions_mm()
            first = np.where(swapped, records["crystal_b"], records["crystal_a"])
            second = np.where(swapped, records["crystal_a"], records["crystal_b"])
            for column, crystals in ((2, first), (3, second)):
                for detection_bin, crystal in zip(found[:, column].tolist(), crystals.tolist()):
                    if detection_bin not in boxes:
                        (place,) = self.expanded([detection_bin])
                        corners = np.array([c.c for c in get_detecting_box(self.information, 0, place).corners])
                        boxes[detection_bin] = corners.mean(0) - s.outward()[crystal] * s.crystal_length_mm / 2
                    np.testing.assert_allclose(boxes[detection_bin], front[crystal], atol=1e-4)
        self.assertGreater(len(boxes), 2000)

    def test_boxes_have_the_size_of_crystals(self):
        (place,) = self.expanded([0])
        corners = np.array([c.c for c in get_detecting_box(self.information, 0, place).corners])
        np.testing.assert_allclose(np.ptp(corners, axis=0), (12, 1.6, 1.7), atol=1e-5)

    def test_modules_along_the_axis_first_as_stir_expects(self):
        module = self.information.scanner_geometry.replicated_modules[0]
        self.assertEqual(len(module.transforms), 24)
        angles = [np.arctan2(t.matrix[1, 0], t.matrix[0, 0]) for t in module.transforms]
        np.testing.assert_allclose(np.unwrap(angles), np.repeat(np.arange(12), 2) * np.pi / 6, atol=1e-5)
        z = [e.matrix[2, 3] for e in module.object.detecting_elements.transforms]
        np.testing.assert_allclose(np.diff(z)[:11], [1.7, 1.7, 1.7, 2.2] * 2 + [1.7] * 3, atol=1e-5)

    def test_efficiency_is_nothing_where_the_modules_are_too_near(self):
        count = 2880
        a = int(self.prompts[0, 2])
        apart = [(m // 2 - a // 120 // 2) % 12 for m in range(24)]
        for module, steps in enumerate(apart):
            near = min(steps, 12 - steps) < 2
            pair = sorted((a, module * 120 + 5), reverse=True)
            found = get_detection_efficiency(self.information, [0, 0], *pair)
            self.assertEqual(found, 0 if near else 1)
        self.assertEqual(count, 24 * 120)

    @unittest.skipIf(is_0_9(petsird), "its tables may be left out")
    def test_the_package_has_an_efficiency_for_every_pair_where_tables_are_large(self):
        path = support.scratch() / "large.petsird"
        size = 120 * 18
        for energy_bins, normalised, written in ((18, True, True), (50, False, False)):
            path.unlink(missing_ok=True)
            normalisation = None
            if normalised:
                ones = np.ones(2880, np.float32), np.ones((7, 10, 10), np.float32), np.ones((24, 24), np.float32)
                normalisation = written_normalisation(Normalisation(self.run_.scanner, *ones, None, ""))
            options = replace(tool.DEFAULTS, energy_bins=energy_bins, normalisation=normalisation, only_events=True)
            report = tool.convert(self.run_, path, options)
            with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
                information = reader.read_header().scanner
                for _ in reader.read_time_blocks():
                    pass
            efficiencies = information.detection_efficiencies
            said = " ".join(report.not_held)
            if not written:
                self.assertEqual((efficiencies.module_pair_sgidlut, efficiencies.module_pair_efficiencies_vectors), ([], []))
                self.assertIn("get_detection_efficiency", said)
                continue
            self.assertEqual("solid angle, transaxial and axial factors): all 1" in said, normalised)
            if normalised:
                self.assertIn("not in them: transaxial and axial factors", efficiencies.method_description)
            for module in range(24):
                steps = (module // 2) % 12
                near = min(steps, 12 - steps) < 2
                found = get_detection_efficiency(information, [0, 0], *sorted((7, module * size + size - 1), reverse=True))
                self.assertEqual(found, 0 if near else 1)

    def test_efficiencies_of_a_normalisation(self):
        s = self.run_.scanner
        random = np.random.default_rng(5)
        axial = random.uniform(0.5, 1.5, (24, 24)).astype(np.float32)
        normalisation = Normalisation(
            s,
            random.uniform(0, 2, s.crystal_count).astype(np.float32),
            random.uniform(0.5, 1.5, (7, 10, 10)).astype(np.float32),
            (axial + axial.T) / 2,
            2.5,
            "",
        )
        of_file = written_normalisation(normalisation)
        options = replace(tool.DEFAULTS, normalisation=of_file)
        path = support.scratch() / "normalised.petsird"
        report = tool.convert(self.run_, path, options)
        compare(self.run_, path, options)
        self.assertIn("dead time of pairs", " ".join(report.not_held))
        self.assertNotIn("--normalisation", " ".join(report.not_held))
        with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
            information = reader.read_header().scanner
            for _ in reader.read_time_blocks():
                pass
        said = information.detection_efficiencies.method_description
        self.assertIn(f"SHA-256 {hashlib.sha256(of_file.read_bytes()).hexdigest()}", said)
        self.assertIn("activity factor 2.5", said)
        element = petsird_events.bins_of(self.run_, options).element
        front, outward = s.positions_mm(), s.outward()
        for a, b in random.integers(0, s.crystal_count, (300, 2)).tolist():
            modules = abs(a % 120 // 10 - b % 120 // 10)
            pair = sorted((int(element[a]), int(element[b])), reverse=True)
            found = get_detection_efficiency(information, [0, 0], *pair)
            if min(modules, 12 - modules) < 2:
                self.assertEqual(found, 0)
                continue
            up = (b % 120 // 10 - a % 120 // 10) % 12
            first, second = (a, b) if (up < 6 or (up == 6 and a % 120 < b % 120)) else (b, a)
            line = front[a] - front[b]
            length = np.linalg.norm(line)
            expected = (
                (1.6 * 1.7) ** 2 / (2 * np.pi) * (line @ outward[a]) * -(line @ outward[b]) / length**4
                * normalisation.efficiency[a] * normalisation.efficiency[b]
                * normalisation.transaxial[min(up, 12 - up), first % 10, second % 10]
                * normalisation.axial[a // 120, b // 120] / 2.5
            )
            self.assertAlmostEqual(found / expected, 1, places=5)

    def test_header(self):
        information, exam = self.information, self.header.exam
        self.assertEqual(information.model_name, "small")
        self.assertTrue(has_delayeds(information))
        self.assertEqual(information.prompt_event_policy, petsird.CoincidencePolicy.REJECT_HIGHER_MULTIPLES)
        np.testing.assert_array_equal(information.event_energy_bin_edges[0].edges, [350, 650])
        self.assertAlmostEqual(information.tof_resolution[0][0], 28 * 0.299792458 / 2, places=4)
        self.assertEqual(information.tof_bin_edges[0][0].number_of_bins(), 641)
        if is_0_9(petsird):
            self.assertEqual(exam.protocol, "a <point> & more")
            self.assertEqual(exam.subject.id, "mouse <7>")
        else:
            self.assertEqual(exam.modality, "PT")
            self.assertEqual(exam.patient.patient_id, "mouse <7>")
            (of,) = exam.radiopharmaceuticals
            code = of.radionuclide_code_sequence
            said = (code.code_meaning, code.code_value, code.coding_scheme_designator)
            self.assertEqual(said, ("F-18", "77004003", "SCT"))
            for when in (of.radiopharmaceutical_start_date_time, of.radiopharmaceutical_stop_date_time):
                self.assertAlmostEqual(when.to_datetime().timestamp(), self.run_.start.timestamp(), places=3)
            material = information.scanner_geometry.replicated_modules[0].object.detecting_elements.object.material_id
            self.assertEqual([m.id for m in information.bulk_materials], [material])
            self.assertIn("material of the crystals: not known", self.err)
            self.assertEqual(information.collimator_type, "NONE")
        started = exam.start_of_acquisition.to_datetime()
        self.assertAlmostEqual(started.timestamp(), self.run_.start.timestamp(), places=3)

    def test_time_blocks_follow_each_other_and_end_with_an_empty_one(self):
        whole = self.intervals[:-1]
        self.assertEqual(whole, [(ms, ms + 1) for ms in range(len(whole))])
        self.assertGreaterEqual(len(whole), self.run_.duration_s * 1e3)
        self.assertEqual(self.intervals[-1], (len(whole), len(whole)))
        self.assertLess(self.prompts[:, 0].max(), len(whole))

    def test_energies_in_bins_wide_tof_bins_and_blocks(self):
        path = support.scratch() / "binned.petsird"
        options = ("--energy-bins", 3, "--tof-bin-ticks", 5, "--block-ms", 70, "--no-delayeds", "--check")
        status, _, said = main(self.run_.path, path, *options)
        self.assertEqual(status, 0, said)
        header, intervals, prompts, delayeds = read(path)
        self.assertFalse(has_delayeds(header.scanner))
        self.assertEqual(len(delayeds), 0)
        self.assertIn("delayed coincidences: left out", said)
        lengths = np.diff(intervals[:-1], axis=1).ravel().tolist()
        self.assertEqual(set(lengths[:-1]), {70})
        self.assertEqual(sum(lengths), len(self.intervals) - 1)  # the last block ends with the run
        records = self.records[self.records["kind"] == petacq.PROMPT]
        elements = petsird_events.bins_of(self.run_, tool.DEFAULTS).element
        swapped = elements[records["crystal_a"]] < elements[records["crystal_b"]]
        first = np.where(swapped, records["energy_b"], records["energy_a"])
        second = np.where(swapped, records["energy_a"], records["energy_b"])
        for column, energy in ((2, first), (3, second)):
            lower = np.array([350, 450, 550])[prompts[:, column] % 3]
            self.assertTrue(((energy >= lower) & (energy <= lower + 100)).all())
            self.assertGreater(len(set(prompts[:, column] % 3)), 1)
        edges = header.scanner.tof_bin_edges[0][0].edges
        value = np.where(swapped, 1, -1) * records["dt"].astype(float) * self.run_.scanner.tick_ps * 0.299792458 / 2
        self.assertTrue(
            (edges[prompts[:, 4]] <= value + 1e-3).all() and (value - 1e-3 <= edges[prompts[:, 4] + 1]).all()
        )
        np.testing.assert_allclose(edges, -edges[::-1])

    def test_without_tof_there_is_one_bin_the_window(self):
        path = support.scratch() / "no-tof.petsird"
        self.assertEqual(main(self.run_.path, path, "--tof-bin-ticks", 0, "--check")[0], 0)
        header, _, prompts, _ = read(path)
        self.assertEqual(header.scanner.tof_bin_edges[0][0].number_of_bins(), 1)
        self.assertEqual(set(prompts[:, 4]), {0})

    def test_every_byte_is_the_one_that_the_package_writes(self):
        with open(self.path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
            header, blocks = reader.read_header(), list(reader.read_time_blocks())
        again = io.BytesIO()
        with petsird.BinaryPETSIRDWriter(again) as writer:
            writer.write_header(header)
            writer.write_time_blocks(block for block in blocks)
        self.assertEqual(again.getvalue(), self.path.read_bytes())

    def test_a_file_that_is_there_is_left_alone(self):
        before = self.path.read_bytes()
        status, _, said = main(self.run_.path, self.path)
        self.assertEqual(status, 74)
        self.assertIn("exists", said)
        self.assertEqual(self.path.read_bytes(), before)
        self.assertEqual(list(self.path.parent.glob("*.partial*")), [])

    def test_what_cannot_be_converted(self):
        out = support.scratch() / "none.petsird"
        self.assertEqual(main(support.scratch() / "none", out)[0], 65)
        self.assertEqual(main(self.run_.path)[0], 64)
        self.assertEqual(main(self.run_.path, out, "--block-ms", 0)[0], 64)
        self.assertEqual(main(self.run_.path, out, "--signal", "3=BREATH")[0], 64)
        self.assertEqual(main(self.run_.path, support.scratch() / "no" / "where")[0], 74)
        damaged = support.scratch() / "damaged-run"
        shutil.copytree(self.run_.path, damaged)
        with open(damaged / "coincidences.plm", "r+b") as file:
            file.seek(100_000)
            byte = file.read(1)[0]
            file.seek(100_000)
            file.write(bytes([byte ^ 4]))
        status, _, said = main(damaged, out)
        self.assertEqual(status, 65)
        self.assertIn("damaged", said)
        document = json.loads((damaged / "run.json").read_text())
        shutil.copy(self.run_.path / "coincidences.plm", damaged)
        document["scanner"]["geometry"] |= {"modules": {"x": 1, "y": 2, "z": 1}, "bdm_count": 12}
        document["scanner"].pop("sources", None)
        (damaged / "run.json").write_text(json.dumps(document))
        status, _, said = main(damaged, out)
        self.assertEqual(status, 65)
        self.assertIn("recorded with 2880 crystals, the scanner small has 1440", said)
        self.assertFalse(out.exists())

    def test_a_run_that_was_cut_is_converted_once_it_is_recovered(self):
        cut = support.scratch() / "cut-run"
        shutil.copytree(self.run_.path, cut)
        (cut / "coincidences.plm").write_bytes((self.run_.path / "coincidences.plm").read_bytes()[:200_000])
        path = support.scratch() / "cut.petsird"
        status, _, said = main(cut, path)
        self.assertEqual(status, 65)
        self.assertIn("petlm recover", said)
        self.assertFalse(path.exists())
        with self.assertWarns(petacq.IncompleteWarning):
            there = len(petacq.open_run(cut).coincidences)
        recovered = support.scratch() / "recovered-run"
        support.call("petlm", "recover", cut, "-o", recovered)
        status, _, said = main(recovered, path, "--check")
        self.assertEqual(status, 0, said)
        _, _, prompts, delayeds = read(path)
        self.assertEqual(len(prompts) + len(delayeds), there)
        self.assertGreater(there, 1000)

    def test_what_the_file_begins_with_is_the_schema_of_the_package(self):
        """Of each version that petlm writes."""
        version = optional.version("petsird")
        folder = support.SOURCE / "tools" / "petlm" / "export" / "petsird"
        schema = (folder / f"schema-{version}.json").read_text(encoding="utf-8").strip()
        self.assertEqual(schema, petsird.protocols.PETSIRDWriterBase.schema)

    def test_petlm_that_is_not_there(self):
        status, _, said = main(self.run_.path, support.scratch() / "no.petsird", "--petlm", "/no/petlm")
        self.assertEqual(status, 74)
        self.assertIn("/no/petlm", said)

    def test_compare_finds_a_difference(self):
        other = support.scratch() / "other-run"
        shutil.copytree(self.run_.path, other)
        records = self.records.copy()
        records["dt"][500] += 1
        coverage = self.run_.coincidences.description["coverage"]
        file = support.listmode(records.tobytes(), [len(records)], coverage=coverage)
        (other / "coincidences.plm").write_bytes(file)
        options = tool.Options(tof_resolution_ps=28)
        self.assertEqual(compare(self.run_, self.path, options).prompts, len(self.prompts))
        with self.assertRaisesRegex(petacq.PetacqError, "events of"):
            compare(petacq.open_run(other), self.path, options)
        with self.assertRaisesRegex(petacq.PetacqError, "header"):
            compare(self.run_, self.path)

    def test_the_worked_example_finds_the_source(self):
        page = (support.SOURCE / "docs" / "reference" / "formats" / "petsird.md").read_text(encoding="utf-8")
        (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        done = subprocess.run(
            [sys.executable, "-c", code, str(self.path)], capture_output=True, text=True, cwd=support.scratch()
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{len(self.prompts)} prompts", done.stdout)
        image = np.load(support.scratch() / "image.npy")
        hottest = np.array(np.unravel_index(image.argmax(), image.shape)) - 19.5
        np.testing.assert_allclose(hottest, support.SOURCE_POINT_MM, atol=1.5)

    def test_as_a_program(self):
        done = subprocess.run(
            [sys.executable, "-m", "petacq.petsird", "--help"],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(support.SOURCE / "tools" / "python" / "src")},
        )
        self.assertEqual(done.returncode, 0)
        self.assertIn("--tof-bin-ticks", done.stdout)


if __name__ == "__main__":
    unittest.main()
