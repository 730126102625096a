"""A directory with everything that a daemon needs, daemons in it, and what they write."""

import collections
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from datagrams import read_capture

PATIENCE = 60.0  # seconds: for events that a busy machine delays
TICKS_PER_S = 64e9  # of small.scanner.json


class Failed(Exception):
    """A row does not hold."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def wait_for(condition, what, patience=PATIENCE):
    end = time.monotonic() + patience
    while not condition():
        expect(time.monotonic() < end, f"{what}: not within {patience:.0f} s")
        time.sleep(0.02)


def merge(document, patch):
    for key, value in patch.items():
        document[key] = merge(dict(document.get(key) or {}), value) if isinstance(value, dict) else value
    return document


class Programs:
    """The programs under test, and what is made once for all rows: calibration, streams, clean replays."""

    def __init__(self, directory, source, work):
        self.directory, self.source, self.work = os.path.abspath(directory), os.path.abspath(source), work
        with open(os.path.join(source, "config", "petacqd.schema.json"), encoding="utf-8") as file:
            self.keys = json.load(file)["properties"]
        with open(os.path.join(source, "config", "examples", "small.scanner.json"), encoding="utf-8") as file:
            self.scanner = json.load(file)
        self.scanner.pop("sources", None)
        self.write("bare.scanner.json", self.scanner)
        self.calibration = os.path.join(work, "small.h5")
        self.run("petcal", "make", "--scanner", os.path.join(work, "bare.scanner.json"), "--output", self.calibration,
                 "--bins", "16", "--time-offset-ticks", "200")
        self.streams, self.references = {}, {}
        self.making = threading.RLock()  # of streams and references, which rows share

    def write(self, name, document):
        with open(os.path.join(self.work, name), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, program, *arguments, check=True, environment=None, timeout=PATIENCE):
        """Runs a program to its end."""
        done = subprocess.run([self.path(program), *arguments], capture_output=True, timeout=timeout, check=False,
                              env={**os.environ, **(environment or {})})
        done.stdout, done.stderr = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
        # 65: the verdict on a replayed run is bad, as where a fault has spoilt its data.
        judged = "--replay" in arguments and done.returncode == 65
        expect(not check or judged or done.returncode == 0, f"{program} {' '.join(arguments)}: {done.returncode}: {done.stderr}")
        return done

    def stream(self, framing="sequenced", seconds=1.0, start=0, rate=60000, pause=None):
        """(path of the capture, its datagrams). Eight boards; none of them detects anything in `pause`."""
        key = (framing, seconds, start, rate, pause)
        with self.making:
            if key not in self.streams:
                self.streams[key] = self.simulate(*key)
            return self.streams[key]

    def simulate(self, framing, seconds, start, rate, pause):
        path = os.path.join(self.work, f"{framing}-{seconds}-{start}-{rate}-{pause}.pcap")
        silent = [word for source in range(8) if pause for word in ("--silent", f"{source}@{pause}")]
        self.run("petsim", "--crystals", "surface", "--scanner", os.path.join(self.work, "bare.scanner.json"), "--calibration", self.calibration,
                 "--cylinder", "0,0,0,10,20,1", "--rate", str(rate), "--duration-s", str(seconds), "--sources",
                 "8", "--flush-us", "4000", "--seed", "7", "--start-time-s", str(start), "--framing", framing,
                 "--threads", "1", "--write", path, "--quiet", *silent)
        return path, read_capture(path)

    def reference(self, capture, **patch):
        """The clean replay of a capture: (sha-256 of the records, path of the list-mode)."""
        key = (capture, json.dumps(patch, sort_keys=True))
        with self.making:
            if key not in self.references:
                self.references[key] = Site(self, patch).replay(capture, "clean", "--whole")
            return self.references[key]


Listmode = collections.namedtuple("Listmode", "sha path run")


class Site:
    """A directory with scanner, calibration, configuration and data directory."""

    def __init__(self, programs, patch=None, sources=None):
        """`sources`: what the scanner description lists; None: anybody may send."""
        self.programs = programs
        self.directory = tempfile.mkdtemp(dir=programs.work)
        self.data = os.path.join(self.directory, "data")
        os.mkdir(self.data)
        scanner = dict(programs.scanner)
        senders = {"accept_any": True} if "accept_any" in programs.keys["sources"]["properties"] else {}
        if sources is not None:
            senders = self.listing(scanner, sources)
        self.write("scanner.json", scanner)
        self.configuration = merge({
            "scanner": "scanner.json", "calibration": programs.calibration, "data_dir": "data",
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}], "batch_count": 64, "batch_bytes": 262144,
                        "lock_memory": False},
            "sources": senders,
            "watermark": {"max_disorder_us": 100000, "source_timeout_ms": 1000},
            "coincidence": {"window_ticks": 320, "delay_ticks": 6400, "min_module_difference": 2},
            "pipeline": {"backend": "cpu", "threads": 2, "slice_frames": 20000},
            "listmode": {"block_bytes": 16384, "sync_interval_ms": 200},
            "control": {"socket": "control.sock"}, "http": {"listen": "127.0.0.1:0"},
            "health": {"min_disk_free_bytes": 0, "min_disk_time_s": 0, "max_latency_ms": 600000}}, patch or {})
        self.write("petacqd.json", self.configuration)

    def listing(self, scanner, sources):
        """Puts the list where this version has it: in the scanner description, else in the configuration."""
        with open(os.path.join(self.programs.source, "config", "scanner.schema.json"), encoding="utf-8") as file:
            if "sources" in json.load(file)["properties"]:
                scanner["sources"] = sources
                return {}
        if "id" in sources[0]:
            return {"ids": [source["id"] for source in sources]}
        return {"addresses": sorted({source["address"] for source in sources})}

    def write(self, name, document):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            json.dump(document, file)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def run_json(self, run):
        with open(os.path.join(self.data, run, "run.json"), encoding="utf-8") as file:
            return json.load(file)

    def replay(self, captures, run, *arguments, **options):
        self.programs.run("petacqd", "--config", self.path("petacqd.json"), "--replay", captures, "--run", run, *arguments,
                          **options)
        return self.listmode(run)

    def listmode(self, run):
        """The records of a run and its run.json."""
        path = os.path.join(self.data, run, "coincidences.plm")
        return Listmode(sha_of(self.programs, path), path, self.run_json(run))

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)


def sha_of(programs, path):
    said = programs.run("petlm", "verify", path, check=False).stdout
    found = re.search(r"sha256 ([0-9a-f]{64})", said)
    return found[1] if found else "none: " + said.strip()


def records_of(programs, path):
    """Every record as a line, counted."""
    said = programs.run("petlm", "dump", path, check=False).stdout
    return collections.Counter(said.splitlines()[1:])


class Client:
    """The control socket: one message per line."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self.lines = self.socket.makefile("rb")

    def send(self, text):
        self.socket.sendall(text.encode() + b"\n")

    def ask(self, method, **parameters):
        self.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}))

    def answer(self):
        while True:
            try:
                line = self.lines.readline()
            except TimeoutError as error:
                raise Failed(f"no answer within {self.socket.gettimeout():.0f} s") from error
            expect(line, "the daemon closed the connection")
            message = json.loads(line)
            if "id" in message:
                return message

    def call(self, method, **parameters):
        self.ask(method, **parameters)
        message = self.answer()
        expect("error" not in message, f"{method}: {message.get('error')}")
        return message["result"]

    def close(self):
        self.lines.close()
        self.socket.close()


class Daemon:
    """A running petacqd."""

    def __init__(self, site, environment=None):
        self.site = site
        self.log_path = site.path("petacqd.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([site.programs.path("petacqd"), "--config", site.path("petacqd.json")],
                                            stdout=log, stderr=log, env={**os.environ, **(environment or {})})
        wait_for(lambda: self.process.poll() is not None or " ready: " in self.log(), "the daemon is ready")
        expect(self.process.poll() is None, "the daemon does not start: " + self.log())
        self.client = Client(site.path("control.sock"))
        self.ports = [one["port"] for one in self.status()["sockets"]]

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def status(self):
        return self.client.call("status")

    def received(self):
        datagrams = self.status()["total"]["datagrams"]
        return datagrams["received"] + datagrams["dropped_kernel"]

    def http_port(self):
        return int(re.search(r"http: listening on \S+, port (\d+)", self.log())[1])

    def new_client(self):
        return Client(self.site.path("control.sock"))

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Ends the daemon in order; its exit status."""
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.client.close()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.client.close()
