"""Runs test programs for another processor in QEMU.

run_tests.py PROGRAMS SYSROOT LIST: the list has a line "program [filter of Catch2]" for each. A program that finds no test fails."""

import concurrent.futures
import os
import re
import subprocess
import sys
import time

PATIENCE_S = 1800


def run(line, programs, sysroot):
    program, *tests = line.split(maxsplit=1)
    start = time.monotonic()
    try:
        done = subprocess.run(["qemu-aarch64-static", "-L", sysroot, os.path.join(programs, program), *tests],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE_S,
                              env={**os.environ, "XDG_CACHE_HOME": "/dev/null"}, text=True, errors="replace", check=False)
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, output = -1, f"{(error.output or b'').decode(errors='replace')}\nnot done after {PATIENCE_S} s"
    passed = re.search(r"^All tests passed .*", output, re.MULTILINE)
    seconds = time.monotonic() - start
    if status == 0 and passed:
        return f"{line.split()[0]}: {passed.group()}, {seconds:.0f} s", True
    return f"{output[-6000:]}\n{line}: FAILED, exit status {status}, {seconds:.0f} s", False


def main():
    programs, sysroot, names = map(os.path.abspath, sys.argv[1:])
    with open(names, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = 0
        for text, passed in pool.map(lambda line: run(line, programs, sysroot), lines):
            print(text, flush=True)
            failed += not passed
    print(f"{len(lines) - failed} of {len(lines)} test programs passed")
    sys.exit(1 if failed or not lines else 0)


main()
