import contextlib
import fcntl
import io
import json
import shutil
import unittest
from datetime import datetime, timedelta

import numpy as np
import support

import petacq
from petacq import petsird


class RealRun(unittest.TestCase):
    def setUp(self):
        self.run_ = petacq.open_run(support.small_run(), verify=True)

    def test_run_json(self):
        run = self.run_
        self.assertEqual((run.id, run.state, run.note), ("small", "complete", "a <point> & more"))
        self.assertEqual(run.operator["nuclide"], "F-18")
        self.assertAlmostEqual(run.operator["half_life_s"], 6584.04)
        self.assertEqual(run.operator["keys"], {"tracer": "FDG"})
        self.assertEqual(run.metadata, json.loads((run.path / "run.json").read_text()))
        self.assertEqual(run.ledger["pairs"]["written"], len(run.coincidences))
        self.assertEqual(run.ledger["saved_singles"]["written"], len(run.singles))
        self.assertEqual(run.configuration["coincidence"]["window_ticks"], 320)
        self.assertIsInstance(run.start, datetime)
        self.assertEqual(run.start.utcoffset(), timedelta(0))
        self.assertLess(run.start, run.stop)
        self.assertEqual(run.scanner, petacq.Scanner.load(support.SOURCE / "config/examples/small.scanner.json"))
        self.assertAlmostEqual(run.duration_s, 0.5, delta=0.2)
        self.assertEqual(run.tick_s, 15.625e-12)

    def test_how_it_looks_in_a_notebook(self):
        text = self.run_._repr_html_()
        self.assertIn("a &lt;point&gt; &amp; more", text)
        self.assertIn("mouse &lt;7&gt;", text)
        self.assertIn("12.5 mm", text)
        self.assertIn("FDG", text)
        self.assertIn(f"{self.run_.ledger['pairs']['prompts_found']:,}", text)
        self.assertIn("small", repr(self.run_))

    def test_histograms_json_counts_the_singles(self):
        counts = np.bincount(self.run_.singles["crystal"], minlength=self.run_.scanner.crystal_count)
        self.assertEqual(counts.tolist(), self.run_.histograms["crystals"])

    def test_ledger_over_time_adds_up(self):
        columns = self.run_.ledger_over_time
        self.assertEqual(int(columns["to_ticks"][-1]), self.run_.stop_ticks)
        for name in ("datagrams.lost", "frames.accepted", "singles.prompts"):
            section, counter = name.split(".")
            self.assertEqual(int(columns[name].sum()), self.run_.ledger[section][counter])


