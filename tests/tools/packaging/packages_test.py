"""The packages that tools/package has built: packages_test.py BUILD ROOT

Licences of all sources by `reuse lint`; hardened programs; a bill of materials in each package and beside it, valid by the published schema of
CycloneDX, that names all that the programs are linked with; no place of the build, user or host in any file; no time but that of the sources.
"""
import getpass
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import zipfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import hardening_test

BUILD, ROOT = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
PACKAGES = {file.name.split("_")[0]: file for file in BUILD.glob("*.deb")}
WHEEL = next(BUILD.glob("petacq-*.whl"))


class Licences(unittest.TestCase):
    def test_every_file_has_one(self):
        with tempfile.TemporaryDirectory() as folder:
            sources = ROOT
            if not (ROOT / ".git").exists():  # which would say that what is built is no source
                sources = pathlib.Path(folder, "sources")
                shutil.copytree(ROOT, sources, ignore=lambda path, names: ["build"] if pathlib.Path(path) == ROOT else [])
            done = subprocess.run([pathlib.Path(sys.executable).parent / "reuse", "--root", sources, "lint"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Unpacked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.kept.name)
        for name, file in PACKAGES.items():
            subprocess.run(["dpkg-deb", "-R", file, cls.root / name], check=True)
        with zipfile.ZipFile(WHEEL) as archive:
            archive.extractall(cls.root / "wheel")

    @classmethod
    def tearDownClass(cls):
        cls.kept.cleanup()


class Programs(Unpacked):
    def test_hardened(self):
        self.assertIn("petacqd", PACKAGES)
        for name in PACKAGES:
            programs = list(hardening_test.elf_files(self.root / name))
            self.assertTrue(programs, name)
            for program in programs:
                self.assertEqual(list(hardening_test.missing(program)), [], program)
        self.assertEqual(list(hardening_test.uncovered(BUILD / "compile_commands.json")), [])

    def test_nothing_of_the_build(self):
        # Names of a user and a host that are words of the documents would be found everywhere.
        traces = [str(ROOT).encode(), str(BUILD).encode(), b"tmpxft_"]
        traces += [name.encode() for name in (socket.gethostname(), getpass.getuser()) if len(name) > 5]
        for path in self.root.rglob("*"):
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
                for trace in traces:
                    self.assertNotIn(trace, content, path)

    def test_one_time(self):
        for name, file in PACKAGES.items():
            listed = subprocess.run(["dpkg-deb", "-c", file], capture_output=True, text=True, check=True, env=os.environ | {"TZ": "UTC"}).stdout
            self.assertEqual(len(set(re.findall(r" (\d{4}-\d\d-\d\d \d\d:\d\d) ", listed))), 1, name)
        with zipfile.ZipFile(WHEEL) as archive:
            self.assertEqual(len({entry.date_time for entry in archive.infolist()}), 1)


class BillsOfMaterials(Unpacked):
    def bills(self):
        for name in PACKAGES:
            yield name, self.root / name / "usr/share/doc" / name / f"{name}.cdx.json"
        yield "petacq", next((self.root / "wheel").glob("*.dist-info")) / "sboms/petacq.cdx.json"

    def test_valid_and_beside_the_package(self):
        validator = JsonStrictValidator(SchemaVersion.V1_5)
        self.assertIsNotNone(validator.validate_str('{"bomFormat": "CycloneDX", "specVersion": "1.5", "components": 7}'))
        for name, path in self.bills():
            text = path.read_text(encoding="utf-8")
            self.assertIsNone(validator.validate_str(text), path)
            self.assertEqual((BUILD / f"{name}.cdx.json").read_text(encoding="utf-8"), text)
            bill = json.loads(text)
            self.assertEqual(bill["metadata"]["component"]["name"], name)
            known = {one["bom-ref"] for one in bill["components"]}
            for one in bill["dependencies"]:
                for ref in one["dependsOn"]:
                    self.assertTrue(ref in known or ref.startswith(f"{name}/"), ref)

    def test_every_package_that_a_package_depends_on(self):
        # Of virtual packages those that provide them.
        listed = subprocess.run(["dpkg-query", "-W", "-f", "${Package}: ${Provides}\n"], capture_output=True, text=True, check=True).stdout
        providers = {virtual: line.split(":")[0] for line in listed.splitlines() for virtual in re.findall(r"[\w.+-]+(?= \(|,|$)", line.split(": ", 1)[1])}
        for name, path in self.bills():
            if name not in PACKAGES:
                continue
            bill = json.loads(path.read_text(encoding="utf-8"))
            named = {one["name"] for one in bill["components"]}
            depends = subprocess.run(["dpkg-deb", "-f", PACKAGES[name], "Depends"], capture_output=True, text=True, check=True).stdout
            linked = {re.match(r"[\w.+-]+", one.strip()).group() for one in depends.split(",")}
            # What is not linked: other programs, fonts and the packages of this source.
            linked -= {"petacqd", "procps", "systemd", "fonts-dejavu-core", "openmpi-bin"}
            self.assertEqual({one for one in linked - named if providers.get(one) not in named}, set(), name)
            for header in ("libboost1.74-dev", "nlohmann-json3-dev", "libconcurrentqueue-dev", "libeigen3-dev", "libcli11-dev"):
                if name == "petacqd":
                    self.assertTrue(any(re.fullmatch(header.replace("1.74", r"[\d.]+"), one) for one in named), header)
            runtime = any(b"cudaErrorInsufficientDriver" in program.read_bytes() for program in hardening_test.elf_files(self.root / name))
            self.assertEqual("cuda-toolkit" in named, runtime, name)

    def test_requirements_of_the_module(self):
        bill = json.loads((BUILD / "petacq.cdx.json").read_text(encoding="utf-8"))
        scopes = {one["name"]: one["scope"] for one in bill["components"]}
        self.assertEqual({name for name, scope in scopes.items() if scope == "required"}, {"numpy"})
        self.assertLessEqual({"h5py", "zstandard", "petsird", "pandas", "pydicom", "google-crc32c"}, set(scopes))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
