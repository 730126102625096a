"""Signals, bed positions, singles and dead time in PETSIRD files of made-up runs, read back by the official package."""

import json
import unittest

import numpy as np
import support

import petacq
from petacq import petsird as tool
from petacq import petsird_blocks, petsird_events
from petacq.layout import COINCIDENCE, TAG
from petacq.petsird_check import compare
from petacq.petsird_header import is_0_9

try:
    petsird = tool.package()
except petacq.PetacqError as error:
    raise unittest.SkipTest(str(error)) from error


def made_run(name, tags=(), **operator):
    """A run of some pairs in 30 ms, with tags as (ms, kind, channel, value)."""
    folder = support.scratch() / name
    folder.mkdir()
    scanner = json.loads((support.SOURCE / "config" / "examples" / "small.scanner.json").read_text())
    random = np.random.default_rng(7)
    tick_per_ms = 64_000_000
    records = np.zeros(5000, COINCIDENCE)
    records["time"] = np.sort(random.integers(0, 30 * tick_per_ms, len(records)))
    records["crystal_a"] = random.integers(0, 2880, len(records))
    records["crystal_b"] = (records["crystal_a"] + random.integers(1, 2880, len(records))) % 2880
    records["dt"] = random.integers(0, 321, len(records))
    records["kind"] = random.integers(0, 4, len(records)) == 0
    records["energy_a"] = records["energy_b"] = 511
    file = support.listmode(records.tobytes(), [1, 1500, 3000, 499], window_ticks=320)
    (folder / "coincidences.plm").write_bytes(file)
    if tags:
        of_run = np.zeros(len(tags), TAG)
        for record, (ms, kind, channel, value) in zip(of_run, tags):
            record["time"], record["kind"], record["channel"] = int(ms * tick_per_ms), kind, channel
            record["value"] = value & 0xFFFFFFFF
        (folder / "tags.plm").write_bytes(support.listmode(of_run.tobytes(), [len(tags)], kind=3))
    document = {
        "run_id": "small",
        "state": "complete",
        "scanner": scanner,
        "start_ticks": 0,
        "stop_ticks": 30 * tick_per_ms,
        "configuration": {"coincidence": {"window_ticks": 320, "delay_ticks": 6400, "window_mode": "single"}},
        "operator": operator,
    }
    (folder / "run.json").write_text(json.dumps(document))
    return petacq.open_run(folder)


