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
from targets import TARGETS

# tests/fuzz/base/hdf5_target.hpp has this geometry, too.
TINY = {
    "name": "tiny", "tick_ps": 15.625,
    "geometry": {"channels": 3, "modules": {"y": 1, "z": 1}, "blocks": {"y": 1, "z": 1}, "crystals": {"y": 2, "z": 2},
                 "bdm_count": 3, "du_count": 1, "position_size": 4},
    "dimensions": {"ring_radius_mm": 10, "crystal_pitch_y_mm": 8, "crystal_pitch_z_mm": 8, "crystal_length_mm": 12,
                   "block_gap_y_mm": 0, "block_gap_z_mm": 0, "module_gap_z_mm": 0}}

ROW = {"count": 2, "pitch_mm": 4}
EVERY_PLACEMENT = {
    "name": "all", "tick_ps": 15.625, "position_size": 16, "frame_version": 2,
    "module_types": [
        {"name": "a", "time_resolution_ps": 300, "energy_resolution": 0.12, "layers": [
            {"y": {**ROW, "size_mm": 3.5, "gaps": [{"after": 1, "mm": 0.5}]}, "z": {"sizes_mm": [2, 3], "shift_mm": 0.5},
             "length_mm": 10, "gap_mm": 1, "count": 2, "material": "BGO", "attenuation_per_cm": 0.9}],
         "units": [{"layers": [0, 0]}, {"layers": [1, 1], "y": [0, 1], "z": [0, 1]}]},
        {"name": "b", "layers": [{"y": ROW, "z": ROW, "length_mm": 5}]}],
    "modules": [
        {"type": "a", "group": "inner", "ring": {"count": 6, "radius_mm": 40, "first_angle_deg": 10},
         "along_z": {"count": 2, "pitch_mm": 20, "middle_mm": 3}},
        {"type": "b", "group": "outer", "arc": {"count": 3, "of": 8, "radius_mm": 200}},
        {"type": "b", "polygon": {"sides": 3, "per_side": 2, "pitch_mm": 12, "radius_mm": 300}},
        {"type": "b", "box": {"x_mm": 800, "y_mm": 900, "per_side": 2, "pitch_mm": 12}},
        {"type": "b", "panel": {"radius_mm": 600, "angle_deg": 45, "count": 2, "pitch_mm": 12, "shift_mm": 5}},
        {"type": "b", "place": {"front_mm": [0, 0, 500], "outward": [0, 0, 1], "turn_deg": 30}}],
    "channel_map": {"units_per_bdm": 4},
    "good_pairs": {"min_angle_deg": 20, "between": [["inner", "inner"], ["inner", "outer"], ["", ""]], "max_z_difference_mm": 100,
                   "cylinder": {"radius_mm": 35, "length_mm": 60}},
    "rotation": {"tag_channel": 2, "counts_per_turn": 3600, "count_at_zero": 10}}

