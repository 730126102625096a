"""Makes the seeds of the fuzz targets: DIRECTORY/TARGET/NAME.

    seeds.py BIN SOURCE DIRECTORY

Files come from the programs in BIN, texts from here. The same programs give the same seeds.
"""

import glob
import json
import os
import random
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))
from datagrams import read_capture, write_pcapng  # noqa: E402

# tests/fuzz/calibration.cpp has this geometry, too.
TINY = {
    "name": "tiny", "tick_ps": 15.625,
    "geometry": {"channels": 3, "modules": {"y": 1, "z": 1}, "blocks": {"y": 1, "z": 1}, "crystals": {"y": 2, "z": 2},
                 "bdm_count": 3, "du_count": 1, "position_size": 4},
    "dimensions": {"ring_radius_mm": 10, "crystal_pitch_y_mm": 8, "crystal_pitch_z_mm": 8, "crystal_length_mm": 12,
                   "block_gap_y_mm": 0, "block_gap_z_mm": 0, "module_gap_z_mm": 0}}

CALLS = [
    {"jsonrpc": "2.0", "id": 1, "method": "status"},
    {"jsonrpc": "2.0", "id": "a", "method": "start", "params": {"run": "r", "duration_s": 2.5, "note": "n \u00e9"}},
    {"jsonrpc": "2.0", "id": 2, "method": "start",
     "params": {"nuclide": "F-18", "activity_MBq": 37, "assay_utc": "2026-11-20T19:45:00.5+01:00", "bed_mm": -80,
                "subject": "mouse", "keys": {"tracer": "FDG"}}},
    {"jsonrpc": "2.0", "id": None, "method": "stop", "params": []},
    {"jsonrpc": "2.0", "method": "subscribe", "params": {"interval_s": 0.1}},
    {"jsonrpc": "2.0", "id": 1.5, "method": "runs", "params": {"limit": 3, "before": "x"}},
    {"jsonrpc": "1.0", "id": [], "method": 1},
]
LINES = [json.dumps(call) for call in CALLS] + [json.dumps(CALLS), "[]", "{", "[" * 80, '{"id":"\\ud800"}', "\xff\x00"]

REQUESTS = [
    "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /status HTTP/1.1\r\nHost: 127.0.0.1:80\r\nConnection: close\r\n\r\nGET /metrics HTTP/1.0\r\n\r\n",
    "HEAD /health?x=1 HTTP/1.1\r\nHost: [::1]:9\r\nAccept-Encoding: gzip\r\n\r\n",
    "POST /control/start HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n"
    'Content-Type: application/json; charset=utf-8\r\nContent-Length: 11\r\n\r\n{"run":"r"}',
    "POST /control/stop HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    "2\r\n{}\r\n0\r\n\r\n",
    "POST /control/stop HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "GET http://localhost/series.json HTTP/1.1\r\nHost: other.example\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
]


