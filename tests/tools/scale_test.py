#!/usr/bin/env python3
"""tools/scale: every frame is accounted for, known cases come out as by hand, and docs/explanation/scale.md shows what
the program prints.

scale_test.py SOURCE_DIR
"""

import json
import pathlib
import random
import re
import shlex
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
PROGRAM = SOURCE / "tools/scale"
SHARD_S = 1.0


def run(*words):
    return subprocess.run([sys.executable, "-B", PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)


def simulate(*words):
    done = run("--json", *words)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout[-600:]}{done.stderr}")
    return json.loads(done.stdout)


class Conservation(unittest.TestCase):
    def scenario(self, chance):
        """Words of a random command line: what the hosts do, and what the job does."""
        hosts, seconds = chance.randint(1, 6), chance.randint(3, 40)
        ranks = hosts * chance.randint(1, 3)

        def when():
            return round(chance.uniform(0, 1.2 * seconds), 3)

        def stretch():
            return "-".join(map(str, sorted((when(), when()))))

        host = ["--hosts", hosts, "--seconds", seconds, "--rate", round(10**chance.uniform(5, 7.5)),
                "--skew", round(chance.uniform(0, 0.9), 2), "--delay-spread", round(chance.uniform(0, 3), 2),
                "--memory", chance.choice([0.001, 0.01, 0.1]), "--disk", round(10**chance.uniform(-2, 0), 3),
                "--sync-interval-ms", chance.choice([50, 200, 1000])]
        for flag in ("--silent", "--stall"):
            host += [word for _ in range(chance.randint(0, 2)) for word in (flag, f"{chance.randrange(hosts)}@{stretch()}")]
        for flag in ("--kill-host", "--stop-host"):
            if chance.random() < 0.3:
                host += [flag, f"{chance.randrange(hosts)}@{when()}"]
        if chance.random() < 0.5:
            host.append("--partial")
        job = ["--ranks", ranks, "--rank-rate", round(10**chance.uniform(5, 7)), "--shard-singles",
               round(10**chance.uniform(5, 7)), "--restart-s", round(chance.uniform(0, 20), 1),
               "--storage", chance.choice(["local", "shared"]), "--slow-rank", f"{chance.randrange(ranks)}@3e5"]
        for _ in range(chance.randint(0, 4)):
            job += ["--kill-rank", f"{chance.randrange(ranks)}@{when()}"]
        return host, job

    def test_random_scenarios(self):
        for seed in range(12):
            host, job = self.scenario(random.Random(seed))
            with self.subTest(seed=seed, words=shlex.join(map(str, host + job))):
                failing = simulate(*host, *job)
                ledger = failing["ledger"]
                names = ("in_parts", "pending", "outside_interval", "dropped_by_hosts", "lost_with_daemons", "not_received")
                self.assertEqual(ledger["singles"], sum(ledger[name] for name in names))
                self.assertEqual(ledger["frames"], ledger["singles"] + ledger["rejected"])
                self.assertGreaterEqual(min(ledger.values()), 0)
                self.assertEqual(ledger["pending"], 0)
                self.assertTrue(ledger["parts_follow_each_other"])
                self.assertEqual(ledger["in_parts"] + ledger["outside_interval"], sum(h["saved"] for h in failing["hosts"]))
                # Whatever happens to the job, the daemons and the result are those of a job that nothing happens to.
                easy = simulate(*host, "--ranks", host[1])
                self.assertEqual(failing["hosts"], easy["hosts"])
                self.assertEqual(ledger, easy["ledger"])
                # Stopped in the middle, the rest is pending.
                cut = simulate(*host, *job, "--until", max(0.1, failing["finished_s"] * 0.5))["ledger"]
                self.assertEqual(cut["in_parts"] + cut["pending"], sum(h["saved"] for h in failing["hosts"]))


