#!/usr/bin/env python3
"""Runs every command of docs/explanation/performance.md in a short form, and reads its figure, as tools/measure does.

performance_test.py BIN ROOT cpu|cuda|parsing
"""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

bin_directory, root, part = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
PIPELINE = """
whole pipeline, pinned frames to records; host to device 3.44 G frames/s, device copy 128.6
slice          G frames/s     of the bus    of the copy
    1.000 Mi        3.271         94.9 %         2.54 %  (94.1 to 95.0 of the bus; x; 1 prompts, 0 delayeds)
  bus, share of the time of a pass:
    4.000 Mi        3.288         95.5 %         2.55 %  (94.1 to 95.0 of the bus; x; 1 prompts, 0 delayeds)
   16.000 Mi   left out: more than the frames of the input (--frames)

device only, one slice of 4.0 Mi frames; host to device 3.44 G frames/s, device copy 128.6
                                     convert   order    find   whole            G frames/s of each    of the  of the
Poisson                                0.120   0.160   0.100   0.420    34.95  26.21  41.94   9.99     2.90x    7.8%   1.00x
all times equal                        0.120   0.160   0.100   0.420    34.95  26.21  41.94   8.88     2.90x    7.8%   1.00x
"""
SORT = """host to device 55.0 GB/s; device copy 4.10 TB/s read and written
singles of 16 bytes by 36 bits; median of 11; G singles/s, and the ratio to CUB

random; host to device 3.44 G singles/s, device copy 128.6
                            CUB             ours       merge sort
1 Ki               0.100 (1.00)     0.090 (0.90)                -   CUB 0.010 ms
64 Mi             17.400 (1.00)    16.400 (0.94)                -   CUB 3.857 ms

nearly sorted; host to device 3.44 G singles/s, device copy 128.6
"""
IMAGE = """5.00 M prompts in memory
cpu: 16 threads of the CPU (asked for)
  pairs counted           0.230 s
  whole                   3.390 s      1.47 M prompts/s
cuda: NVIDIA H200
  pairs counted           0.220 s
  whole                   0.710 s      7.04 M prompts/s
cpu and cuda: largest difference 4.2e-7 of the largest value
"""
LIVE_FAILED = """  step  1    900.00 M frames/s (50.00 M in a second of detector time), at the end 1 s behind   failed: 12 datagrams lost
no rate passed; the last one: 870.00 M frames/s (50.00 M in a second of detector time), 870.0 M frames in 1.00 s (cuda)
  latency from arrival to disk:   p50 unknown   p99 133.0 ms
"""
EXPECTED = [
    ("pipeline", PIPELINE, "3.271, 3.288 G frames/s with slices of 1, 4 Mi: 94.9, 95.5 % of the bus; the device alone 9.99"),
    ("sort", SORT, "G singles/s: 17.400 (CUB), 16.400 (ours), - (merge sort)"),
    ("image", IMAGE, "3.39 s (cpu), 0.71 s (cuda)"),
    ("live", LIVE_FAILED, "not reached at 870 M frames/s: 12 datagrams lost"),
]


def check_parsing():
    loader = importlib.machinery.SourceFileLoader("measure", str(root / "tools/measure"))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("measure", loader))
    loader.exec_module(tool)
    wrong = []
    for suite, text, wanted in EXPECTED:
        figure = getattr(tool, suite)(text)
        if figure != wanted:
            wrong.append(f"{suite}: {figure}, expected {wanted}")
        try:
            getattr(tool, suite)("nothing of the kind\n")
            wrong.append(f"{suite}: reads a figure from nothing")
        except tool.NoFigure:
            pass
    rows = tool.rows_of(tool.PAGE.read_text(encoding="utf-8"))
    table = [line for line in tool.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    if [row.text() for row in rows] != table:
        wrong.append("a row of the table has no command of petbench, or is not written as the others are")
    if {row.words[1] for row in rows} != set(tool.SHORT):
        wrong.append("the page and the short forms do not have the same suites")
    return wrong


if part == "parsing":
    problems = check_parsing()
    print("\n".join(problems))
    sys.exit(1 if problems else 0)
with tempfile.TemporaryDirectory() as disk:
    which = "--with-gpu" if part == "cuda" else "--without-gpu"
    done = subprocess.run([root / "tools/measure", bin_directory, "--short", "--disk", disk, which], check=False)
    sys.exit(done.returncode)
