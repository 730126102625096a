#!/usr/bin/env python3
"""Checks that every file that names the version of this release names the one in CMakeLists.txt, and that there are release notes.

version_test.py ROOT
"""

import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
PLACES = {
    "CMakeLists.txt": r"^project\(petacqd VERSION (\S+)",
    "CHANGELOG.md": r"^## \[(.*?)\] - \d{4}-\d\d-\d\d$",
    "CITATION.cff": r"^version: (.*)$",
    "tools/packaging/changelog": r"^petacqd \((.*?)\)",
    "tools/python/src/petacq/__init__.py": r'^__version__ = "(.*)"$',
}
versions = {}
for place, pattern in PLACES.items():
    found = re.search(pattern, (root / place).read_text(encoding="utf-8"), re.M)
    versions[place] = found and found.group(1)
print("\n".join(f"{place}: {version}" for place, version in versions.items()))
wanted = versions["CMakeLists.txt"]
notes = subprocess.run([root / "tools/packaging/release-notes", wanted], capture_output=True, text=True, check=False)
if set(versions.values()) != {wanted} or notes.returncode != 0 or "### Added" not in notes.stdout:
    print(f"FAILED: expected {wanted} everywhere, and its section in CHANGELOG.md")
    sys.exit(1)
if subprocess.run([root / "tools/packaging/release-notes", "0.0.7"], capture_output=True, check=False).returncode != 1:
    print("FAILED: notes of a version that does not exist")
    sys.exit(1)
