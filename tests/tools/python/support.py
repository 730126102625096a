"""Shared by the tests: the real programs, a run that they made, and an independent writer of list-mode."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "tools" / "python" / "src"))

PATIENCE_S = 120


# The programs


def program(name: str) -> str:
    """Its path. Skips the test if it has not been built."""
    folders = [os.environ["PETACQ_BIN"]] if "PETACQ_BIN" in os.environ else sorted(SOURCE.glob("build/*/bin"))
    for folder in folders:
        if (Path(folder) / name).is_file():
            return str(Path(folder) / name)
    raise unittest.SkipTest(f"{name} is not built (PETACQ_BIN)")


def programs_in_path() -> None:
    """For what runs them by their names. Skips the test if they have not been built."""
    os.environ["PATH"] = os.pathsep.join((str(Path(program("petlm")).parent), os.environ["PATH"]))


def call(name: str, *arguments: object, status: int = 0, env: dict[str, str] | None = None) -> str:
    """Standard output of one of the programs."""
    done = subprocess.run(
        [program(name), *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, env=env
    )
    if done.returncode != status:
        raise AssertionError(f"{name} gave {done.returncode}, expected {status}: {done.stderr}{done.stdout}")
    return done.stdout


@functools.cache
def scratch() -> Path:
    """A directory that is removed when this process exits."""
    folder = tempfile.mkdtemp(prefix="petacq-python-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


SOURCE_POINT_MM = (14.0, 7.0, 6.0)

#: The sections of the configuration by which made-up records were found, as their coverage states them.
COINCIDENCE_RULES = {
    "window_ticks": 320,
    "window_mode": "single",
    "multiples_policy": "RemoveMultiples",
    "max_multiplicity": 64,
    "min_module_difference": None,
    "max_ring_difference": None,
    "delay_ticks": 6400,
    "delayeds": "shifted_group",
}


#: A scanner in the long form whose modules are tilted along the axis and turned about their directions.
TURNED = {
    "name": "turned",
    "tick_ps": 10,
    "position_size": 8,
    "module_types": [
        {
            "name": "block",
            "layers": [
                {"y": {"sizes_mm": [1, 2, 1.5], "gaps": [{"after": 1, "mm": 0.3}]}, "z": {"count": 4, "pitch_mm": 2.5}, "length_mm": 8},
                {"y": {"count": 2, "pitch_mm": 2, "shift_mm": 0.5}, "z": {"count": 3, "pitch_mm": 3, "size_mm": 2.5}, "length_mm": 6,
                 "gap_mm": 0.5, "material": "BGO"},
            ],
        }
    ],
    "modules": [
        {"type": "block", "place": {"front_mm": [30, 4, -3], "outward": [1, 0.2, 0.3], "turn_deg": 25}},
        {"type": "block", "place": {"front_mm": [-28, 6, 5], "outward": [-1, 0.1, -0.3], "turn_deg": -10}},
        {"type": "block", "place": {"front_mm": [2, 31, 0], "outward": [0, 1, 0]}},
        {"type": "block", "place": {"front_mm": [0, -33, 8], "outward": [0.1, -1, 0.2], "turn_deg": 5}},
    ],
}


class Daemon:
    """A petacqd of the small scanner, in a directory of its own: from ``with`` to the end of the block."""

    def __init__(self, name: str, **configuration: Any) -> None:
        """``configuration``: sections that differ."""
        self.site = scratch() / name
        self.data = self.site / "data"
        self.socket = self.site / "control.sock"
        self.env = {**os.environ, "PETACQ_SOCKET": str(self.socket)}
        self.port = 0
        self.data.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / "config" / "examples" / "small.scanner.json", self.site)
        self.scanner, self.calibration = self.site / "small.scanner.json", self.site / "small.h5"
        calibration = ("--scanner", self.scanner, "--output", self.calibration)
        call("petcal", "make", "--force", *calibration, "--time-offset-ticks", 200, "--bins", 16)
        configuration = {
            "scanner": "small.scanner.json",
            "calibration": "small.h5",
            "data_dir": "data",
            "receive": {
                "sockets": [{"address": "127.0.0.1", "port": 0}],
                "batch_count": 32,
                "batch_bytes": 262144,
                "lock_memory": False,
            },
            "watermark": {"max_disorder_us": 100000, "source_timeout_ms": 3000},
            "coincidence": {"window_ticks": 320, "delay_ticks": 6400, "min_module_difference": 2},
            "pipeline": {"backend": "cpu", "threads": 1, "slice_frames": 20000},
            "listmode": {"block_bytes": 65536, "queue_blocks": 16, "sync_interval_ms": 200, "write_singles": True},
            "control": {"socket": "control.sock"},
            "http": {"listen": ""},
            **configuration,
        }
        (self.site / "petacqd.json").write_text(json.dumps(configuration), encoding="utf-8")

    def __enter__(self) -> Daemon:
        with open(self.site / "log", "wb") as log:
            self.process = subprocess.Popen(
                [program("petacqd"), "--config", str(self.site / "petacqd.json")], stderr=log
            )
        try:
            self.port = _port(self.process, self.site / "log", self.env)
        except BaseException:
            self.process.kill()
            self.process.wait(PATIENCE_S)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE_S)

    def simulation(self, duration_s: float, *options: object) -> list[str]:
        """The command line of petsim with a point source at SOURCE_POINT_MM that sends to the daemon."""
        files = ("--scanner", self.scanner, "--calibration", self.calibration, "--to", f"127.0.0.1:{self.port}")
        source = ("--crystals", "surface", "--point", ",".join(map(str, (*SOURCE_POINT_MM, 0.6))), "--sources", 4, "--intrinsic-hz", 1)
        rest = ("--flush-us", 4000, "--threads", 1, "--time-resolution-ps", 20, "--scatter", 0, "--quiet", *options)
        return list(map(str, (program("petsim"), "--duration-s", duration_s, *files, *source, *rest)))


@functools.cache
def small_run() -> Path:
    """The directory of a run of petacqd with petsim: a point source at SOURCE_POINT_MM."""
    with Daemon("site") as daemon:
        call(
            *("petctl", "start", "--run", "small", "--note", "a <point> & more", "--nuclide", "F-18", "--bed-mm", "12.5"),
            *("--subject", "mouse <7>", "--key", "tracer=FDG"),
            env=daemon.env,
        )
        subprocess.run(daemon.simulation(0.5), check=True, timeout=PATIENCE_S)
        call("petctl", "stop", env=daemon.env)
    return daemon.data / "small"


def _port(daemon: subprocess.Popen[bytes], log: Path, env: dict[str, str]) -> int:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and daemon.poll() is None:
        if b" ready: " in log.read_bytes():
            return int(json.loads(call("petctl", "status", "--json", env=env))["sockets"][0]["port"])
        time.sleep(0.02)
    raise AssertionError(f"petacqd does not come up: {log.read_text(errors='replace')}")


# List-mode, written only from its documentation


def crc32c(data: bytes, register: int = 0xFFFFFFFF) -> int:
    for byte in data:
        register = (register >> 8) ^ _TABLE[(register ^ byte) & 0xFF]
    return register ^ 0xFFFFFFFF


_TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = (_n >> 1) ^ (0x82F63B78 if _n & 1 else 0)
    _TABLE.append(_n)



def zstandard_of(records: bytes, size: int) -> bytes:
    import zstandard

    transposed = b"".join(records[byte::size] for byte in range(size))
    return bytes(zstandard.ZstdCompressor().compress(transposed))


RECORD_BYTES = {1: 32, 2: 16, 3: 16, 4: 128, 5: 48}


def listmode(
    payload: bytes,
    records_in_block: list[int],
    kind: int = 1,
    firsts: list[int] | None = None,
    zstd: bool = False,
    closing: bytes | None = None,
    record_bytes: int | None = None,
    **description: Any,
) -> bytes:
    """A list-mode file with these records in blocks of these sizes, compressed if asked for. ``firsts``: the numbers in its set of the first
    record of each block, for a file that ``file`` and ``files`` say to be one of several. ``closing``: the closing description.
    ``record_bytes``: of seconds."""
    size = record_bytes or RECORD_BYTES[kind]
    text = json.dumps({"tick_ps": 15.625, "crystals": 2880, "run_id": "small", **description}).encode()
    rest = text + bytes(4096 - 40 - len(text))
    largest = 300 if firsts else max(records_in_block, default=1)  # the same in all files of a set
    block_bytes = -(-(64 + size * largest) // 64) * 64
    version = 2 if zstd else 1
    if closing is not None:
        version = 3
    head = struct.pack("<8s7I", b"PETACQLM", version, 4096, kind, size, max(block_bytes, 128), len(text), crc32c(rest))
    out = head + struct.pack("<I", crc32c(head)) + rest
    index = b""
    first = 0
    for number, count in enumerate(records_in_block):
        records = payload[first * size : (first + count) * size]
        times = records[:8] + records[-size : len(records) - size + 8]
        crc = crc32c(records)
        index += struct.pack("<QII", len(out), count, crc) + times
        in_set = description.get("file", 1) - 1 + number * description.get("files", 1)
        block = struct.pack("<8sQII", b"PLMBLOCK", in_set, count, size) + times
        stored = zstandard_of(records, size) if zstd else records
        form = (len(stored), 1) if zstd else (len(stored) if version == 3 else 0, 0)
        block += struct.pack("<QIII", firsts[number] if firsts else first, crc, *form)
        out += block + struct.pack("<I", crc32c(block)) + stored
        first += count
    trailer = struct.pack(
        "<8sQQQIIII12x",
        b"PLMTRAIL",
        len(out),
        len(records_in_block),
        first,
        crc32c(index),
        crc32c(payload[: first * size]),
        len(closing or b""),
        crc32c(closing) if closing else 0,
    )
    return out + index + (closing or b"") + trailer + struct.pack("<I", crc32c(trailer))


def seconds_file(records: Any) -> bytes:
    """A file of seconds with the fields of these records, a NumPy array."""
    fields = [
        {"name": name, "type": of.base.str, "shape": list(of.shape), "offset": offset}
        for name, (of, offset) in records.dtype.fields.items()
    ]
    size = -(-records.dtype.itemsize // 64) * 64
    payload = b"".join(record.tobytes().ljust(size, b"\0") for record in records)
    return listmode(payload, [1] * len(records), kind=4, record_bytes=size, fields=fields)