class OtherBlocks(unittest.TestCase):
    def converted(self, run, options=tool.DEFAULTS, extras=None):
        path = support.scratch() / f"{run.path.name}.petsird"
        path.unlink(missing_ok=True)
        report = tool.convert(run, path, options, extras=extras)
        self.assertEqual(compare(run, path, options, extras).prompts, report.prompts)
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
            ("channel 2", 6, 31, 0),
            ("channel 1", 8, 8, 8),
            ("channel 5", 9, 31, 0.012),
        ]
        self.assertEqual(found, expected)
        bed = self.of_type(blocks, "BedMovementTimeBlock")
        self.assertEqual([(b.time_interval.start, b.time_interval.stop) for b in bed], [(0, 4), (4, 9), (9, 31)])
        for block, z in zip(bed, (-80, -80.5, 0.012)):
            np.testing.assert_allclose(block.transform.matrix, [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, z]], rtol=1e-6)
        starts = [block.value.time_interval.start for block in blocks]
        self.assertEqual(starts, sorted(starts))

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

    def test_singles_and_dead_time(self):
        run = made_run("seconds")
        singles = [np.arange(2880) * 1000 + second for second in range(3)]
        alive = [np.linspace(0.5, 1, 2880) - second / 8 for second in range(3)]
        rows = [petsird_blocks.Second(10 * s, 10 * s + 10, singles[s], alive[s]) for s in range(3)]
        extras = petsird_blocks.Extras(seconds=rows, singles=True)
        header, blocks, _ = self.converted(run, petsird_events.Options(energy_bins=2), extras)
        self.assertEqual(header.scanner.singles_histogram_level, petsird.SinglesHistogramLevelType.ALL)
        elements = petsird_events.bins_of(run, tool.DEFAULTS).element
        histograms = self.of_type(blocks, "SinglesHistogramTimeBlock")
        dead_time = self.of_type(blocks, "DeadTimeTimeBlock")
        self.assertEqual((len(histograms), len(dead_time)), (3, 3))
        for second in range(3):
            name = "singles_histograms" if is_0_9(petsird) else "singles_per_detection_bin_histogram"
            (counts,) = getattr(histograms[second], name)
            np.testing.assert_array_equal(np.array(counts)[elements], singles[second])
            (fractions,) = dead_time[second].alive_time_fractions.singles_alive_time_fractions
            for energy in (0, 1):
                np.testing.assert_allclose(fractions[2 * elements + energy], alive[second], rtol=1e-6)
            self.assertEqual(histograms[second].time_interval.start, 10 * second)
        self.assertEqual(self.of_type(self.converted(run)[1], "SinglesHistogramTimeBlock"), [])

    def test_the_seconds_of_a_run(self):
        run = made_run("of-run")
        names = (("start", "u8"), ("length", "u8"), ("module_dead_time", "f8", 24), ("crystal_unpaired", "u4", 2880))
        records = np.zeros(2, np.dtype([*names, ("crystal_grouped", "u4", 2880)]))
        records["length"] = 640_000_000  # 10 ms
        records["start"][1] = 640_000_000
        records["crystal_unpaired"] = np.arange(2880)
        records["crystal_grouped"] = [[5], [6]]
        records["module_dead_time"][0] = np.nan
        records["module_dead_time"][1] = np.arange(24) * 6_400_000
        records["module_dead_time"][1, 4] = np.nan

        class Seconds:
            def blocks(self):
                return iter([records[:1], records[1:]])

        run.seconds = Seconds()
        _, blocks, _ = self.converted(run)
        histograms = self.of_type(blocks, "SinglesHistogramTimeBlock")
        self.assertEqual([(h.time_interval.start, h.time_interval.stop) for h in histograms], [(0, 10), (10, 20)])
        elements = petsird_events.bins_of(run, tool.DEFAULTS).element
        name = "singles_histograms" if is_0_9(petsird) else "singles_per_detection_bin_histogram"
        for k, histogram in enumerate(histograms):
            np.testing.assert_array_equal(np.array(getattr(histogram, name)[0])[elements], np.arange(2880) + 5 + k)
        (dead_time,) = self.of_type(blocks, "DeadTimeTimeBlock")
        self.assertEqual(dead_time.time_interval.start, 10)
        (fractions,) = dead_time.alive_time_fractions.singles_alive_time_fractions
        bdm = run.scanner.bdm(np.arange(2880))
        expected = np.where(bdm == 4, 1, 1 - bdm / 100)
        np.testing.assert_allclose(fractions[elements], expected, rtol=1e-6)

    def test_bytes_of_large_numbers(self):
        bins = petsird_events.Bins(np.arange(20_000), 320, 1, 320, np.linspace(350, 650, 121, dtype="f4"), 0, 1e-6, 1)
        numbers = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 2_399_999]
        rows = np.array([numbers, numbers[::-1], [0, 640, 1, 127, 128, 129, 639, 0, 5]])
        edges = np.array([0, 2, 3, 9])
        pieces = petsird_events.EventBytes(bins)(rows, edges[:-1], edges[1:])
        expected = [b"".join(map(petsird_events.varint, event)) for event in rows.T.tolist()]
        for piece, low, high in zip(pieces, edges[:-1], edges[1:]):
            self.assertEqual(bytes(piece), b"".join(expected[low:high]))


if __name__ == "__main__":
    unittest.main()