WORD = {"offset": 0, "bytes": 1}
LAYOUTS = {
    "blocks": {"name": "b", "datagram": {"byte_order": "big", "header_bytes": 4, "trailer_bytes": 1, "number": WORD},
               "block": {"byte_order": "little", "header_bytes": 4, "frames": {"offset": 1, "bytes": 1, "bits": 2},
                         "lost": {"offset": 2, "bytes": 1}},
               "frame": {"bytes": 8, "byte_order": "little", "bdm": {"in": "block", **WORD, "modulo": 3},
                         "du": {"in": "datagram", "offset": 1, "bytes": 1, "bits": 4}, "x": {"offset": 1, "bytes": 1},
                         "y": {"offset": 2, "bytes": 1, "pick": [{"low_bit": 4, "bits": 2}, {"low_bit": 0, "bits": 2}], "add": 1},
                         "energy": {"offset": 3, "bytes": 1, "table": [1, 2, None, 4]},
                         "temperature": {"in": "block", "offset": 3, "bytes": 1, "signed": True, "degrees_per_count": 0.5,
                                         "degrees_at_zero": 20}},
               "time": {"counter": [{"offset": 4, "bytes": 4, "invert": True}], "numerator": 3, "denominator": 7,
                        "roll_over": "near", "upper": [{"offset": 2, "bytes": 2}], "upper_in": "datagram"}},
    "kinds": {"name": "k", "datagram": {"byte_order": "little", "header_bytes": 8, "source": WORD,
                                        "sequence": {"offset": 1, "bytes": 1},
                                        "end_of_stream": {"offset": 2, "bytes": 1, "value": 9}},
              "frame": {"bytes": 8, "byte_order": "big", "kinds": {**WORD, "bits": 2, "hits": [0], "tags": [1, 2], "ignore": [3]},
                        "markers": [{"offset": 1, "bytes": 1, "bits": 1, "value": 0}], "bdm": 1, "du": 0,
                        "x": {"offset": 1, "bytes": 1}, "y": 3, "energy": {"offset": 2, "bytes": 2},
                        "tag": {"channel": {"offset": 1, "bytes": 1, "bits": 4}, "kind": 1, "value": [{"offset": 2, "bytes": 2}],
                                "counter": [{"offset": 4, "bytes": 4}]}},
              "time": {"counter": [{"offset": 4, "bytes": 4}], "roll_over": "count"}}}

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
        add_records(seeds, ("listmode", "recover"), kind, seeds.read(f"data/r/{kind}.plm"))
    add_records(seeds, ("seconds",), "seconds", seeds.read("data/r/seconds.plm"))


