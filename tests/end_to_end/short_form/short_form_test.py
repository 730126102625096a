"""Scanners in the short form give what they gave before there was a long form: records, seconds, the ledger, exports, simulations.

    short_form_test.py DIRECTORY_OF_PROGRAMS SOURCE [--all | --write]

sha256.json has the sums (their first 16 digits) of 200 random scanners and of the examples, by programs from before the long
form. Its lists name the fields and columns that there were; files may have more by now. --all compares all instead of a few;
--write makes the file."""

import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import made_ring

HERE = os.path.dirname(os.path.abspath(__file__))
BIN, SOURCE, *OPTIONS = os.path.abspath(sys.argv[1]), *sys.argv[2:]
SUMS = os.path.join(HERE, "sha256.json")
EXAMPLES = ("small", "mouse")
ALL = (*map(str, range(200)), *EXAMPLES)
# Together they have both modes, both rules of delayeds, one ring of modules and several.
FEW = ("0", "1", "2", "small")


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def records_of(path):
    """The description of a list-mode file, and its records: docs/reference/list-mode-format.md."""
    data = read(path)
    at, record_bytes, described_bytes = (struct.unpack_from("<I", data, offset)[0] for offset in (12, 20, 28))
    payload = []
    while data[at : at + 8] == b"PLMBLOCK":
        size = struct.unpack_from("<I", data, at + 16)[0] * record_bytes
        payload.append(data[at + 64 : at + 64 + size])
        at += 64 + size
    joined = b"".join(payload)
    return json.loads(data[40 : 40 + described_bytes]), [joined[i : i + record_bytes] for i in range(0, len(joined), record_bytes)]


def in_steps(numbers):
    """Places in 1e-4 mm: the last bits of a sine are not the same on all machines."""
    return ",".join(str(round(number * 1e4)) for number in numbers).encode()


