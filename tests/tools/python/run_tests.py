"""Runs one file of tests, named from this folder, for ctest. Exit status 77: everything in it was skipped; the reasons are printed."""

import sys
import unittest
from pathlib import Path

folder = Path(__file__).resolve().parent
sys.path.insert(0, str(folder))
try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is not installed (python3-numpy)")
    raise SystemExit(77) from None
print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}")

tests = folder / sys.argv[1]
suite = unittest.defaultTestLoader.discover(str(tests.parent), tests.name)
result = unittest.TextTestRunner(verbosity=2).run(suite)
for test, reason in result.skipped:
    print(f"skipped: {test}: {reason}")
if not result.wasSuccessful() or result.testsRun + len(result.skipped) == 0:
    raise SystemExit(1)
raise SystemExit(77 if len(result.skipped) >= result.testsRun else 0)
