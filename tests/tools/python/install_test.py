"""tools/packaging/wheel builds the module, and pip installs it with its types and its program. Needs pip, setuptools, wheel and venv;
downloads nothing."""

import functools
import importlib.util
import os
import re
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path

import support

for needed, package in {"pip": "pip", "setuptools": "setuptools", "wheel": "wheel", "ensurepip": "venv"}.items():
    if importlib.util.find_spec(needed) is None:
        raise unittest.SkipTest(f"{needed} is not installed (python3-{package})")

SCRIPT = support.SOURCE / "tools" / "packaging" / "wheel"
MODULE = support.SOURCE / "tools" / "python" / "src" / "petacq"
FILES = {str(path.relative_to(MODULE)) for path in MODULE.rglob("*.py")} | {"py.typed"}


def build(*arguments, python=sys.executable):
    environment = {**os.environ, "PYTHON": str(python)}
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, env=environment, timeout=support.PATIENCE_S)


@functools.cache
def wheel() -> Path:
    done = build(support.scratch() / "wheels")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


class Install(unittest.TestCase):
    def test_the_wheel(self):
        version = re.search(r"^project\(petacqd VERSION (\S+)", (support.SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
        self.assertEqual(wheel().name, f"petacq-{version}-py3-none-any.whl")
        self.assertEqual({path.name for path in wheel().parent.iterdir()}, {wheel().name, "petacq.cdx.json"})
        with zipfile.ZipFile(wheel()) as archive:
            names = archive.namelist()
            metadata = archive.read(f"petacq-{version}.dist-info/METADATA").decode()
        self.assertEqual({name.removeprefix("petacq/") for name in names if name.startswith("petacq/")}, FILES)
        self.assertIn("py.typed", FILES)
        self.assertTrue(any(name.endswith("/LICENSE") for name in names))
        self.assertIn(f"Version: {version}\n", metadata)
        self.assertRegex(metadata, r"Requires-Dist: numpy ?\(?>=1.24\)?\n")
        self.assertFalse(any((MODULE.parents[1] / name).exists() for name in ("build", "src/petacq.egg-info")))

    def test_it_is_installed_and_used(self):
        page = (support.SOURCE / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
        commands = re.search(r"```sh\n(.*?)```", page, re.DOTALL)[1]
        commands, wheels = re.subn(r"petacq-VERSION-py3-none-any.whl", str(wheel()), commands)
        self.assertEqual(wheels, 1)
        path = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
        environment = {**os.environ, "HOME": str(support.scratch()), "PIP_NO_INDEX": "1", "PATH": path}
        environment.pop("PYTHONPATH", None)
        # The environment has the packages of the system, not those of another one.
        system = os.path.join(sys.base_prefix, "bin", "python3")
        if subprocess.run([system, "-c", "import numpy"], stderr=subprocess.DEVNULL, env=environment).returncode != 0:
            self.skipTest("the system has no NumPy (python3-numpy)")
        done = subprocess.run(["sh", "-e", "-c", commands], capture_output=True, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        installed = support.scratch() / "petacq"
        python = installed / "bin" / "python3"
        code = """
import sys, petacq
from importlib.metadata import version
assert version("petacq") == petacq.__version__
(run,) = petacq.list_runs(sys.argv[1])
print(petacq.__file__, run.open().rates().prompts.sum() > 0)
"""
        data = support.small_run().parent
        said = subprocess.run([python, "-c", code, data], capture_output=True, text=True, env=environment)
        self.assertRegex(said.stdout, rf"^{re.escape(str(installed))}/lib/.*/petacq/__init__.py True\n$", said.stderr)
        program = installed / "bin" / "petacq-petsird"
        said = subprocess.run([program, "--help"], capture_output=True, text=True, env=environment)
        self.assertIn("PETSIRD", said.stdout, said.stderr)

    def test_wrong_calls(self):
        for arguments in ([], ["a", "b"], [""], ["--help"]):
            done = build(*arguments)
            self.assertEqual((done.returncode, done.stdout), (64, ""))
            self.assertIn("usage: ", done.stderr)
        for python in ("/bin/false", "/none"):
            done = build(support.scratch() / "no-wheel", python=python)
            self.assertEqual(done.returncode, 1)
            self.assertIn("lacks pip, setuptools or wheel", done.stderr)
        self.assertFalse((support.scratch() / "no-wheel").exists())


if __name__ == "__main__":
    unittest.main()