class Run:
    """A replay in a directory, and what it holds."""

    def __init__(self, directory, name):
        self._directory = directory
        dice = made_ring.Dice(name)
        if name in EXAMPLES:
            self._scanner = json.loads(read(os.path.join(SOURCE, "config", "examples", f"{name}.scanner.json")))
        else:
            self._scanner = made_ring.scanner(dice)
        write(self._file("ring.scanner.json"), json.dumps(self._scanner).encode())
        self._calibrate(name, dice)
        rules = made_ring.configuration(self._scanner, dice)
        write(self._file("petacqd.json"), json.dumps({
            "scanner": "ring.scanner.json", "calibration": "ring.h5", "data_dir": ".", "control": {"socket": "control.sock"},
            "http": {"listen": ""}, "listmode": {"write_singles": True},
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}], "lock_memory": False, "batch_count": 32,
                        "batch_bytes": 262144}, **rules}).encode())
        made_ring.capture(self._file("stream.pcap"), self._scanner, rules["coincidence"]["window_ticks"], dice)
        # 65: the verdict on the data is bad.
        self._program("petacqd", "--config", "petacqd.json", "--replay", "stream.pcap", "--run", "run", good=(0, 65))

    def _file(self, *names):
        return os.path.join(self._directory, *names)

    def _program(self, name, *arguments, good=(0,)):
        done = subprocess.run([os.path.join(BIN, name), *arguments], cwd=self._directory, capture_output=True, text=True, check=False)
        if done.returncode not in good:
            raise RuntimeError(f"{name} {arguments}: {done.returncode}: {done.stderr}")

    def _calibrate(self, name, dice):
        if name in EXAMPLES:
            self._program("petcal", "make", "--scanner", "ring.scanner.json", "--time-offset-ticks", "40", "--output", "ring.h5")
            return
        for file, table in zip(("positions", "factors", "offsets"), made_ring.calibration(self._scanner, dice)):
            write(self._file(file), table)
        self._program("petcal", "import", "--scanner", "ring.scanner.json", "--position-table", "positions", "--energy-factor", "factors",
                      "--time-offset", "offsets", "--bins", str(made_ring.BINS), "--output", "ring.h5")

    def records(self):
        return b"".join(record for name in ("coincidences", "singles", "tags") for record in records_of(self._file("run", f"{name}.plm"))[1])

    def seconds(self, wanted):
        """The fields of that name of all seconds; None: those that are whole numbers. Real ones are estimates, or measured."""
        described, records = records_of(self._file("run", "seconds.plm"))
        fields = {field["name"]: field for field in described["fields"] if field["type"][1] in "ui"}
        out = []
        for name in wanted or fields:
            size = int(fields[name]["type"][2:])
            for length in fields[name]["shape"]:
                size *= length
            out += [record[fields[name]["offset"] : fields[name]["offset"] + size] for record in records]
        return wanted or list(fields), b"".join(out)

    def ledger(self, wanted):
        """The columns of that name; None: all."""
        names, *rows = [line.split(",") for line in read(self._file("run", "ledger.csv")).decode().split()]
        values = [row[names.index(column)] for row in rows for column in wanted or names]
        return wanted or names, ",".join(values).encode()

    def exports(self):
        self._program("petlm", "export", "--format", "csv", "run", "--output", "pairs.csv")
        self._program("petlm", "export", "--format", "castor", "run", "--output", "castor", "--depth-mm", "2")
        table = read(self._file("castor", f"{self._scanner['name']}.lut"))
        out = [read(self._file("pairs.csv")), in_steps(struct.unpack(f"<{len(table) // 4}f", table))]
        geometry = self._scanner["geometry"]
        if geometry["bdm_count"] // geometry["modules"]["z"] * geometry["blocks"]["y"] * geometry["crystals"]["y"] % 2 == 0:
            # STIR takes no other rings.
            self._program("petlm", "export", "--format", "stir", "run", "--output", "stir", "--depth-mm", "2")
            lines = [line.split() for line in read(self._file("stir", "crystal_map.txt")).decode().splitlines() if not line.startswith("#")]
            out += [read(self._file("stir", "listmode.clm.safir")), in_steps(float(word) for line in lines for word in line)]
        return b"\0".join(out)

    def simulated(self):
        self._program("petsim", "--scanner", "ring.scanner.json", "--calibration", "ring.h5", "--point", "0.1,0.1,0.5,1", "--threads", "1",
                      "--duration-s", "0.02", "--quiet", "--write", "simulated.pcap")
        return read(self._file("simulated.pcap"))


def sums(name, fields, columns):
    """Of all that a scanner gives, and the names that were compared."""
    with tempfile.TemporaryDirectory() as directory:
        run = Run(directory, name)
        fields, seconds = run.seconds(fields)
        columns, ledger = run.ledger(columns)
        parts = {"records": run.records(), "seconds": seconds, "ledger": ledger, "exports": run.exports(), "simulated": run.simulated()}
    return {part: hashlib.sha256(data).hexdigest()[:16] for part, data in parts.items()}, fields, columns


class ShortForm(unittest.TestCase):
    def test_all_is_as_before(self):
        stored = json.loads(read(SUMS))
        self.assertEqual(set(stored["sums"]), set(ALL))
        for name in ALL if "--all" in OPTIONS else FEW:
            with self.subTest(name):
                self.assertEqual(sums(name, stored["seconds"], stored["ledger"])[0], stored["sums"][name])


def write_sums():
    found, fields, columns = {}, None, None
    for name in ALL:
        found[name], fields, columns = sums(name, fields, columns)
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(of)}" for name, of in found.items())
    lists = f'"seconds": {json.dumps(fields)},\n"ledger": {json.dumps(columns)}'
    write(SUMS, f'{{{lists},\n"sums": {{\n{rows}}}}}\n'.encode())


if __name__ == "__main__":
    if "--write" in OPTIONS:
        write_sums()
    else:
        unittest.main(argv=sys.argv[:1])
