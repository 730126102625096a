"""petacq-import: PETSIRD files of our own export, and files of GATE, as runs that ``petlm import`` writes."""

import contextlib
import importlib.metadata
import io
import json
import unittest
from pathlib import Path
from typing import Any

import numpy as np
import support

import petacq
from petacq import optional
from petacq.coverage import UNKNOWN_DT, UNKNOWN_ENERGIES
from petacq.foreign.command import main
from petacq.layout import COINCIDENCE

TICK_PS = 10.0


def run(*arguments: object) -> tuple[int, str]:
    """Exit status and standard error."""
    text = io.StringIO()
    with contextlib.redirect_stderr(text), contextlib.redirect_stdout(io.StringIO()):
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as stop:
            status = int(stop.code or 0)
    return status, text.getvalue()


def pairs_in(folder: Path) -> Any:
    return np.concatenate(list(petacq.open_run(folder).coincidences.blocks()))


def scanner_file() -> Path:
    file = support.scratch() / "turned.scanner.json"
    file.write_text(json.dumps({**support.TURNED, "tick_ps": TICK_PS}))
    return file


def volumes(scanner: petacq.Scanner, crystals: Any) -> Any:
    """A place within each crystal that differs from record to record."""
    random = np.random.default_rng(5)
    sizes, outward = scanner.sizes_mm(), scanner.outward()
    depth = random.uniform(0.1, 0.9, len(crystals)) * sizes[crystals, 0]
    return scanner.positions_mm()[crystals] + depth[:, None] * outward[crystals]


