"""The table of defects names tests that exist, versions of the change log and known ways of finding: defects_test.py ROOT"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
PAGE = "docs/explanation/defects.md"
FOUND_BY = {"trial", "truth", "reader", "virtual time", "tests", "reading"}

cases = {name for path in (ROOT / "tests").rglob("*_test.cpp") for name in re.findall(r'TEST_CASE\(\s*"((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8"))}
versions = set(re.findall(r"^## \[?([^\]\n]*?)\]?(?: - .*)?$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M))
rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in (ROOT / PAGE).read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| defect")]


def exists(test):
    if test.startswith("tests/simulation/stories/"):  # the test `simulation` plays all of them
        return (ROOT / test).is_file()
    python = re.fullmatch(r"(tests/\S+\.py): (test_\w+)", test)
    if not python:
        return test in cases
    path = ROOT / python.group(1)
    return path.exists() and f"def {python.group(2)}(" in path.read_text(encoding="utf-8")


problems = [] if len(rows) > 40 and len(cases) > 1000 else [f"only {len(rows)} rows in {PAGE}, and {len(cases)} tests"]
for row in rows:
    if len(row) != 5:
        problems.append(f"expected five cells: {row}")
        continue
    defect, found_by, since, fixed_in, test = row
    if found_by not in FOUND_BY:
        problems.append(f"{defect}: found by '{found_by}'; expected one of {', '.join(sorted(FOUND_BY))}")
    problems += [f"{defect}: CHANGELOG.md has no version {version}" for version in (since, fixed_in) if version not in versions]
    if since == fixed_in:
        problems.append(f"{defect}: in no published version")
    if not exists(test.strip("`")):
        problems.append(f"{defect}: there is no test {test}")
print("\n".join(problems) or f"{len(rows)} defects, each with a test")
sys.exit(1 if problems else 0)
