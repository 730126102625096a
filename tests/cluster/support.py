"""A scanner read by one host and by several: their runs, and what petlm resort makes of the one host's singles.

A test is called as X_test.py BIN_DIR SOURCE_DIR, where BIN_DIR has the programs.
"""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

BIN, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
HOSTS = 3
SHARD = "60000"
KINDS = (None, "triples", "seconds", "tags")


def run(program, *arguments, **options):
    done = subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True, text=True, **options)
    # 65: the verdict on a replayed run is bad, as where boards did not send in real time.
    if done.returncode != 0 and not ("--replay" in arguments and done.returncode == 65):
        raise AssertionError(f"{program} {arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def records(run_directory, kind=None):
    """SHA-256 of what a program prints of the run."""
    options = [f"--{kind}"] if kind in ("seconds", "triples") else []
    target = run_directory / "tags.plm" if kind == "tags" else run_directory
    return hashlib.sha256(run("petlm", "dump", *options, target).encode()).hexdigest()


class Site:
    """For a unittest.TestCase. `site` is a directory with the runs of the `hosts`; `to`: ticks, when the first of them stops."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.site = pathlib.Path(cls.temporary.name)
        scanner = cls.site / "scanner.json"
        shutil.copy(SOURCE / "config/examples/mouse.scanner.json", scanner)
        sources = [source["id"] for source in json.loads(scanner.read_text())["sources"]]
        calibration = cls.site / "calibration.h5"
        run("petcal", "make", "--scanner", scanner, "--output", calibration, "--seed", 7)
        capture = cls.site / "all.pcap"
        run("petsim", "--crystals", "surface", "--scanner", scanner, "--calibration", calibration, "--seed", 3, "--duration-s", 1.3,
            "--rate", 600000, "--to", "127.0.0.1:9655", "--write", capture, "--tag-clock", "3:0.0002")
        shares = {"one": sources} | {f"host{i}": sources[i::HOSTS] for i in range(HOSTS)}
        for name, ids in shares.items():
            configuration = {
                "scanner": "scanner.json", "calibration": "calibration.h5", "data_dir": name,
                "receive": {"sockets": [{"address": "127.0.0.1", "port": 9655}]},
                "energy": {"lower_keV": 350, "upper_keV": 650},
                "gammas": {"lower_keV": 150, "upper_keV": 349, "before_ticks": 60_000, "after_ticks": 90_000, "delay_ticks": 2_000_000},
                "coincidence": {"window_ticks": 400, "min_module_difference": 2, "delay_ticks": 10000},
                "sources": {"ids": ids}, "listmode": {"write_singles": True, "block_bytes": 65536, "split_s": 0.7},
                "pipeline": {"backend": "cpu"}, "control": {"socket": "socket"}}
            file = cls.site / f"{name}.json"
            file.write_text(json.dumps(configuration))
            (cls.site / name).mkdir()
            run("petacqd", "--config", file, "--replay", capture, "--run", "r")
        cls.hosts = [cls.site / f"host{i}" / "r" for i in range(HOSTS)]
        runs = [json.loads((host / "run.json").read_text()) for host in cls.hosts]
        cls.to = min(r["stop_ticks"] for r in runs) - 1
        run("petlm", "resort", cls.site / "one" / "r", "-o", cls.site / "expected",
            "--from-ticks", max(r["start_ticks"] for r in runs), "--to-ticks", cls.to)
        cls.expected = [records(cls.site / "expected", kind) for kind in KINDS]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def check(self, output):
        self.assertEqual([records(output, kind) for kind in KINDS], self.expected)
        run("petlm", "verify", output)