class Gate(unittest.TestCase):
    def setUp(self) -> None:
        try:
            import h5py
        except ImportError as error:
            raise unittest.SkipTest("h5py is not installed") from error
        self.h5py = h5py
        self.scanner = petacq.Scanner.load(scanner_file())
        random = np.random.default_rng(1)
        self.count = 400
        self.crystals = random.integers(0, self.scanner.crystal_count, (2, self.count))
        self.ticks = np.sort(random.integers(0, 1 << 40, self.count))
        self.later = random.integers(-200, 200, self.count)
        self.energies = random.integers(350, 650, (2, self.count)) / 1000

    def columns_9(self, suffixes: tuple[str, ...]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for k, suffix in enumerate(suffixes):
            places = volumes(self.scanner, self.crystals[k])
            columns["time" + suffix] = (self.ticks + k * self.later) * TICK_PS * 1e-12
            columns["energy" + suffix] = self.energies[k].astype(np.float32)
            for axis, name in enumerate(("globalPosX", "globalPosY", "globalPosZ")):
                columns[name + suffix] = places[:, axis].astype(np.float32)
            columns["rsectorID" + suffix] = self.crystals[k] // 100
            columns["crystalID" + suffix] = self.crystals[k] % 100
        return columns

    def columns_10(self, suffixes: tuple[str, ...]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for k, suffix in enumerate(suffixes):
            places = volumes(self.scanner, self.crystals[k])
            columns["GlobalTime" + suffix] = (self.ticks + k * self.later) * TICK_PS * 1e-3
            columns["TotalEnergyDeposit" + suffix] = self.energies[k]
            for axis, name in enumerate(("PostPosition_X", "PostPosition_Y", "PostPosition_Z")):
                columns[name + suffix] = places[:, axis]
            columns["PreStepUniqueVolumeID" + suffix] = np.array([f"0_0_{c}" for c in self.crystals[k]], "S")
        return columns

    def hdf5(self, name: str, tables: dict[str, dict[str, Any]]) -> Path:
        path = support.scratch() / name
        with self.h5py.File(path, "w") as file:
            for table, columns in tables.items():
                for column, values in columns.items():
                    file[f"{table}/{column}"] = values
        return path

    def check_singles(self, path: Path, *options: object) -> None:
        output = support.scratch() / (path.name + "-singles")
        status, text = run("--gate", path, "--scanner", scanner_file(), "-o", output, "--petlm", support.program("petlm"), *options)
        self.assertEqual(status, 0, text)
        singles = np.concatenate(list(petacq.open_run(output).singles.blocks()))
        expected = sorted(zip(self.ticks.tolist(), self.crystals[0].tolist()))
        self.assertEqual(list(zip(singles["time"].tolist(), singles["crystal"].tolist())), expected)
        self.assertTrue(np.allclose(np.sort(singles["energy"]), np.sort(self.energies[0] * 1000), rtol=1e-6))

    def check_pairs(self, path: Path, *options: object) -> None:
        output = support.scratch() / (path.name + "-pairs")
        status, text = run("--gate", path, "--scanner", scanner_file(), "-o", output, "--petlm", support.program("petlm"), *options)
        self.assertEqual(status, 0, text)
        records = pairs_in(output)
        other = self.ticks + self.later
        expected = sorted(
            (min(a, b), abs(b - a), *((c, d) if (a, c) <= (b, d) else (d, c)))
            for a, b, c, d in zip(self.ticks.tolist(), other.tolist(), *self.crystals.tolist())
        )
        found = sorted(zip(*(records[name].tolist() for name in ("time", "dt", "crystal_a", "crystal_b"))))
        self.assertEqual(found, expected)
        support.call("petlm", "verify", output)

    def test_hdf5(self) -> None:
        for version, columns in ((9, self.columns_9), (10, self.columns_10)):
            with self.subTest(version=version):
                singles, pairs = columns(("",)), columns(("1", "2"))
                self.check_singles(self.hdf5(f"singles-{version}.h5", {"Singles": singles}))
                both = self.hdf5(f"both-{version}.h5", {"Singles": singles, "Coincidences": pairs})
                self.check_pairs(both, "--tree", "Coincidences")
                status, text = run("--gate", both, "--scanner", scanner_file(), "-o", support.scratch() / "none.h5")
                self.assertEqual(status, 65)
                self.assertIn("expected --tree with one of", text)

    def test_imported_format(self) -> None:
        for version, columns in (("9", self.columns_9), ("10", self.columns_10)):
            with self.subTest(version=version):
                path = self.hdf5(f"named-{version}.h5", {"Singles": columns(("",))})
                self.check_singles(path)
                output = support.scratch() / f"named-{version}.h5-singles"
                expected = {"format": "gate", "version": version, "from": [path.name]}
                self.assertEqual(json.loads((output / "run.json").read_text())["imported"], expected)
                # In two steps, too.
                made = support.scratch() / f"made-{version}.h5"
                status, text = run("--gate", path, "--scanner", scanner_file(), "-o", made)
                self.assertEqual(status, 0, text)
                support.call("petlm", "import", "--format", "hdf5", made, "-o", support.scratch() / f"two-steps-{version}")
                found = json.loads((support.scratch() / f"two-steps-{version}" / "run.json").read_text())["imported"]
                self.assertEqual(found, expected)

    def test_declared(self) -> None:
        path = self.hdf5("declared.h5", {"prompts": self.columns_9(("1", "2"))})
        # Of 2^40 ticks of 10 ps, at most 11 s.
        self.check_pairs(path, "--window-ns", 2, "--delay-ns", 500, "--duration-s", 11, "--start-utc", "2026-11-20T18:45:00Z",
                         "--lower-kev", 350, "--upper-kev", 650, "--max-multiplicity", 4, "--delayed-rule", "delayed_window",
                         "--nuclide", "F-18", "--activity-mbq", 10, "--assay", "2026-11-20T18:00:00Z")
        imported = petacq.open_run(support.scratch() / "declared.h5-pairs")
        coverage = imported.coverage
        self.assertEqual((coverage.coincidence["window_ticks"], coverage.coincidence["delay_ticks"]), (200, 50_000))
        self.assertEqual((coverage.coincidence["max_multiplicity"], coverage.coincidence["delayeds"]), (4, "delayed_window"))
        self.assertEqual((imported.operator["nuclide"], imported.operator["activity_MBq"]), ("F-18", 10))
        self.assertEqual((coverage.energy["lower_keV"], coverage.energy["upper_keV"]), (350, 650))
        self.assertAlmostEqual(coverage.duration_s, 11)
        self.assertEqual(str(imported.start), "2026-11-20 18:45:00+00:00")
        said = support.call("petlm", "info", support.scratch() / "declared.h5-pairs")
        self.assertIn("said at the import: not in the file", said)
        for options, status, expected in (
            (("--window-ns", "1"), 1, "more than the declared window; expected at most 100"),
            (("--duration-s", "1e-6"), 1, "outside of the times that --start-ticks and --duration-s declare"),
            (("--policy", "None"), 64, "--policy"),
        ):
            with self.subTest(options=options):
                none = support.scratch() / "declared-none"
                program = support.program("petlm")
                status_found, _ = run("--gate", path, "--scanner", scanner_file(), "-o", none, "--petlm", program, *options)
                self.assertEqual((status_found, none.exists()), (status, False), expected)

    def test_damaged_hdf5(self) -> None:
        singles = self.columns_9(("",))
        self.check_damaged(self.hdf5("whole.h5", {"Singles": singles}))
        singles["time"] = singles["time"][:-1]
        path = self.hdf5("shorter.h5", {"Singles": singles})
        status, text = run("--gate", path, "--scanner", scanner_file(), "-o", support.scratch() / "no.h5")
        self.assertEqual(status, 65, text)
        self.assertIn("shorter.h5: expected columns of one length, found {'time': 399, 'energy': 400", text)

    def test_compound_values(self) -> None:
        singles = self.columns_9(("",))
        rows = np.empty(self.count, [(name, values.dtype) for name, values in singles.items()])
        for name, values in singles.items():
            rows[name] = values
        path = support.scratch() / "compound.h5"
        with self.h5py.File(path, "w") as file:
            file["Singles"] = rows
        self.check_singles(path)

    def test_root(self) -> None:
        try:
            import uproot
        except ImportError as error:
            raise unittest.SkipTest("uproot is not installed") from error
        path = support.scratch() / "gate.root"
        with uproot.recreate(path) as file:
            for tree, columns in (("Singles", self.columns_9(("",))), ("Coincidences", self.columns_9(("1", "2")))):
                file.mktree(tree, {name: values.dtype for name, values in columns.items()})
                file[tree].extend(columns)
        self.check_singles(path, "--tree", "Singles")
        self.check_pairs(path, "--tree", "Coincidences")
        self.check_damaged(path, "--tree", "Singles")

    def test_rntuple(self) -> None:
        try:
            import uproot
        except ImportError as error:
            raise unittest.SkipTest("uproot is not installed") from error
        path = support.scratch() / "gate-10.root"
        columns = self.columns_10(("1", "2"))
        for name in ("PreStepUniqueVolumeID1", "PreStepUniqueVolumeID2"):
            columns[name] = columns[name].astype(str)
        with uproot.recreate(path) as file:
            if not hasattr(file, "mkrntuple"):
                raise unittest.SkipTest(f"uproot {uproot.__version__} writes no RNTuple")
            file.mkrntuple("Coincidences", columns)
        self.check_pairs(path)
        self.check_damaged(path)

    def check_damaged(self, path: Path, *options: object) -> None:
        """Cut off, or with zeros from there on."""
        content = path.read_bytes()
        for share, zeros in ((0.1, False), (0.5, False), (0.9, False), (0.99, False), (0.1, True), (0.5, True)):
            with self.subTest(path.name, share=share, zeros=zeros):
                damaged = support.scratch() / f"damaged-{path.name}"
                kept = content[: int(share * len(content))]
                damaged.write_bytes(kept.ljust(len(content), b"\0") if zeros else kept)
                status, text = run("--gate", damaged, "--scanner", scanner_file(), "-o", support.scratch() / "damaged-out.h5", *options)
                self.assertEqual(status, 65, text)
                self.assertIn(f"petacq-import: {damaged}: expected ", text)

    def test_delayeds(self) -> None:
        self.later = np.abs(self.later)
        prompts = self.columns_9(("1", "2"))
        delayeds = {name: values.copy() for name, values in prompts.items()}
        swapped = np.arange(self.count) % 2 == 0  # the second photon of the file is the earlier one
        for name in (name for name in prompts if name.endswith("1")):
            delayeds[name[:-1] + "2"] = np.where(swapped, prompts[name], prompts[name[:-1] + "2"])
            delayeds[name] = np.where(swapped, prompts[name[:-1] + "2"], prompts[name])
        delayeds["time1"] += np.where(swapped, 500e-9, 0)
        delayeds["time2"] += np.where(swapped, 0, 500e-9)
        alone = self.hdf5("delayeds.h5", {"delayeds": delayeds})
        both = self.hdf5("with-prompts.h5", {"delayeds": delayeds, "prompts": prompts})
        self.check_pairs(alone, "--delayed", "--delay-ns", 500)
        self.check_pairs(both, "--tree", "delayeds", "--delayed", "--delay-ns", 500)
        self.assertEqual(set(pairs_in(support.scratch() / "with-prompts.h5-pairs")["kind"].tolist()), {1})
        self.check_pairs(both, "--tree", "prompts", "--delayed", "--force")  # their times have no delay

        self.check_pairs(both, "--tree", "prompts", "--force")
        merged = support.scratch() / "merged.plm"
        support.call("petlm", "merge", f"{both}-pairs", f"{alone}-pairs", "-o", merged)
        self.assertIn("(400 prompt, 400 delayed)", support.call("petlm", "verify", merged))

        nearest = np.argsort(self.later)[:1]
        one = {name: values[nearest] for name, values in prompts.items()}
        wider = {name: values[self.later > self.later[nearest]] for name, values in delayeds.items()}
        fewest = self.hdf5("one-prompt.h5", {"delayeds": wider, "prompts": one})
        status, text = run("--gate", fewest, "--scanner", scanner_file(), "-o", support.scratch() / "fewest.h5", "--delayed", "--tree", "delayeds",
                           "--delay-ns", 500)
        self.assertEqual(status, 0, text)

        few = {name: values[:5] for name, values in delayeds.items()}
        other = self.hdf5("few-with-prompts.h5", {"delayeds": few, "prompts": prompts})
        apart = f"{500 + self.later[:5].min() * 0.01:.6g} to {500 + self.later[:5].max() * 0.01:.6g} ns apart"
        for path, options, expected in (
            (alone, (), "the photons of its delayeds are 500.01 to 502 ns apart; expected --delay-ns with the delay of their window"),
            (both, (), "500.01 to 502 ns apart, those of its prompts at most 2 ns; expected --delay-ns"),
            (other, (), f"{apart}, those of its prompts at most"),
            (both, ("--delay-ns", 400), "100.01 to 102 ns apart without the 400 ns of --delay-ns, those of .*; expected --delay-ns"),
        ):
            with self.subTest(path.name, options=options):
                status, text = run("--gate", path, "--scanner", scanner_file(), "-o", support.scratch() / "delay.h5", "--delayed", "--tree",
                                   "delayeds", *options)
                self.assertEqual(status, 65, text)
                self.assertRegex(text, expected)
        singles = self.hdf5("no-pairs.h5", {"singles": self.columns_9(("",))})
        status, text = run("--gate", singles, "--scanner", scanner_file(), "-o", support.scratch() / "delay.h5", "--delayed")
        self.assertEqual((status, "expected coincidences, found singles" in text), (65, True), text)

    def test_refused(self) -> None:
        def refused(path: object, expected: str, status: int = 65, *options: object) -> None:
            found, text = run("--gate", path, "--scanner", scanner_file(), "-o", support.scratch() / "no.h5", *options)
            self.assertEqual((found, expected in text), (status, True), text)

        columns = self.columns_9(("",))
        other = support.scratch() / "text.root"
        other.write_bytes(b"no file of GATE")
        refused(other, "expected a ROOT or HDF5 file")
        refused(support.scratch() / "absent.h5", "absent.h5", 74)
        refused(self.hdf5("empty.h5", {}), "empty.h5: expected a tree, or a group with data sets, found none")
        refused(self.hdf5("outside.h5", {"s": {**columns, "globalPosX": columns["globalPosX"] + 500}}), "is in no crystal")
        refused(self.hdf5("negative.h5", {"s": {**columns, "time": columns["time"] - 1e9}}), "expected times")
        refused(self.hdf5("nan.h5", {"s": {**columns, "energy": columns["energy"] * np.nan}}), "finite energies")
        columns.pop("crystalID"), columns.pop("rsectorID")
        refused(self.hdf5("volumes.h5", {"s": columns}), "which tell the crystal")
        columns.pop("time")
        refused(self.hdf5("columns.h5", {"s": columns}), "expected the columns", 65, "--tree", "s")


class GateVolumes(unittest.TestCase):
    """Volumes of simulated scanners that are not the one described."""

    def setUp(self) -> None:
        try:
            import h5py
        except ImportError as error:
            raise unittest.SkipTest("h5py is not installed") from error
        self.h5py = h5py
        self.described = json.loads((support.SOURCE / "config/examples/small.scanner.json").read_text())

    def imported(self, name: str, simulated: Any, turn_rad: float = 0.0, only: Any = None, volume_of: Any = None) -> tuple[int, str]:
        """Singles of crystals of ``simulated``, turned about the axis, taken for those of the small scanner."""
        scanner = petacq.Scanner.from_json(simulated)
        random = np.random.default_rng(7)
        chosen = np.arange(scanner.crystal_count) if only is None else np.flatnonzero(only(scanner))
        crystals = random.permutation(np.repeat(chosen, 20))
        within = random.uniform(-0.5, 0.5, (len(crystals), 3)) + (0.5, 0, 0)
        axes = np.stack([scanner.outward()[crystals], np.zeros((len(crystals), 3)), np.zeros((len(crystals), 3))], axis=1)
        axes[:, 1, 0], axes[:, 1, 1], axes[:, 2, 2] = -axes[:, 0, 1], axes[:, 0, 0], 1
        places = scanner.positions_mm()[crystals] + np.einsum("ri,rix->rx", within * scanner.sizes_mm()[crystals], axes)
        c, s = np.cos(turn_rad), np.sin(turn_rad)
        places[:, 0], places[:, 1] = c * places[:, 0] - s * places[:, 1], s * places[:, 0] + c * places[:, 1]
        path = support.scratch() / f"{name}.h5"
        with self.h5py.File(path, "w") as file:
            file["s/time"] = np.arange(len(crystals)) * 1e-6
            file["s/energy"] = np.full(len(crystals), 0.511)
            for axis, column in enumerate(("globalPosX", "globalPosY", "globalPosZ")):
                file[f"s/{column}"] = places[:, axis].astype(np.float32)
            file["s/crystalID"] = crystals if volume_of is None else volume_of(scanner, crystals)
        (support.scratch() / "small.scanner.json").write_text(json.dumps(self.described))
        self.output = support.scratch() / f"{name}-imported.h5"
        self.crystals = crystals
        return run("--gate", path, "--scanner", support.scratch() / "small.scanner.json", "-o", self.output)

    def changed(self, **dimensions: float) -> dict[str, Any]:
        return {**self.described, "dimensions": {**self.described["dimensions"], **dimensions}}

    def test_same_scanner(self) -> None:
        status, text = self.imported("same", self.described)
        self.assertEqual(status, 0, text)
        with self.h5py.File(self.output) as file:
            self.assertEqual(file["singles/crystal"][:].tolist(), self.crystals.tolist())

    def test_turned_ring(self) -> None:
        pitch = self.described["dimensions"]["crystal_pitch_y_mm"] / self.described["dimensions"]["ring_radius_mm"]
        status, text = self.imported("turned", self.described, 0.6 * pitch)
        self.assertEqual(status, 65, text)
        self.assertIn("expected the description of the simulated scanner", text)
        # Without the ends of the blocks each volume lies in the box of a neighbour.
        status, text = self.imported("inner", self.described, 0.6 * pitch,
                                     lambda s: np.isin(s.in_ring(np.arange(s.crystal_count)) % s.crystals_y, (1, 2)))
        self.assertEqual(status, 65, text)
        self.assertRegex(text, "volumes are 0.[23]. of a crystal from the middle of theirs, along y; expected the description")

    def test_other_pitch(self) -> None:
        dimensions = self.described["dimensions"]
        for name in ("crystal_pitch_y_mm", "crystal_pitch_z_mm"):
            for factor in (1.5 / 1.7, 1.7 / 1.5):
                with self.subTest(name, factor=factor):
                    status, text = self.imported(f"{name}-{factor:.2f}", self.changed(**{name: dimensions[name] * factor}))
                    self.assertEqual(status, 65, text)
                    self.assertIn("expected the description of the simulated scanner", text)

    def test_two_volumes_in_a_crystal(self) -> None:
        finer = json.loads(json.dumps(self.described))
        finer["geometry"]["crystals"]["z"] *= 2
        finer["dimensions"]["crystal_pitch_z_mm"] /= 2
        status, text = self.imported("finer", finer)
        self.assertEqual(status, 65, text)
        self.assertRegex(text, "volumes [0-9]+ and [0-9]+, at .* are both in crystal [0-9]+; expected the description")

    def test_a_volume_of_many_crystals(self) -> None:
        status, text = self.imported("blocks", self.described, volume_of=lambda s, c: s.bdm(c) * s.du_count + s.du(c))
        self.assertEqual(status, 65, text)
        self.assertRegex(text, "records of a volume are [1-9].* crystals from the middle of theirs")


class Petsird(unittest.TestCase):
    def setUp(self) -> None:
        try:
            import h5py  # noqa: F401

            optional.petsird_package()
        except (ImportError, petacq.PetacqError) as error:
            raise unittest.SkipTest(str(error)) from error

    def test_unknown_times_and_energies(self) -> None:
        from petacq import petsird as tool

        table = support.scratch() / "bare.csv"
        crystals = petacq.Scanner.load(scanner_file()).crystal_count
        table.write_text("t,a,b\n" + "".join(f"{1000 + 50 * k},{k},{crystals - 1 - k}\n" for k in range(20)))
        bare = support.scratch() / "bare"
        support.call("petlm", "import", "--format", "csv", table, "--columns", "time=t,crystal_a=a,crystal_b=b", "--scanner",
                     scanner_file(), "--window-ticks", 300, "--duration-s", 0.002, "--nuclide", "Fe-52", "--half-life-s", 29790,
                     "--branching-ratio", 0.55, "-o", bare)
        file = support.scratch() / "bare.petsird"
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            status = tool.main([str(bare), str(file), "--check", "--tof-bin-ticks", "1", "--energy-bins", "4",
                                "--petlm", str(support.program("petlm"))])
        self.assertEqual(status, 0, said.getvalue())
        self.assertIn("time differences: not known, one TOF bin has all", said.getvalue())
        self.assertIn("energies: not known of any photon", said.getvalue())
        output = support.scratch() / "bare-again"
        status, text = run("--petsird", file, "--scanner", scanner_file(), "-o", output, "--petlm", support.program("petlm"))
        self.assertEqual(status, 0, text)
        unknown = petacq.open_run(output).coverage.unknown
        self.assertIn(UNKNOWN_DT, unknown)
        self.assertIn(UNKNOWN_ENERGIES, unknown)
        if not importlib.metadata.version("petsird").startswith("0.9"):
            # The format has its name alone, and the table lacks it.
            half_life = "half-life and branching ratio of its nuclide"
            self.assertIn(half_life, unknown)
            said_again = support.scratch() / "bare-said"
            status, text = run("--petsird", file, "--scanner", scanner_file(), "-o", said_again, "--petlm", support.program("petlm"),
                               "--nuclide", "Fe-52", "--half-life-s", 29790, "--branching-ratio", 0.55)
            self.assertEqual(status, 0, text)
            covered = petacq.open_run(said_again).coverage
            self.assertEqual((covered.activity.nuclide, half_life in covered.unknown), ("Fe-52", False))
        found = pairs_in(output)
        self.assertEqual(found["dt"].tolist() + found["energy_a"].tolist() + found["energy_b"].tolist(), [0] * 60)
        with self.assertRaisesRegex(AssertionError, "does not tell the time between the photons"):
            support.call("petlm", "export", "--format", "castor", output, "--tof-resolution-ps", 300, "-o", support.scratch() / "tof")

    def test_round_trip(self) -> None:
        import h5py

        from petacq import petsird as tool

        folder = support.scratch() / "petsird-run"
        folder.mkdir()
        scanner = {**support.TURNED, "tick_ps": TICK_PS}
        crystals = petacq.Scanner.from_json(scanner).crystal_count
        random = np.random.default_rng(3)
        records = np.zeros(500, COINCIDENCE)
        ms = int(1e9 / TICK_PS)
        records["time"] = np.sort(random.integers(0, 30 * ms, len(records)))
        records["crystal_a"] = random.integers(0, crystals, len(records))
        records["crystal_b"] = (records["crystal_a"] + random.integers(1, crystals, len(records))) % crystals
        records["dt"] = random.integers(1, 400, len(records))
        records["kind"] = random.integers(0, 2, len(records))
        records["energy_a"] = records["energy_b"] = 511
        records = np.sort(records, order=("time", "kind", "crystal_a", "dt", "crystal_b"))
        coverage = {
            "version": 1, "tick_ps": TICK_PS, "intervals": [[0, 30 * ms]], "anchor": {"ticks": 0, "unix_ns": 1_800_000_000_000_000_000},
            "rules": {"coincidence": {**support.COINCIDENCE_RULES, "window_ticks": 400}, "energy": None},
            "activity": {"nuclide": "F-18", "half_life_s": 6584.04, "branching_ratio": 0.9686, "activity_MBq": 8.125,
                         "assay_unix_ns": 1_799_999_000_000_000_000},
        }
        described = {"tick_ps": TICK_PS, "crystals": crystals, "coverage": coverage}
        (folder / "coincidences.plm").write_bytes(support.listmode(records.tobytes(), [len(records)], **described))
        (folder / "run.json").write_text(json.dumps({"run_id": "small", "state": "complete", "scanner": scanner}))
        file = support.scratch() / "run.petsird"
        tool.convert(petacq.open_run(folder), file, petlm=support.program("petlm"))
        (support.scratch() / "petsird.scanner.json").write_text(json.dumps(scanner))
        output = support.scratch() / "from-petsird"
        status, text = run("--petsird", file, "--scanner", support.scratch() / "petsird.scanner.json", "-o", output,
                           "--petlm", support.program("petlm"))
        self.assertEqual(status, 0, text)
        found = pairs_in(output)

        def fields(of: Any) -> list[tuple[int, ...]]:
            return sorted(zip((of["time"] // ms).tolist(), *(of[n].tolist() for n in ("dt", "crystal_a", "crystal_b", "kind"))))

        self.assertEqual(fields(found), fields(records))
        support.call("petlm", "verify", output)
        tool_version = importlib.metadata.version("petsird")
        expected = {"format": "petsird", "version": tool_version, "from": ["run.petsird"]}
        self.assertEqual(json.loads((output / "run.json").read_text())["imported"], expected)
        covered = petacq.open_run(output).coverage
        self.assertEqual(covered.anchor, (0, 1_800_000_000_000_000_000))
        if tool_version.startswith("0.9"):  # it has no place for the source
            self.assertIsNone(covered.activity)
        else:
            self.assertEqual((covered.activity.nuclide, covered.activity.activity_MBq), ("F-18", 8.125))
            self.assertEqual(int(covered.activity.assay.timestamp()), 1_799_999_000)
        self.assertNotIn(UNKNOWN_DT, covered.unknown)
        self.assertIn(UNKNOWN_ENERGIES, covered.unknown)  # of one bin
        self.assertNotIn("the time of day", covered.unknown)
        status, text = run("--petsird", file, "--scanner", support.scratch() / "petsird.scanner.json", "-o", support.scratch() / "other",
                           "--petlm", support.program("petlm"), "--start-utc", "2020-01-01T00:00:00Z")
        self.assertEqual((status, (support.scratch() / "other").exists()), (64, False))
        # A block may have more events than petlm import puts in order.
        made = support.scratch() / "from-petsird.h5"
        status, text = run("--petsird", file, "--scanner", support.scratch() / "petsird.scanner.json", "-o", made)
        self.assertEqual(status, 0, text)
        names = ("time", "kind", "crystal_a", "dt", "crystal_b", "energy_a", "energy_b")
        with h5py.File(made) as of:
            rows = list(zip(*(of[f"coincidences/{name}"][:].tolist() for name in names)))
        self.assertEqual(rows, sorted(rows))
        self.assertEqual(rows, list(zip(*(found[name].tolist() for name in names))))
        # The scanner of the file itself has other numbers, and as many pairs.
        made = support.scratch() / "made"
        status, text = run("--petsird", file, "--tick-ps", TICK_PS, "-o", made, "--petlm", support.program("petlm"))
        self.assertEqual(status, 0, text)
        self.assertEqual(len(pairs_in(made)), len(records))
        broken = support.scratch() / "broken.petsird"
        broken.write_bytes(file.read_bytes()[:-200])
        status, text = run("--petsird", broken, "--tick-ps", TICK_PS, "-o", support.scratch() / "no.h5")
        self.assertEqual(status, 65)
        self.assertIn("expected a sound PETSIRD file", text)


class Usage(unittest.TestCase):
    def test_options(self) -> None:
        for arguments, expected in ((("--gate", "x"), "expected --scanner"), (("--petsird", "x"), "expected --tick-ps"),
                                    (("--petsird", "x", "--tick-ps", "0"), "picoseconds above 0"),
                                    (("--gate", "x", "--scanner", "s", "--delay-ns", "5"), "--delay-ns: expected with --delayed or"),
                                    (("--gate", "x", "--scanner", "s", "--duration-s", "5"), "--duration-s: expected with an output that"),
                                    (("--gate", "x", "--delayed", "--delay-ns", "-5"), "nanoseconds above 0")):
            status, text = run(*arguments, "-o", "y.h5")
            self.assertEqual(status, 64)
            self.assertIn(expected, text)