class KnownCases(unittest.TestCase):
    def test_catching_up_takes_the_backlog_over_what_the_ranks_have_left(self):
        for ranks, rate, down in ((8, 4e6, 30), (16, 10e6, 60)):
            found = simulate("--hosts", 4, "--ranks", ranks, "--rate", rate, "--accepted", 1, "--rank-rate", 1.2e6,
                             "--shard-singles", 2**21, "--seconds", 250, "--kill-rank", "0@30", "--restart-s", down)
            failure, = found["failures"]
            expected = (failure["waiting_singles"] - ranks * 2**21) / (ranks * 1.2e6 - rate)  # the last round takes all
            a_round = 2**21 / 1.2e6
            self.assertAlmostEqual(failure["caught_up_s"] - failure["up_s"], expected,
                                   delta=a_round * (2 + rate / (ranks * 1.2e6 - rate)))

    def test_ranks_that_are_too_slow_fall_behind_at_the_rate_that_they_lack(self):
        found = simulate("--ranks", 8, "--rate", 19.2e6, "--accepted", 1, "--rank-rate", 1.2e6, "--shard-singles", 2**21,
                         "--seconds", 200)
        row = next(row for row in found["timeline"] if 150 <= row["time_s"] <= 200)
        self.assertAlmostEqual(row["behind_s"], row["time_s"] / 2, delta=4)
        self.assertAlmostEqual(found["finished_s"], 400, delta=10)

    def test_the_watermark_is_that_of_the_last_host(self):
        found = simulate("--delay", 0.5, "--delay-spread", 4, "--every", 0.7)
        for row in found["timeline"]:
            if 5 < row["time_s"] < 60:
                self.assertAlmostEqual(row["watermark_s"], row["time_s"] - 4.5, delta=0.02)
                self.assertLessEqual(row["written_to_s"], row["watermark_s"])

    def test_a_silent_host_holds_the_watermark(self):
        found = simulate("--silent", "2@20-35", "--every", 1)
        for row in found["timeline"]:
            if 21 <= row["time_s"] < 35:
                self.assertEqual(row["watermark_s"], 20)
                if row["time_s"] > 25:  # what is too short for a shard is left
                    self.assertGreater(row["written_to_s"], 20 - SHARD_S)
        self.assertEqual(found["ledger"]["in_parts"], found["ledger"]["singles"])

    def test_a_host_without_its_disk_fills_its_memory_and_then_drops(self):
        words = ("--hosts", 1, "--ranks", 1, "--rate", 10e6, "--accepted", 1, "--rank-rate", 1e8)
        found = simulate(*words, "--stall", "0@20-22", "--memory", 1)["hosts"][0]
        self.assertAlmostEqual(found["memory_bytes"], 2 * 160e6, delta=2 * 2**20)
        self.assertEqual(found["dropped"], 0)
        found = simulate(*words, "--stall", "0@20-22", "--memory", 0.1)["hosts"][0]
        self.assertAlmostEqual(found["dropped"] * 16, 2 * 160e6 - 0.1 * 2**30, delta=3 * 2**20)

    def test_a_disk_that_is_too_slow_saves_what_it_can(self):
        found = simulate("--hosts", 1, "--ranks", 8, "--rate", 100e6, "--accepted", 1, "--disk", 0.8)["hosts"][0]
        self.assertAlmostEqual(found["saved"] * 16 / 1e9, 0.8 * 60 + 0.375 * 2**30 / 1e9, delta=0.1)

    def test_a_killed_daemon_ends_the_result_or_is_missing(self):
        words = ("--kill-host", "1@30", "--seconds", 60)
        ends = simulate(*words)
        self.assertAlmostEqual(ends["timeline"][-1]["written_to_s"], 30, delta=0.05)
        self.assertEqual(ends["missing"], [])
        self.assertAlmostEqual(ends["ledger"]["outside_interval"], 3 * 30 * 13.25e6, delta=3e6)
        goes_on = simulate(*words, "--partial")
        self.assertEqual(goes_on["timeline"][-1]["written_to_s"], 60)
        self.assertEqual([(m["host"], m["to_s"]) for m in goes_on["missing"]], [(1, 60)])
        self.assertEqual(goes_on["ledger"]["outside_interval"], 0)

    def test_a_part_after_a_gap_is_searched_again(self):
        """Rank 1 takes 7 s for a shard, the others 1.7 s: a kill mostly finds parts on disk that follow a missing one."""
        words = ("--hosts", 1, "--ranks", 4, "--rate", 4e6, "--accepted", 1, "--rank-rate", 1.2e6, "--slow-rank", "1@3e5",
                 "--shard-singles", 2**21, "--restart-s", 1)
        for second in (20, 22, 24):
            found = simulate(*words, "--kill-rank", f"0@{second}")
            self.assertGreater(found["failures"][0]["again_singles"], 2**21)
            self.assertEqual(found["ledger"]["in_parts"], found["ledger"]["singles"])

    def test_local_disks_cost_the_network(self):
        """Two hosts with a rank each: half of the singles of a shard come over the link of the other host."""
        found = simulate("--hosts", 2, "--ranks", 2, "--rate", 1e7, "--accepted", 1, "--storage", "local", "--seconds", 600,
                         "--rank-rate", 1e9, "--link", 0.01)
        # Both directions at once: 40 MB each for each second of detector time, 10 MB/s.
        self.assertAlmostEqual(found["finished_s"] / 600, 4, delta=0.2)


class CommandLine(unittest.TestCase):
    def test_refuses(self):
        for words, message in (
                (["--hosts", "0"], "argument --hosts: 0: expected a whole number from 1 to 1000"),
                (["--hosts", "2.5"], "argument --hosts"),
                (["--rate", "nan"], "argument --rate: nan: expected a number"),
                (["--skew", "1"], "argument --skew: 1: expected a number from 0 to 0.99"),
                (["--silent", "1@30-20"], "argument --silent: 1@30-20: expected NUMBER@FROM-TO"),
                (["--silent", "1"], "expected NUMBER@FROM-TO"),
                (["--kill-rank", "8@10"], "argument --kill-rank: there is no number 8; expected 0 to 7"),
                (["--kill-host", "-1@10"], "--kill-host"),
                (["--slow-rank", "1@0"], "expected a rate above 0"),
                (["--storage", "local", "--ranks", "2"], "expected at least one rank for each host"),
                (["--nothing"], "unrecognized arguments: --nothing"),
                (["frames.plm"], "unrecognized arguments: frames.plm")):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (64, ""), words)
            self.assertIn(message, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_help(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--kill-rank", done.stdout)


class Page(unittest.TestCase):
    def test_shows_what_the_program_prints(self):
        page = (SOURCE / "docs/explanation/scale.md").read_text(encoding="utf-8")
        shown = re.findall(r"^```console\n\$ tools/scale([^\n]*)\n(.*?)^```", page, re.M | re.S)
        shown = [re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n(.*)", words + "\n" + output, re.S) for words, output in shown]
        self.assertEqual(len(shown), 2)
        for example in shown:
            words = shlex.split(example[1].replace("\\\n", " "))
            self.assertEqual(run(*words).stdout, example[2], words)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
