"""The programs at work on the set: petacqd makes singles of a capture, petlm resort makes coincidences of these."""

import json
import os
import resource
import struct
import subprocess

import made_set
from rules import Single


def cpu_seconds_of_programs():
    """Of all that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Programs:
    def __init__(self, binaries, directory):
        self._binaries = os.path.abspath(binaries)
        self._directory = directory
        made_set.write_setup(directory)
        self._run("petcal", "import", "--scanner", "referee.scanner.json", "--position-table", "positions", "--energy-factor", "factors",
                  "--time-offset", "offsets", "--bins", "1", "--output", "referee.h5")

    def _run(self, name, *arguments):
        done = subprocess.run([os.path.join(self._binaries, name), *arguments], cwd=self._directory, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{name} {' '.join(arguments)}: exit status {done.returncode}: {done.stderr}")
        return done.stdout

    def version(self):
        return self._run("petlm", "--version").strip()

    def singles(self, scene):
        """Of the capture of the scene, by a replay."""
        self._run("petacqd", "--config", "petacqd.json", "--replay", f"{scene.name}.pcap", "--run", scene.name)
        return [Single(*row) for row in struct.iter_unpack("<QIf", self._records(scene.name, "singles.plm"))]

    def pairs(self, scene, mode, policy):
        """(earlier single, later single) of each coincidence of the scene, in order; and the CPU seconds that it took."""
        output = f"{scene.name}.{mode}.{policy}.plm"
        begin = cpu_seconds_of_programs()
        self._run("petlm", "resort", scene.name, "--window-mode", mode, "--policy", policy, "--backend", "cpu", "--no-delay", "--output",
                  output)
        took = cpu_seconds_of_programs() - begin
        pairs = [(Single(at, crystal_a, energy_a), Single(at + dt, crystal_b, energy_b))
                 for at, dt, crystal_a, crystal_b, energy_a, energy_b in struct.iter_unpack("<QIIIff4x", self._records(output))]
        return sorted(pairs), took

    def _records(self, *path):
        """The records of a list-mode file: docs/reference/list-mode-format.md."""
        with open(os.path.join(self._directory, *path), "rb") as file:
            data = file.read()
        at, record_bytes, described_bytes = (struct.unpack_from("<I", data, offset)[0] for offset in (12, 20, 28))
        described = json.loads(data[40 : 40 + described_bytes])
        if described.get("compression", "none") != "none":
            raise RuntimeError(f"{os.path.join(*path)}: expected blocks without compression")
        payload = []
        while data[at : at + 8] == b"PLMBLOCK":
            size = struct.unpack_from("<I", data, at + 16)[0] * record_bytes
            payload.append(data[at + 64 : at + 64 + size])
            at += 64 + size
        return b"".join(payload)
