"""Signals, bed positions, singles and dead time in PETSIRD files of made-up runs, read back by the official package."""

import json
import unittest

import numpy as np
import support

import petacq
from petacq import optional, petsird_events
from petacq import petsird as tool
from petacq.layout import COINCIDENCE, TAG
from petacq.petsird_check import compare
from petacq.petsird_header import is_0_9

try:
    petsird = optional.petsird_package()
except petacq.PetacqError as error:
    raise unittest.SkipTest(str(error)) from error
support.programs_in_path()


TICK_PER_MS = 64_000_000


def made_run(name, tags=(), intervals_ms=((0, 30),), start_ticks=0, scanner=None, **operator):
    """A run of some pairs in 30 ms, with tags as (ms, kind, channel, value). It covers these intervals from its start."""
    folder = support.scratch() / name
    folder.mkdir()
    crystals = 1024 if scanner else 2880
    scanner = scanner or json.loads((support.SOURCE / "config" / "examples" / "small.scanner.json").read_text())
    random = np.random.default_rng(7)
    records = np.zeros(5000, COINCIDENCE)
    covered = [(start_ticks + round(b * TICK_PER_MS), start_ticks + round(e * TICK_PER_MS)) for b, e in intervals_ms]
    within = [np.sort(random.integers(b, e, 5000 // len(covered))) for b, e in covered]
    records["time"][-sum(map(len, within)) :] = np.concatenate(within)
    records["time"] = np.maximum(records["time"], covered[0][0])
    records["crystal_a"] = random.integers(0, crystals, len(records))
    records["crystal_b"] = (records["crystal_a"] + random.integers(1, crystals, len(records))) % crystals
    records["dt"] = random.integers(0, 321, len(records))
    records["kind"] = random.integers(0, 4, len(records)) == 0
    records["energy_a"] = records["energy_b"] = 511
    coverage = {
        "version": 1,
        "tick_ps": 15.625,
        "intervals": covered,
        "anchor": {"ticks": start_ticks, "unix_ns": 1_800_000_000_000_000_000},
        "rules": {"coincidence": support.COINCIDENCE_RULES, "energy": None},
    }
    described = {"tick_ps": 15.625, "crystals": crystals, "coverage": coverage}
    file = support.listmode(records.tobytes(), [1, 1500, 3000, 499], **described)
    (folder / "coincidences.plm").write_bytes(file)
    if tags:
        of_run = np.zeros(len(tags), TAG)
        for record, (ms, kind, channel, value) in zip(of_run, tags):
            record["time"], record["kind"], record["channel"] = int(ms * TICK_PER_MS), kind, channel
            record["value"] = value & 0xFFFFFFFF
        (folder / "tags.plm").write_bytes(support.listmode(of_run.tobytes(), [len(tags)], kind=3))
    document = {
        "run_id": "small",
        "state": "complete",
        "scanner": scanner,
        "operator": operator,
    }
    (folder / "run.json").write_text(json.dumps(document))
    return petacq.open_run(folder)


class OtherBlocks(unittest.TestCase):
    def converted(self, run, options=tool.DEFAULTS):
        path = support.scratch() / f"{run.path.name}.petsird"
        path.unlink(missing_ok=True)
        report = tool.convert(run, path, options)
        self.assertEqual(compare(run, path, options).prompts, report.prompts)
        with open(path, "rb") as file, petsird.BinaryPETSIRDReader(file) as reader:
            header = reader.read_header()
            return header, list(reader.read_time_blocks()), report

    def of_type(self, blocks, name):
        kind = getattr(petsird.TimeBlock, name)
        return [block.value for block in blocks if isinstance(block, kind)]

    def test_signals_and_the_bed_come_from_tags(self):
        tags = [
            (2.5, 0, 1, 7),
            (3.2, 1, 2, 1),
            (4, 2, 5, -80_500),
            (6.9, 1, 2, 0),
            (8, 0, 1, 8),
            (9, 2, 5, 12),
            (9, 3, 0, 4),
        ]
        run = made_run("tagged", tags, bed_mm=-80.0)
        options = petsird_events.Options(signal_types=((2, "RESP_TRIGGER"),))
        header, blocks, _ = self.converted(run, options)
        types = petsird.ExternalSignalTypeEnum
        named = {s.id: (s.type, s.description) for s in header.exam.external_signals}
        self.assertEqual(
            sorted(named.values(), key=lambda v: v[1]),
            [
                (types.OTHER, "channel 1: trigger"),
                (types.RESP_TRIGGER, "channel 2: gate, 1 open"),
                (types.OTHER, "channel 5: position, mm"),
            ],
        )
        found = [
            (named[b.signal_id][1][:9], b.time_interval.start, b.time_interval.stop, round(b.signal_values[0], 4))
            for b in self.of_type(blocks, "ExternalSignalTimeBlock")
        ]
        expected = [
            ("channel 1", 2, 2, 7),
            ("channel 2", 3, 6, 1),
            ("channel 5", 4, 9, -80.5),
            ("channel 2", 6, 30, 0),
            ("channel 1", 8, 8, 8),
            ("channel 5", 9, 30, 0.012),
        ]
        self.assertEqual(found, expected)
        bed = self.of_type(blocks, "BedMovementTimeBlock")
        self.assertEqual([(b.time_interval.start, b.time_interval.stop) for b in bed], [(0, 4), (4, 9), (9, 30)])
        for block, z in zip(bed, (-80, -80.5, 0.012)):
            np.testing.assert_allclose(block.transform.matrix, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, z]], rtol=1e-6)
        starts = [block.value.time_interval.start for block in blocks]
        self.assertEqual(starts, sorted(starts))

    def test_a_scanner_that_turns_has_its_angles(self):
        example = support.SOURCE / "config" / "examples" / "scanners" / "two-heads.scanner.json"
        rotation = {"tag_channel": 1, "counts_per_turn": -1000, "count_at_zero": 0}
        scanner = {**json.loads(example.read_text()), "tick_ps": 15.625, "rotation": rotation}
        # By 0.2 turns in 10 ms, then at once to 0.1 turns on the other side of 0.
        tags = [(0, 2, 1, 0), (10, 2, 1, 200), (10.001, 2, 1, 900), (20, 2, 1, 900)]
        run = made_run("turning", tags, scanner=scanner)
        _, blocks, _ = self.converted(run)
        gantry = self.of_type(blocks, "GantryMovementTimeBlock")
        self.assertEqual(self.of_type(blocks, "BedMovementTimeBlock"), [])
        times = [(b.time_interval.start, b.time_interval.stop) for b in gantry]
        self.assertEqual((times[0][0], times[-1][1]), (0, 30))
        self.assertEqual([begin for begin, _ in times[1:]], [end for _, end in times[:-1]])
        self.assertGreater(len(gantry), 5)
        for block, (begin, end) in zip(gantry, times):
            middle = (begin + end) / 2
            angle = 2 * np.pi * (-0.02 * middle if middle < 10 else 0.1)
            (transform,) = [block.transform] if is_0_9(petsird) else block.transforms
            expected = [[np.cos(angle), -np.sin(angle), 0, 0], [np.sin(angle), np.cos(angle), 0, 0], [0, 0, 1, 0]]
            np.testing.assert_allclose(transform.matrix, expected, atol=2e-3)

    def test_a_scanner_that_turns_without_tags_is_refused(self):
        example = support.SOURCE / "config" / "examples" / "scanners" / "two-heads.scanner.json"
        scanner = {**json.loads(example.read_text()), "tick_ps": 15.625, "rotation": {"tag_channel": 1, "counts_per_turn": 1000}}
        run = made_run("unknown", [(0, 2, 2, 0)], scanner=scanner)
        with self.assertRaisesRegex(petacq.PetacqError, "no tag of position on channel 1: the angle"):
            self.converted(run)

    def test_only_events(self):
        run = made_run("only", [(2.5, 0, 1, 7)], bed_mm=3.0)
        header, blocks, report = self.converted(run, petsird_events.Options(only_events=True))
        self.assertEqual(len(self.of_type(blocks, "EventTimeBlock")), len(blocks))
        self.assertEqual(header.exam.external_signals, [])
        self.assertIn("signals", " ".join(report.not_held))

    def test_two_channels_with_positions_need_a_choice(self):
        run = made_run("two", [(1, 2, 4, 1000), (2, 2, 5, 2000)])
        _, blocks, report = self.converted(run)
        self.assertEqual(self.of_type(blocks, "BedMovementTimeBlock"), [])
        self.assertIn("--bed-channel", " ".join(report.not_held))
        _, blocks, _ = self.converted(run, petsird_events.Options(bed_channel=5))
        (bed,) = self.of_type(blocks, "BedMovementTimeBlock")
        self.assertEqual(bed.transform.matrix[2, 3], 2)
        with self.assertRaisesRegex(petacq.PetacqError, "no tags with a position"):
            self.converted(run, petsird_events.Options(bed_channel=3))

    def test_singles_and_dead_time_in_two_energy_bins(self):
        run = made_run("seconds")
        self.assertEqual(self.of_type(self.converted(run)[1], "SinglesHistogramTimeBlock"), [])
        run = self.with_seconds(run, self.seconds((0, 10, 20, 30)))
        header, blocks, _ = self.converted(run, petsird_events.Options(energy_bins=2))
        self.assertEqual(header.scanner.singles_histogram_level, petsird.SinglesHistogramLevelType.ALL)
        elements = petsird_events.bins_of(run, tool.DEFAULTS).element
        histograms = self.of_type(blocks, "SinglesHistogramTimeBlock")
        dead_time = self.of_type(blocks, "DeadTimeTimeBlock")
        self.assertEqual((len(histograms), len(dead_time)), (3, 3))
        for second in range(3):
            np.testing.assert_array_equal(self.counts(histograms[second])[elements], 10 * np.arange(2880))
            (fractions,) = dead_time[second].alive_time_fractions.singles_alive_time_fractions
            alive = 1 - run.scanner.bdm(np.arange(2880)) / 100
            for energy in (0, 1):
                np.testing.assert_allclose(fractions[2 * elements + energy], alive, rtol=1e-6)
            self.assertEqual(histograms[second].time_interval.start, 10 * second)

    def seconds(self, edges_ms, origin_ticks=0):
        """Seconds between these edges; the singles of each crystal are its length in ms times the number of the crystal."""
        names = (("start", "<u8"), ("length", "<u8"), ("module_dead_time", "<f8", 24), ("crystal_unpaired", "<u4", 2880))
        records = np.zeros(len(edges_ms) - 1, np.dtype([*names, ("crystal_grouped", "<u4", 2880)]))
        edges = np.array([origin_ticks + round(e * TICK_PER_MS) for e in edges_ms])
        records["start"], records["length"] = edges[:-1], np.diff(edges)
        ms = np.diff(edges_ms)
        records["crystal_grouped"] = np.round(ms[:, None] * np.arange(2880))
        records["module_dead_time"] = records["length"][:, None] * np.arange(24) / 100
        return records

    def with_seconds(self, run, records):
        """The run, with these records."""
        (run.path / "seconds.plm").write_bytes(support.seconds_file(records))
        return petacq.open_run(run.path)

    def test_the_seconds_of_a_run(self):
        run = made_run("of-run")
        records = self.seconds((0, 10, 20, 30))
        records["crystal_unpaired"] = [[5], [6], [7]]
        records["module_dead_time"][0] = np.nan
        records["module_dead_time"][1, 4] = np.nan
        run = self.with_seconds(run, records)
        _, blocks, report = self.converted(run)
        histograms = self.of_type(blocks, "SinglesHistogramTimeBlock")
        thirds = [(0, 10), (10, 20), (20, 30)]
        self.assertEqual([(h.time_interval.start, h.time_interval.stop) for h in histograms], thirds)
        elements = petsird_events.bins_of(run, tool.DEFAULTS).element
        for k, histogram in enumerate(histograms):
            np.testing.assert_array_equal(self.counts(histogram)[elements], 10 * np.arange(2880) + 5 + k)
        dead_time = self.of_type(blocks, "DeadTimeTimeBlock")
        self.assertEqual([(d.time_interval.start, d.time_interval.stop) for d in dead_time], thirds)
        self.assertIn("not known in 1 of 3 seconds", " ".join(report.not_held))
        bdm = run.scanner.bdm(np.arange(2880))
        for block, expected in zip(dead_time, (1, np.where(bdm == 4, 1, 1 - bdm / 100), 1 - bdm / 100)):
            (fractions,) = block.alive_time_fractions.singles_alive_time_fractions
            np.testing.assert_allclose(fractions[elements], expected + 0 * bdm, rtol=1e-6)
            if not is_0_9(petsird):
                ((pairs,),) = block.alive_time_fractions.module_pair_alive_time_fractions
                self.assertEqual([len(of_module) for of_module in pairs], list(range(1, 25)))
                self.assertEqual({float(f) for of_module in pairs for of_pair in of_module for f in of_pair}, {1.0})

    def counts(self, histogram):
        name = "singles_histograms" if is_0_9(petsird) else "singles_per_detection_bin_histogram"
        return np.array(getattr(histogram, name)[0])

    def test_blocks_cover_the_events_of_an_odd_interval_at_the_right_rates(self):
        start = 3_600_000 * TICK_PER_MS + 12_345_678  # an hour after the boards began to count, 0.19 ms after a second
        run = made_run("odd", [(3_600_003, 1, 2, 1)], ((0, 2310.9),), start, bed_mm=1.0)
        run = self.with_seconds(run, self.seconds((-0.2, 999.8, 1999.8, 2300, 2310.9), start))
        for block_ms in (1, 70):
            _, blocks, _ = self.converted(run, petsird_events.Options(block_ms=block_ms))
            events = self.of_type(blocks, "EventTimeBlock")[:-1]
            times = [(block.time_interval.start, block.time_interval.stop) for block in events]
            self.assertEqual((times[0][0], times[-1][1]), (0, 2311))
            self.assertEqual([end for _, end in times[:-1]], [begin for begin, _ in times[1:]])
            for name in ("SinglesHistogramTimeBlock", "DeadTimeTimeBlock"):
                others = self.of_type(blocks, name)
                times = [(block.time_interval.start, block.time_interval.stop) for block in others]
                self.assertEqual(times, [(0, 999), (999, 2311)])
            for block in self.of_type(blocks, "SinglesHistogramTimeBlock"):
                ms = block.time_interval.stop - block.time_interval.start
                elements = petsird_events.bins_of(run, tool.DEFAULTS).element
                rates = self.counts(block)[elements][1000:] / ms / np.arange(1000, 2880)
                np.testing.assert_allclose(rates, 1, rtol=3e-3)
            self.assertEqual(max(b.time_interval.stop for b in self.of_type(blocks, "BedMovementTimeBlock")), 2311)

    def test_there_are_no_blocks_where_the_run_covers_nothing(self):
        run = made_run("gap", intervals_ms=((0, 10), (100_000, 100_010.5)))
        run = self.with_seconds(run, self.seconds((0, 10)))
        _, blocks, report = self.converted(run)
        events = self.of_type(blocks, "EventTimeBlock")[:-1]
        covered = [*range(10), *range(100_000, 100_011)]
        self.assertEqual([block.time_interval.start for block in events], covered)
        # The seconds of the second interval are missing: part of the time without singles would look like a rate of 0.
        self.assertEqual(self.of_type(blocks, "SinglesHistogramTimeBlock"), [])
        self.assertIn("the run lacks some of its seconds", " ".join(report.not_held))

    def test_a_run_without_records_has_one_empty_block(self):
        run = made_run("nothing")
        coverage = {**run.coincidences.description["coverage"], "intervals": []}
        (run.path / "coincidences.plm").write_bytes(support.listmode(b"", [], coverage=coverage))
        _, blocks, _ = self.converted(petacq.open_run(run.path))
        (block,) = self.of_type(blocks, "EventTimeBlock")
        self.assertEqual((block.time_interval.start, block.time_interval.stop), (0, 0))


if __name__ == "__main__":
    unittest.main()