def add_records(seeds, targets, name, whole):
    for part, content in ((name, whole), (name + "-cut", whole[:len(whole) * 3 // 4])):
        for first in (0, 1):
            for target in targets:
                seeds.add(target, f"{part}-{first}", bytes([first]) + content)


def first_second(file):
    """The fields of the seconds, without words for people, and the first record."""
    header_bytes, record_bytes, description_bytes = (struct.unpack_from("<I", file, at)[0] for at in (12, 20, 28))
    fields = json.loads(file[40:40 + description_bytes])["fields"]
    record = file[header_bytes + 64:header_bytes + 64 + record_bytes]
    return [{key: field[key] for key in ("name", "type", "shape", "of", "offset")} for field in fields], record


def hdf5_and_tables(seeds, run):
    seeds.run("petsim", "make-detector", "--scanner", "tiny.json", "--output", "detector.h5")
    seeds.add("detector", "drawn", seeds.read("detector.h5"))
    seeds.add("spectra", "of-a-run", seeds.read(f"data/{run}/spectra.h5"))
    seeds.run("petcal", "derive", "normalisation", "--scanner", "tiny.json", "--run", f"data/{run}", "--cylinder", "0,0,0,9,16",
              "--output", "normalisation.h5")
    seeds.add("normalisation", "of-a-run", seeds.read("normalisation.h5"))
    # Three modules of two by two crystals: each two are a class of their own, or all are one.
    places = [[c // 2 % 2 for c in range(12)], [1 - c // 2 % 2 for c in range(12)], [c % 2 for c in range(12)], [1 - c % 2 for c in range(12)]]
    for name, pairs, classes in (("apart", [0, 1, 2, 1, 3, 4, 2, 4, 5], [[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]),
                                 ("one", [0] * 9, [[0], [1]])):
        tables = [[c // 4 for c in range(12)], *places, [2] * 3, [2] * 3, pairs, [0, 0, 0, 1, 0, 0, 1, 31, 2], *classes]
        seeds.add("normalisation", "classes-" + name, bytes([0, 3, len(classes[0])]) + bytes(sum(tables, [])))
    for bins, offsets in ((1, 0), (3, 1)):
        content = bytes([bins, offsets]) + bytes(i % 5 for i in range(48)) + struct.pack("<f", 0.5) * (12 * bins)
        seeds.add("raw_tables", f"{bins}-bins", content + struct.pack("<i", -7) * (12 * offsets))


def small_files(seeds, run):
    for name in ("r", run):
        seeds.add("ledger_rows", name, seeds.read(f"data/{name}/ledger.csv"))
    seeds.add("ledger_rows", "few", "from_ticks,to_ticks,a,b\n0,5,1,2\n5,9,,3\n9,9,-4,\n9,20,1,1\n")
    for form in ("sform", "qform"):
        for code, kind in ((4, "h"), (16, "f"), (64, "d")):
            values = struct.pack("<24" + kind, *range(24))
            seeds.add("nifti", f"{form}-{code}", nifti_header(form, code, 8 * struct.calcsize(kind)) + values)
    seeds.add("tap", "all", '{"kind": "coincidences"}')
    seeds.add("tap", "some", '{"kind": "triples", "prescale": 100}')
    seeds.add("tap", "singles", '{"kind": "singles", "prescale": 1}')
    token = "0123456789abcdef"
    seeds.add("control_token", "good", token + "\n\0Bearer " + token)
    seeds.add("control_token", "windows", 4 * token + "\r\n\0bearer " + token)
    seeds.add("control_token", "short", "0123\0Bearer 0123")


def imports(seeds):
    """Files of other software: our exports of a run, and what others write. tests/fuzz/petlm/import_files.cpp has the numbers."""
    csv, castor, safir, petsys_text, singles, groups, pairs, compact_groups, compact_pairs = (bytes([n]) for n in range(9))
    for kind in ("coincidences", "triples", "tags"):
        seeds.run("petlm", "export", "--format", "csv", f"data/g/{kind}.plm", "-o", f"{kind}.csv")
        lines = seeds.read(f"{kind}.csv")[:1500].rpartition(b"\n")[0]
        seeds.add("import_files", f"csv-{kind}", csv + b"\0" + lines)
        if kind != "tags":
            seeds.run("petlm", "export", "--format", "hdf5", f"data/g/{kind}.plm", "-o", f"{kind}.h5")
            seeds.add("import_hdf5", kind, seeds.read(f"{kind}.h5"))
    for name, columns, table in (("singles", b"", b"time,crystal,energy\n5,7,511.5\n18446744073709551615,0,1e+10\n"),
                                 ("declared", b"time=t:ns,crystal=id,energy=E:MeV", b"id;E;t\n5;0.511;1.0\n7;0.6615;0.25\n"),
                                 ("numbered", b"time=#1:ps,crystal_a=#2,dt=#3,crystal_b=#4", b"100,1,-2,3\n200,2,3,4\n")):
        seeds.add("import_files", f"csv-{name}", csv + columns + b"\0" + table)
    seeds.run("petlm", "export", "--format", "stir", "data/g", "-o", "stir")
    events = struct.pack("<IBfII", 0, 0, -31.25, 0, 11) + struct.pack("<IBfII", 1, 0, 15.625, 3, 5)
    header = (b"Data filename: a.cdf\nNumber of events: 2\nData mode: list-mode\nData type: PET\nStart time (s): 0\nDuration (s): 1\n"
              b"TOF information flag: 1\nCoincidence kind flag: 1\n")
    seeds.add("import_files", "castor-tof", castor + header + b"\0" + events)
    seeds.add("import_files", "castor-plain", castor + header.split(b"TOF")[0] + b"\0" + struct.pack("<6I", 0, 0, 11, 1, 3, 5))
    records = seeds.read("stir/listmode.clm.safir")[:32 + 8 * 40]
    seeds.add("import_files", "safir-export", safir + b"\0" + records)
    seeds.add("import_files", "safir-map", safir + seeds.read("stir/crystal_map.txt") + b"\0" + records)
    hit, other = struct.pack("<qfi", 1000, 255.5, 1), struct.pack("<qfi", 1500, 250.5, 300)
    for name, kind, content in (("singles", singles, hit + other), ("groups", groups, b"\2\0" + hit + b"\2\1" + other),
                                ("pairs", pairs, b"\1\0" + hit + b"\1\0" + other),
                                ("compact-groups", compact_groups, b"\2" + hit + other),
                                ("compact-pairs", compact_pairs, b"\1\1" + hit + other),
                                ("text-singles", petsys_text, b"1000\t255.5\t1\n"),
                                ("text-groups", petsys_text, b"2\t0\t1000\t255.5\t1\n2\t1\t1000\t2.5\t2\n"),
                                ("text-pairs", petsys_text, b"1\t0\t1000\t255.5\t1\t1\t0\t1500\t250.5\t300\n"),
                                ("text-compact", petsys_text, b"1\t1\n1000\t5\t1\n1500\t6\t2\n")):
        seeds.add("import_files", "petsys-" + name, kind + b"\0" + content)


def nifti_header(form, code, bits):
    header = bytearray(352)
    struct.pack_into("<i", header, 0, 348)
    struct.pack_into("<8h", header, 40, 3, 2, 3, 4, 1, 1, 1, 1)
    struct.pack_into("<hh", header, 70, code, bits)
    struct.pack_into("<8f", header, 76, 1, 2, 2, 2, 0, 0, 0, 0)
    struct.pack_into("<fff", header, 108, 352, 1, 0)
    header[123] = 2  # mm
    struct.pack_into("<hh", header, 252, form == "qform", form == "sform")
    struct.pack_into("<6f", header, 256, 0, 0, 0, -1, -2, -3)
    struct.pack_into("<12f", header, 280, 2, 0, 0, -1, 0, 2, 0, -2, 0, 0, 2, -3)
    header[344:348] = b"n+1\0"
    return bytes(header)


def gammas_and_tags(seeds):
    """A run with triples, gates, triggers and a bed that moves."""
    seeds.write_json("scandium.json", {"sources": [
        {"type": "point", "position_mm": [0, 0, 0], "activity_MBq": 2, "nuclide": "Sc-44"}]})
    seeds.run("petsim", "--crystals", "surface", "--scanner", "tiny.json", "--calibration", "offsets.h5", "--source",
              "scandium.json", "--duration-s", "0.01", "--cycle", "0.0005,0.1", "--tag-trigger", "0", "--tag-gate", "1:0.2-0.7",
              "--tag-position", "2", "--bed-steps", "0.1,0.001", "--write", "gammas.pcap", "--quiet")
    with open(os.path.join(seeds.work, "petacqd.json"), encoding="utf-8") as file:
        configuration = json.load(file)
    configuration["gammas"] = {"lower_keV": 800, "upper_keV": 1400, "before_ns": 20, "after_ns": 100, "delay_ns": 500}
    configuration["energy"] = {"lower_keV": 350, "upper_keV": 650}
    configuration["spectra"] = {"enabled": True}
    seeds.write_json("gammas.json", configuration)
    seeds.run("petacqd", "--config", "gammas.json", "--replay", "gammas.pcap", "--run", "g")
    for kind in ("triples", "tags", "seconds"):
        add_records(seeds, (kind,), kind + "-of-gammas", seeds.read(f"data/g/{kind}.plm"))
    fields, record = first_second(seeds.read("data/g/seconds.plm"))
    seeds.add("seconds", "fields", json.dumps(fields).encode() + b"\0" + record)
    with open(os.path.join(seeds.work, "data", "g", "run.json"), encoding="utf-8") as file:
        run = json.load(file)
    generator = random.Random(2)
    ranges = b"\0" + generator.randbytes(40)
    seeds.add("coverage", "run", json.dumps({"description": None, "run": {"coverage": run["coverage"]}}).encode() + ranges)
    seeds.add("coverage", "file", json.dumps({"description": {"coverage": run["coverage"]}, "run": None}).encode() + ranges)
    del run["coverage"]
    kept = {key: run[key] for key in ("configuration", "scanner", "operator", "run_id", "start_ticks", "stop_ticks", "start_utc",
                                      "stop_utc", "expected_randoms", "calibration_sha256") if key in run}
    of_1_0 = {"run_id": "g", "tick_ps": 15.625, "window_ticks": 400, "delay_ticks": 6400, "delayeds": "shifted_group",
              "operator": {"nuclide": "F-18", "half_life_s": 6586.2, "branching_ratio": 0.967, "activity_MBq": 10,
                           "assay_utc": "2026-11-20T19:45:00.5Z"}}
    for name, more in (("plain", {}), ("cut", {"cut": {"from_ticks": 1, "to_ticks": 9, "gate": "1", "open_ticks": 3}}),
                       ("gate", {"gate": {"live_ticks": 4}}), ("resorted", {"resorted": {"coincidence": {"window_ticks": 9}}})):
        seeds.add("coverage", "of-1.0-" + name, json.dumps({"description": {**of_1_0, **more}, "run": kept}).encode() + ranges)
        seeds.add("coverage", "of-1.0-" + name + "-alone", json.dumps({"description": {**of_1_0, **more}, "run": None}).encode())
    for i in range(8):  # tags, of which the target makes a file
        content = bytes([2])
        for number in range(60):
            kind = generator.choice([0, 1]) if i < 6 else generator.randrange(6)
            content += struct.pack("<HHBBBB", generator.randrange(1 << 16) if i % 2 else 1000 + 2 * generator.randrange(200),
                                   number if kind == 0 else number % 2, 0, generator.randrange(1 + i % 4), kind, 0)
        seeds.add("tags", f"made-{i}", content)


def scanners_and_layouts(seeds, source):
    for path in glob.glob(os.path.join(source, "config", "examples", "scanners", "*.scanner.json")):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        seeds.add("arrangement" if "modules" in document else "scanner", os.path.basename(path), json.dumps(document))
    seeds.add("arrangement", "every-placement", json.dumps(EVERY_PLACEMENT))
    generator = random.Random(3)
    for path in glob.glob(os.path.join(source, "config", "examples", "*.layout.json")):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        header = document["datagram"].get("header_bytes", 0)
        datagrams = b""
        for frames in (1, 3, 8):
            payload = generator.randbytes(header + frames * document["frame"]["bytes"])
            datagrams += struct.pack("<H", len(payload)) + payload
        seeds.add("layout", os.path.basename(path), json.dumps(document).encode() + b"\0" + datagrams)
    for name, layout in LAYOUTS.items():
        payload = bytes(range(64)) * 4
        seeds.add("layout", name, json.dumps(layout).encode() + b"\0" + struct.pack("<H", len(payload)) + payload)


def texts(seeds, source):
    for i, line in enumerate(LINES):
        seeds.add("json_rpc", f"line-{i}", line)
    for i, request in enumerate(REQUESTS):
        for first in (0, 1, 2):  # without, with the token, with a wrong one
            seeds.add("http", f"request-{i}-{first}", chr(first) + request)
    for path in glob.glob(os.path.join(source, "config", "examples", "*.json")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if not path.endswith(".layout.json"):
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


# What the documents of two hosts may say of their runs.
PATCHES = {
    "sound": {}, "not-an-object": {"a": [], "b": None}, "cut-off": {"a": {"state": "running"}, "b": {"state": "interrupted"}},
    "other-name": {"b": {"run_id": "s"}}, "other-window": {"b": {"configuration": {"coincidence": {"window_ticks": 41}}}},
    "other-calibration": {"b": {"calibration_sha256": "def"}}, "other-scanner": {"b": {"scanner": {"tick_ps": 2000}}},
    "unwritten": {"a": {"ledger": {"saved_singles": {"write_failed": 5}}}},
    "taken": {"a": {"taken": {"start_ticks": 0, "stop_ticks": 2**64 - 1}}, "b": {"taken": {"start_ticks": -1, "stop_ticks": 0.5}}},
    "stopped": {"a": {"stop_reason": "request", "operator": {"nuclide": "F-18", "activity_MBq": 12}}},
    "no-scanner": {"a": {"scanner": None}}, "no-configuration": {"b": {"configuration": None}}}


def unions(seeds):
    generator = random.Random(2)
    for name, patches in PATCHES.items():
        seeds.add("union", name, json.dumps(patches).encode() + b"\0" + generator.randbytes(200))


def main():
    programs, source, directory = sys.argv[1:]
    seeds = Seeds(os.path.abspath(programs), os.path.abspath(directory))
    try:
        calibration_and_streams(seeds)
        list_mode(seeds, source)
        gammas_and_tags(seeds)
        hdf5_and_tables(seeds, "g")
        small_files(seeds, "g")
        imports(seeds)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd)}: {error.stderr.decode()}")
    texts(seeds, source)
    scanners_and_layouts(seeds, source)
    events(seeds)
    unions(seeds)
    shutil.rmtree(seeds.work)
    if set(os.listdir(directory)) != set(TARGETS):
        sys.exit(f"expected seeds of each target of targets.py, and of no other: {set(os.listdir(directory)) ^ set(TARGETS)}")


if __name__ == "__main__":
    main()
