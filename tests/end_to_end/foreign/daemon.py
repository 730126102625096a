"""A petacqd for tests in Python: its files, its run, and its list-mode."""

import contextlib
import json
import os
import struct
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from control import status_of  # noqa: E402  (found by the line above)
from eventually import eventually  # noqa: E402  (found by the line above)


def payload(file):
    """The records of a list-mode file: docs/reference/list-mode-format.md."""
    with open(file, "rb") as opened:
        data = opened.read()
    at = struct.unpack_from("<I", data, 12)[0]
    records = []
    while data[at:at + 8] == b"PLMBLOCK":
        count, size = struct.unpack_from("<II", data, at + 16)
        records.append(data[at + 64:at + 64 + count * size])
        at += 64 + count * size
    return b"".join(records)


class Site:
    """A directory with a configuration and all that it names."""

    def __init__(self, programs, scanner, configuration, *calibration):
        """`calibration`: more options of `petcal make`."""
        self.programs = programs
        self._directory = tempfile.TemporaryDirectory()
        self.path = self._directory.name
        self.write("scanner.json", scanner)
        self.program("petcal", "make", "--scanner", self.file("scanner.json"), "--output", self.file("c.h5"), *calibration)
        self.configuration = {
            "scanner": "scanner.json", "calibration": "c.h5", "data_dir": ".", "control": {"socket": "control.sock"},
            "energy": {"filter": False}, "http": {"listen": ""}, "listmode": {"write_singles": True, "write_raw": True},
            **configuration,
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}], "lock_memory": False, "batch_count": 32,
                        "batch_bytes": 262144, **configuration.get("receive", {})}}
        self.write("petacqd.json", self.configuration)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._directory.cleanup()

    def file(self, *name):
        return os.path.join(self.path, *name)

    def write(self, name, document):
        with open(self.file(name), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def run_program(self, name, *arguments):
        return subprocess.run([os.path.join(self.programs, name), *arguments], capture_output=True, text=True, check=False)

    def program(self, name, *arguments, good=(0,)):
        done = self.run_program(name, *arguments)
        if done.returncode not in good:
            raise RuntimeError(f"{name} {arguments}: {done.returncode}: {done.stderr}")
        return done.stdout

    def petctl(self, *arguments):
        return self.program("petctl", "--socket", self.file("control.sock"), *arguments)

    def status(self):
        return status_of(self.file("control.sock"))

    def run_json(self, run):
        with open(self.file(run, "run.json"), encoding="utf-8") as file:
            return json.load(file)

    def listmode(self, run):
        return [payload(self.file(run, f"{name}.plm")) for name in ("coincidences", "singles")]

    @contextlib.contextmanager
    def daemon(self):
        """Runs; the value is its port."""
        with open(self.file("log"), "w", encoding="utf-8") as log:
            daemon = subprocess.Popen(  # pylint: disable=consider-using-with
                [os.path.join(self.programs, "petacqd"), "--config", self.file("petacqd.json")], stderr=log)
        try:
            def ready():
                with open(self.file("log"), encoding="utf-8") as file:
                    text = file.read()
                if daemon.poll() is not None:
                    raise RuntimeError(text)
                return " ready: " in text
            eventually(ready)
            yield self.status()["sockets"][0]["port"]
        finally:
            daemon.terminate()
            daemon.wait()

    def live(self, run, send):
        """A run of what `send(port, wait)` sends; `wait(n)` returns when the daemon has received n datagrams. Returns
        run.json."""
        with self.daemon() as port:
            self.petctl("start", "--run", run)
            send(port, lambda count: eventually(lambda: self.status()["total"]["datagrams"]["received"] >= count))
            self.petctl("stop")
        return self.run_json(run)

    def replay(self, run, *captures):
        # 65: the verdict on the data is bad, as where boards send something else.
        self.program("petacqd", "--config", self.file("petacqd.json"), "--run", run,
                     *(word for capture in captures for word in ("--replay", capture)), good=(0, 65))
        return self.run_json(run)