class Seeds:
    def __init__(self, programs, directory):
        self.programs = programs
        self.directory = directory
        self.work = os.path.join(directory, "work")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(os.path.join(self.work, "data"))

    def add(self, target, name, content):
        folder = os.path.join(self.directory, target)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("latin-1", "replace"))

    def run(self, program, *arguments):
        subprocess.run([os.path.join(self.programs, program), *arguments], check=True, cwd=self.work,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def read(self, name):
        with open(os.path.join(self.work, name), "rb") as file:
            return file.read()

    def write_json(self, name, document):
        with open(os.path.join(self.work, name), "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)


def calibration_and_streams(seeds):
    seeds.write_json("tiny.json", TINY)
    seeds.add("scanner", "tiny", json.dumps(TINY))
    for name, more in (("plain", ["--bins", "1"]), ("offsets", ["--bins", "3", "--time-offset-ticks", "50"])):
        seeds.run("petcal", "make", "--scanner", "tiny.json", "--output", name + ".h5", *more)
        seeds.add("calibration", name, seeds.read(name + ".h5"))
    for framing in ("sequenced", "bare"):
        seeds.run("petsim", "--crystals", "surface", "--scanner", "tiny.json", "--calibration", "offsets.h5", "--point", "0,0,0,0.5", "--duration-s",
                  "0.002", "--framing", framing, "--payload", "256", "--write", framing + ".pcap", "--quiet")
        capture = seeds.read(framing + ".pcap")
        seeds.add("pcap", framing, capture[:6000])
        write_pcapng(os.path.join(seeds.work, "pcapng"), read_capture(os.path.join(seeds.work, framing + ".pcap"))[:20])
        seeds.add("pcap", framing + "-ng", seeds.read("pcapng"))
        seeds.add("wire", framing, bytes([framing == "bare"]) + wire_input(capture))
    # Many modules: frames of version 2.
    large = json.loads(json.dumps(TINY))
    large["frame_version"] = 2
    large["geometry"].update(channels=300, bdm_count=300)
    large["dimensions"]["ring_radius_mm"] = 900
    seeds.write_json("large.json", large)
    seeds.add("scanner", "large", json.dumps(large))
    seeds.run("petcal", "make", "--scanner", "large.json", "--output", "large.h5", "--bins", "1")
    seeds.run("petsim", "--crystals", "surface", "--scanner", "large.json", "--calibration", "large.h5", "--point", "0,0,0,0.5", "--duration-s",
              "0.002", "--payload", "256", "--sources", "5", "--write", "large.pcap", "--quiet")
    seeds.add("wire", "version-2", bytes([8]) + wire_input(seeds.read("large.pcap")))


def wire_input(capture):
    """The payloads of the first packets, each after its length."""
    out, at = b"", 24
    while at + 16 <= len(capture) and len(out) < 3000:
        size = struct.unpack_from("<I", capture, at + 8)[0]
        packet = capture[at + 16:at + 16 + size]
        start = packet.find(b"\x45") + 28  # behind the headers of IP and UDP
        out += struct.pack("<H", len(packet) - start) + packet[start:]
        at += 16 + size
    return out


def list_mode(seeds, source):
    """Files of both kinds, whole and cut, with and without the request to set checksums right."""
    with open(os.path.join(source, "config", "petacqd.schema.json"), encoding="utf-8") as file:
        keys = json.load(file)["properties"]["sources"]["properties"]
    seeds.write_json("petacqd.json", {
        "sources": {"accept_any": True} if "accept_any" in keys else {},
        "scanner": "tiny.json", "calibration": "offsets.h5", "data_dir": "data",
        "receive": {"sockets": [{"address": "127.0.0.1", "port": 9601}]},
        "coincidence": {"window_ticks": 400}, "pipeline": {"backend": "cpu", "threads": 1},
        "listmode": {"block_bytes": 4096, "write_singles": True}, "control": {"socket": "control.sock"}})
    seeds.run("petacqd", "--config", "petacqd.json", "--replay", "sequenced.pcap", "--run", "r")
    for kind in ("coincidences", "singles"):
        whole = seeds.read(f"data/r/{kind}.plm")
        for name, content in ((kind, whole), (kind + "-cut", whole[:len(whole) * 3 // 4])):
            for first in (0, 1):
                for target in ("listmode", "recover"):
                    seeds.add(target, f"{name}-{first}", bytes([first]) + content)


def texts(seeds, source):
    for i, line in enumerate(LINES):
        seeds.add("json_rpc", f"line-{i}", line)
    for i, request in enumerate(REQUESTS):
        for first in (0, 1):  # without and with the token
            seeds.add("http", f"request-{i}-{first}", chr(first) + request)
    for path in glob.glob(os.path.join(source, "config", "examples", "*.json")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        seeds.add("scanner" if path.endswith(".scanner.json") else "configuration", os.path.basename(path), text)


def events(seeds):
    """Events of the source tracker, from quiet to wild."""
    generator = random.Random(1)
    for wild in range(8):
        for choice in range(6):
            content = bytearray([choice])
            for _ in range(200):
                kind = generator.choice([0x60, 0x80] * (9 - wild) + [0x00, 0x00] + [0x20, 0x40, 0xA0, 0xC0, 0xE0] * (wild > 0))
                content += bytes([kind | generator.choice([2, 2, 2, 3, 31 if wild > 4 else 2]), generator.randrange(4)])
                content += generator.randbytes({0x00: 0, 0x20: 2, 0x40: 0, 0xA0: 9, 0xC0: 9}.get(kind, 2))
            seeds.add("tracker", f"events-{wild}-{choice}", bytes(content))


def main():
    programs, source, directory = sys.argv[1:]
    seeds = Seeds(os.path.abspath(programs), os.path.abspath(directory))
    try:
        calibration_and_streams(seeds)
        list_mode(seeds, source)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd)}: {error.stderr.decode()}")
    texts(seeds, source)
    events(seeds)
    shutil.rmtree(seeds.work)


if __name__ == "__main__":
    main()
