"""Whether targets.py, the sources, CMakeLists.txt and the page for developers name the same fuzz targets.

    targets_test.py SOURCE
"""

import os
import re
import sys

from targets import TARGETS


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def main():
    source = sys.argv[1]
    folder = os.path.join(source, "tests", "fuzz")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", read(source, "docs", "how-to", "develop.md").split("### Fuzz targets")[1], re.M)
    named = {
        "the sources": [name[:-4] for where in (folder, os.path.join(folder, "petlm")) for name in os.listdir(where) if name.endswith(".cpp")],
        "CMakeLists.txt": re.findall(r"^petacq_fuzz\((\w+)", read(folder, "CMakeLists.txt"), re.M),
        "develop.md": re.findall(r"\w+", " ".join(rows)),
    }
    failures = [f"{where}: {sorted(set(names) ^ set(TARGETS))} and targets.py differ" for where, names in named.items()
                if set(names) != set(TARGETS)]
    failures += [f"{name}: no {path}" for name, target in TARGETS.items() for path in target.about
                 if not os.path.exists(os.path.join(source, path))]
    print("\n".join(failures) or f"{len(TARGETS)} targets")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
