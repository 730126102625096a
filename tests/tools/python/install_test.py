"""pip installs the module with its types and its program. Needs pip and setuptools; downloads nothing."""

import importlib.util
import os
import shutil
import subprocess
import sys
import unittest

import support

for needed in ("pip", "setuptools", "wheel"):
    if importlib.util.find_spec(needed) is None:
        raise unittest.SkipTest(f"{needed} is not installed (python3-{needed})")


class Install(unittest.TestCase):
    def test_pip_install(self):
        source = support.scratch() / "source"  # setuptools writes beside what it builds
        leave = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
        shutil.copytree(support.SOURCE / "tools" / "python", source, ignore=leave)
        target = support.scratch() / "installed"
        options = ["--no-index", "--no-deps", "--no-build-isolation", "--quiet", "--target", str(target)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", *options, str(source)], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        package = target / "petacq"
        installed = {path.name for path in package.iterdir()} - {"__pycache__"}
        expected = {path.name for path in (support.SOURCE / "tools/python/src/petacq").iterdir()} - {"__pycache__"}
        self.assertEqual(installed, expected)
        self.assertIn("py.typed", installed)
        environment = {**os.environ, "PYTHONPATH": str(target)}
        code = "import petacq; from importlib.metadata import version; print(petacq.__file__, version('petacq'))"
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        self.assertIn(str(package), said.stdout, said.stderr)
        program = target / "bin" / "petacq-petsird"
        said = subprocess.run([program, "--help"], capture_output=True, text=True, env=environment)
        self.assertIn("PETSIRD", said.stdout, said.stderr)


if __name__ == "__main__":
    unittest.main()
