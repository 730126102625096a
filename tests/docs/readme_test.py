"""The figures of README.md are those of the pages that measure them: readme_test.py ROOT"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
readme = (root / "README.md").read_text(encoding="utf-8")
rows = re.search(r"^\| measured \|.*?\n\|[-|]+\|\n(.*?)\n\n", readme, re.M | re.S)
measured = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows.group(1).splitlines()] if rows else []
performance = [[cell.strip() for cell in line.strip("|").split("|")]
               for line in (root / "docs/explanation/performance.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")]
problems = [] if len(measured) >= 4 else [f"README.md: expected a table of measured figures, found {measured}"]
for what, figure, machine in measured:
    if not any(row[1:3] == [figure, machine] for row in performance):
        problems.append(f"README.md: {what}: {figure} ({machine}) is not in performance.md")
print("\n".join(problems) or f"{len(measured)} figures are those of performance.md")
sys.exit(1 if problems else 0)