class MadeRuns(unittest.TestCase):
    def setUp(self):
        self.source = petacq.open_run(support.small_run())
        self.records = self.source.coincidences.records()
        self.path = support.scratch() / "made"
        shutil.rmtree(self.path, ignore_errors=True)
        self.path.mkdir()
        shutil.copy(self.source.path / "run.json", self.path)

    def split(self, cuts, name="coincidences-{:04d}.plm", **description):
        for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(self.records)]), 1):
            sizes = [700] * ((end - begin) // 700) + ([(end - begin) % 700] if (end - begin) % 700 else [])
            content = support.listmode(self.records[begin:end].tobytes(), sizes, part=number, **description)
            (self.path / name.format(number)).write_bytes(content)

    def test_marks_of_a_run_and_of_a_power_cut(self):
        shutil.copy(self.source.path / "coincidences.plm", self.path)
        self.assertEqual(petacq.open_run(self.path).marks, [])
        mark = {"text": "FDG injected \u00b5", "ticks": 2**64 - 1, "utc": "2026-11-20T18:45:00.123Z"}
        line = json.dumps(mark).encode() + b"\n"
        for damage in (b"", line[:-2], b"[]\n", b"\xff\n", b'{"text":"x"}\n'):
            with self.subTest(damage=damage):
                (self.path / "marks.jsonl").write_bytes(line + damage)
                self.assertEqual(petacq.open_run(self.path).marks, [mark])

    def test_ledger_over_time_of_bare_framing_and_of_a_crash(self):
        shutil.copy(self.source.path / "coincidences.plm", self.path)
        text = "from_ticks,to_ticks,datagrams.lost,frames.late\n0,18446744073709551615,,-3\n5,7,2,1\n7,1"
        (self.path / "ledger.csv").write_text(text)
        columns = petacq.open_run(self.path).ledger_over_time
        self.assertEqual(columns["to_ticks"].tolist(), [18446744073709551615, 7])
        np.testing.assert_array_equal(columns["datagrams.lost"], [np.nan, 2])
        self.assertEqual(columns["frames.late"].tolist(), [-3, 1])
        for bad in ("else\n", "from_ticks,to_ticks,a\n1,2\n", "from_ticks,to_ticks,a\n1,2,x\n"):
            (self.path / "ledger.csv").write_text(bad)
            with self.assertRaises(petacq.RunError):
                petacq.open_run(self.path).ledger_over_time  # noqa: B018

    def test_several_files_are_one_sequence(self):
        self.split([1000, 1001, 5000])
        pairs = petacq.open_run(self.path, verify=True).coincidences
        self.assertEqual(len(pairs.files), 4)
        self.assertTrue(pairs.complete)
        self.assertEqual(pairs.kind, "coincidences")
        self.assertEqual(pairs.description["part"], 1)
        np.testing.assert_array_equal(pairs.records(), self.records)
        np.testing.assert_array_equal(np.concatenate(list(pairs.blocks())), self.records)
        for wanted in (slice(900, 1100), slice(None, None, 333), slice(5100, 990, -1), slice(995, 1000)):
            np.testing.assert_array_equal(pairs[wanted], self.records[wanted])
        self.assertEqual(pairs[1000], self.records[1000])
        self.assertFalse(pairs[1001:1100].flags.owndata)
        begin, end = int(self.records["time"][990]), int(self.records["time"][5100])
        inside = (self.records["time"] >= begin) & (self.records["time"] < end)
        np.testing.assert_array_equal(np.concatenate(list(pairs.between(begin, end))), self.records[inside])

    def side_by_side(self, begin, end, name, files=3, sizes=(70, 1, 300), **description):
        """The records from begin to end as a set of files."""
        blocks = []
        while begin < end:
            size = min(sizes[len(blocks) % len(sizes)], end - begin)
            blocks.append((begin, size))
            begin += size
        for file in range(files):
            own = blocks[file::files]
            payload = b"".join(self.records[at : at + size].tobytes() for at, size in own)
            firsts = [at - blocks[0][0] for at, _ in own]
            content = support.listmode(
                payload, [size for _, size in own], firsts=firsts, file=file + 1, files=files, **description
            )
            (self.path / name.format(file + 1)).write_bytes(content)

    def test_files_side_by_side_are_one_sequence(self):
        for files in (2, 3, 8):
            self.side_by_side(0, len(self.records), "coincidences.{}.plm", files)
            support.call("petlm", "verify", self.path / "coincidences.plm")
            run = petacq.open_run(self.path, verify=True)
            pairs = run.coincidences
            self.assertTrue(pairs.complete)
            self.assertEqual((len(pairs.files), len(pairs)), (files, len(self.records)))
            np.testing.assert_array_equal(pairs.records(), self.records)
            self.assertFalse(pairs[71:300].flags.owndata)
            for wanted in (slice(60, 400), slice(None, None, 333), slice(5100, 990, -1)):
                np.testing.assert_array_equal(pairs[wanted], self.records[wanted])
            begin, end = int(self.records["time"][990]), int(self.records["time"][5100])
            inside = (self.records["time"] >= begin) & (self.records["time"] < end)
            np.testing.assert_array_equal(np.concatenate(list(pairs.between(begin, end))), self.records[inside])
            self.assertIn(f"in {files} files", run._repr_html_())

    def test_a_split_run_in_files_side_by_side(self):
        self.side_by_side(0, 1000, "coincidences-0001.{}.plm", part=1)
        self.side_by_side(1000, len(self.records), "coincidences-0002.{}.plm", part=2)
        pairs = petacq.open_run(self.path, verify=True).coincidences
        self.assertEqual([len(part) for part in pairs.files], [1000, len(self.records) - 1000])
        np.testing.assert_array_equal(pairs.records(), self.records)

    def test_a_set_whose_files_end_early_says_what_is_missing(self):
        self.side_by_side(0, 1000, "coincidences.{}.plm")  # 70, 1, 300, 70, 1, 300, 70, 1, 187
        second = self.path / "coincidences.2.plm"
        content = second.read_bytes()
        second.write_bytes(content[: 4096 + 2 * (64 + 32) + 70])  # its third block is cut off
        third = self.path / "coincidences.3.plm"
        third.write_bytes(third.read_bytes()[: 4096 + 64 + 32 * 300])  # its last two are gone
        with self.assertWarns(petacq.IncompleteWarning):
            pairs = petacq.open_run(self.path).coincidences
        self.assertFalse(pairs.complete)
        there = np.concatenate([self.records[:442], self.records[742:812]])
        np.testing.assert_array_equal(pairs.records(), there)
        self.assertIn("300 records are missing between the blocks of the set", str(pairs.missing[-1]))
        self.assertIn("behind record 442", str(pairs.missing[-1]))
        with self.assertRaises(petacq.PlmError):
            pairs.verify()
        second.unlink()
        with self.assertWarnsRegex(petacq.IncompleteWarning, "file 2 of the set is not there"):
            pairs = petacq.open_run(self.path).coincidences
        self.assertEqual(len(pairs), 70 + 300 + 70 + 70)
        second.write_bytes(b"")
        with self.assertWarnsRegex(petacq.IncompleteWarning, "empty"):
            petacq.open_run(self.path).coincidences

    def test_files_of_other_sets_and_both_forms_are_refused(self):
        self.side_by_side(0, 1000, "coincidences.{}.plm")
        (self.path / "coincidences.4.plm").write_bytes((self.path / "coincidences.3.plm").read_bytes())
        with self.assertRaisesRegex(petacq.PlmError, "not file 4 of a set of 3"):
            petacq.open_run(self.path).coincidences
        (self.path / "coincidences.4.plm").unlink()
        shutil.copy(self.source.path / "coincidences.plm", self.path)
        with self.assertRaisesRegex(petacq.RunError, "one or the other"):
            petacq.open_run(self.path).coincidences

    def test_part_numbers_of_any_length_stay_in_order(self):
        self.split([2000])
        for before, after in (("0001", "9999"), ("0002", "1000000000")):
            (self.path / f"coincidences-{before}.plm").rename(self.path / f"coincidences-{after}.plm")
        (self.path / "coincidences-9998.plm").write_bytes(support.listmode(b"", []))
        with self.assertWarns(petacq.IncompleteWarning):
            pairs = petacq.open_run(self.path).coincidences
        self.assertEqual([len(file) for file in pairs.files], [0, 2000, len(self.records) - 2000])
        gone = [str(part) for part in pairs.missing]
        self.assertEqual(len(gone), 2)
        self.assertIn("part 1 to 9997 of", gone[0])
        self.assertIn("part 10000 to 999999999 of", gone[1])

    def test_a_part_that_is_gone_is_said(self):
        self.split([1000, 2000])
        (self.path / "coincidences-0002.plm").unlink()
        with self.assertWarnsRegex(petacq.IncompleteWarning, "coincidences-0002.plm"):
            pairs = petacq.open_run(self.path).coincidences
        self.assertFalse(pairs.complete)
        self.assertEqual([part.path.name for part in pairs.missing], ["coincidences-0002.plm"])
        self.assertEqual(len(pairs), len(self.records) - 1000)
        with self.assertRaises(petacq.PlmError):
            pairs.verify()

    def test_a_part_that_was_cut_is_said(self):
        self.split([1000])
        last = self.path / "coincidences-0002.plm"
        last.write_bytes(last.read_bytes()[:-100])
        with self.assertWarns(petacq.IncompleteWarning):
            run = petacq.open_run(self.path)
            pairs = run.coincidences
        self.assertFalse(pairs.complete)
        self.assertIn("incomplete", run._repr_html_())

    def test_parts_of_different_runs_or_out_of_order_are_refused(self):
        self.split([1000])
        first, second = self.path / "coincidences-0001.plm", self.path / "coincidences-0002.plm"
        first.rename(self.path / "x")
        second.rename(first)
        (self.path / "x").rename(second)
        with self.assertRaisesRegex(petacq.PlmError, "begins before"):
            petacq.open_run(self.path).coincidences
        first.write_bytes(support.listmode(self.records[:5].tobytes(), [5], run_id="another"))
        with self.assertRaisesRegex(petacq.PlmError, "another run"):
            petacq.open_run(self.path).coincidences

    def test_what_recover_made_is_not_read_twice(self):
        shutil.copy(self.source.path / "coincidences.plm", self.path)
        shutil.copy(self.source.path / "coincidences.plm", self.path / "coincidences.recovered.plm")
        self.assertEqual(len(petacq.open_run(self.path).coincidences), len(self.records))

    def test_a_file_of_the_other_kind_is_refused(self):
        shutil.copy(self.source.path / "singles.plm", self.path / "coincidences.plm")
        with self.assertRaisesRegex(petacq.RunError, "holds singles"):
            petacq.open_run(self.path).coincidences

    def test_triples_of_a_run(self):
        pair = (7, 3, 1, 2, 500.5, 511.25, petacq.PROMPT)
        triples = np.array([(*pair, -4, 9, 1157.0, petacq.COINCIDENT), (*pair, 12, 8, 1100.5, petacq.DELAYED)], petacq.TRIPLE)
        self.assertEqual(petacq.TRIPLE.itemsize, 48)
        (self.path / "triples.plm").write_bytes(support.listmode(triples.tobytes(), [2], kind=5))
        shutil.copy(self.source.path / "coincidences.plm", self.path)
        run = petacq.open_run(self.path, verify=True)
        np.testing.assert_array_equal(run.triples.records(), triples)
        self.assertEqual(run.triples["gamma_dt"].tolist(), [-4, 12])
        self.assertIn("2 records", run.summary()["triples"])

    def test_tags_of_a_run(self):
        tags = np.array([(1000 * i, i, 0, 1, petacq.TRIGGER) for i in range(5)], petacq.TAG)
        (self.path / "tags.plm").write_bytes(support.listmode(tags.tobytes(), [3, 2], kind=3))
        shutil.copy(self.source.path / "coincidences.plm", self.path)
        run = petacq.open_run(self.path, verify=True)
        np.testing.assert_array_equal(run.tags.records(), tags)
        self.assertIn("5 records", run.summary()["tags"])

    def test_without_run_json_the_list_mode_can_be_read(self):
        (self.path / "run.json").unlink()
        shutil.copy(self.source.path / "coincidences.plm", self.path)
        run = petacq.open_run(self.path, verify=True)
        self.assertEqual((run.id, run.state, len(run.coincidences)), ("made", "unknown", len(self.records)))
        self.assertIsNone(run.singles)
        self.assertIsNone(run.tags)
        self.assertIsNone(run.triples)
        self.assertIn("made", run._repr_html_())
        with self.assertRaises(petacq.RunError):
            run.scanner

    def test_a_run_that_still_goes_on(self):
        document = json.loads((self.path / "run.json").read_text())
        for key in ("ledger", "stop_utc", "stop_ticks", "stop_reason"):
            del document[key]
        document["state"] = "running"
        (self.path / "run.json").write_text(json.dumps(document))
        content = (self.source.path / "coincidences.plm").read_bytes()
        (self.path / "coincidences.plm").write_bytes(content[:200_000])
        with open(self.path / ".reserve", "wb") as held:  # as the daemon holds it
            fcntl.flock(held, fcntl.LOCK_EX)
            with self.assertWarns(petacq.IncompleteWarning):
                run = petacq.open_run(self.path)
                text = run._repr_html_()
            self.assertIn("running", text)
        self.assertIn("interrupted", run._repr_html_())
        self.assertEqual(run.stop_ticks, run.coincidences.last_time)
        self.assertIsNone(run.stop)

    def test_what_is_no_run(self):
        for path, found in (
            (self.path / "run.json", "expected the directory of a run, found a file$"),
            (self.path / "none", "expected the directory of a run, found nothing"),
            (self.source.path / "coincidences.plm", "found a file of that run: petacq.PlmFile opens it"),
            (self.path.parent, r"not a run: .*; it holds runs: \S+made$"),
        ):
            with self.assertRaisesRegex(petacq.RunError, found):
                petacq.open_run(path)
        with self.assertRaisesRegex(petacq.RunError, "is a run itself"):
            petacq.list_runs(self.path)
        (self.path / "run.json").write_text("{")
        with self.assertRaisesRegex(petacq.RunError, "not JSON"):
            petacq.open_run(self.path).state
        with self.assertRaisesRegex(petacq.RunError, "without coincidences"):
            petacq.open_run(self.path).coincidences
        (self.path / "run.json").unlink()
        with self.assertRaisesRegex(petacq.RunError, "neither"):
            petacq.open_run(self.path)


class CommandLine(unittest.TestCase):
    def test_control_characters_of_names_reach_no_terminal(self):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = petsird.main([str(support.scratch() / "no\x1b[2J\u202erun\x9b"), str(support.scratch() / "run.petsird")])
        self.assertNotEqual(status, 0)
        self.assertIn("no\\x1b[2J\\u202erun\\x9b", err.getvalue())
        self.assertTrue(err.getvalue().replace("\n", "").isprintable(), repr(err.getvalue()))


if __name__ == "__main__":
    unittest.main()
