"""GATE's offline sorter on the small set: every pair that differs from a window mode has its cause. Exit status 77 without it."""

import os
import sys
import tempfile

import compare
import gate
import made_set
from referee import write_set


def main():
    try:
        sorter, version = gate.load()
    except gate.Unavailable as why:
        print(why)
        return 77
    with tempfile.TemporaryDirectory() as directory:
        [work], _ = write_set(directory, [made_set.SMALL])
        path = os.path.join(directory, "small.root")
        gate.write_singles(path, work.singles, made_set.GEOMETRY)
        rows = [compare.with_gate(work, sorter, path, *setting) for setting in compare.SETTINGS]
        chunks = [compare.at_chunk_borders(work, sorter, path, multi_window, "TakeAllGoods", 500) for multi_window in (True, False)]
    wrong = [row for row in rows if row["unexplained"] or row["gate"] < 1000]
    # Each of the causes is there to be found, and borders of chunks matter only where not all singles open windows.
    for step in compare.STEPS:
        if not any(sum(row["steps"].get(step, ())) for row in rows):
            wrong.append(f"no pair differs by: {step}")
    wrong += [row for row in chunks if row["multi_window"] == bool(row["missing"] + row["added"] + row["twice"])]
    for one in wrong:
        print(f"opengate {version}: {one}")
    return 1 if wrong or len(rows) != 18 else 0


if __name__ == "__main__":
    sys.exit(main())
