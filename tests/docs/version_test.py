#!/usr/bin/env python3
"""Checks that every file that names the version of this release names the one in CMakeLists.txt, that its dates agree, and that
there are release notes.

version_test.py ROOT
"""

import email.utils
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1])
PLACES = {
    "CMakeLists.txt": r"^project\(petacqd VERSION (\S+)",
    "CHANGELOG.md": r"^## \[(.*?)\] - \d{4}-\d\d-\d\d$",
    "CITATION.cff": r"^version: (.*)$",
    "docs/how-to/install.md": r"^podman load -i build/package/petacqd-(\d+\.\d+\.\d+)-",
    "tools/packaging/changelog": r"^petacqd \((.*?)\)",
    "tools/python/src/petacq/__init__.py": r'^__version__ = "(.*)"$',
}


def found(place, pattern):
    match = re.search(pattern, (root / place).read_text(encoding="utf-8"), re.M)
    return match and match.group(1)


versions = {place: found(place, pattern) for place, pattern in PLACES.items()}
print("\n".join(f"{place}: {version}" for place, version in versions.items()))
wanted = versions["CMakeLists.txt"]
notes = subprocess.run([root / "tools/packaging/release-notes", wanted], capture_output=True, text=True, check=False)
if set(versions.values()) != {wanted} or notes.returncode != 0 or "### Added" not in notes.stdout:
    print(f"FAILED: expected {wanted} everywhere, and its section in CHANGELOG.md")
    sys.exit(1)
# In a Debian change log with the day of the week, which must be the right one.
debian = found("tools/packaging/changelog", r"^ -- .*>  (.*)$")
date = email.utils.parsedate_to_datetime(debian)
dates = {found("CHANGELOG.md", r"^## \[.*\] - (.*)$"), found("CITATION.cff", r"^date-released: (.*)$"), date.date().isoformat()}
if len(dates) != 1 or not debian.startswith(date.strftime("%a, ")):
    print(f"FAILED: dates of the release: {dates}, {debian}")
    sys.exit(1)
if subprocess.run([root / "tools/packaging/release-notes", "0.0.7"], capture_output=True, check=False).returncode != 1:
    print("FAILED: notes of a version that does not exist")
    sys.exit(1)
