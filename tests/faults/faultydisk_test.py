"""libfaultydisk.so under a program that writes: each fault happens, where and when it is asked for.

    faultydisk_test.py LIBRARY
"""

import os
import subprocess
import sys
import tempfile
import time

# Writes, syncs and renames, and says how each ended.
PROGRAM = """
import os, sys
directory, other = sys.argv[1:]
def attempt(call):
    try:
        return str(call())
    except OSError as error:
        return os.strerror(error.errno)
file = os.open(directory + "/bad.txt", os.O_RDWR | os.O_CREAT, 0o600)
elsewhere = os.open(other + "/good.txt", os.O_RDWR | os.O_CREAT, 0o600)
print(attempt(lambda: os.write(file, b"x" * 100)), attempt(lambda: os.pwrite(file, b"y" * 100, 100)),
      attempt(lambda: os.writev(file, [b"z" * 60, b"z" * 40])), attempt(lambda: os.fsync(file)),
      attempt(lambda: os.fdatasync(file)), attempt(lambda: os.ftruncate(file, 10)),
      attempt(lambda: os.rename(directory + "/bad.txt", directory + "/bad2.txt")),
      attempt(lambda: os.write(elsewhere, b"x" * 100)), sep="|")
"""


def outcome(library, faults, control=None):
    with tempfile.TemporaryDirectory() as bad, tempfile.TemporaryDirectory() as good:
        environment = {**os.environ, "LD_PRELOAD": library, "FAULTYDISK_PATH": bad, "FAULTYDISK_FAULTS": faults}
        if control:
            environment["FAULTYDISK_CONTROL"] = control
        done = subprocess.run([sys.executable, "-c", PROGRAM, bad, good], env=environment, capture_output=True, text=True,
                              check=True)
        return done.stdout.strip()


def main():
    library = os.path.abspath(sys.argv[1])
    if not os.path.exists(library):
        print("skipped: libfaultydisk.so is not built (it does not go with sanitizers)")
        return 77
    eio, full = os.strerror(5), os.strerror(28)
    wrong = []
    for faults, expected in (
            ("", "100|100|100|None|None|None|None|100"),
            ("write:EIO", f"{eio}|{eio}|{eio}|None|None|None|None|100"),
            ("write:short=30", "30|30|30|None|None|None|None|100"),
            ("write:ENOSPC:after=150", f"100|50|{full}|None|None|None|None|100"),
            ("write:EIO:every=2", f"100|{eio}|100|None|None|None|None|100"),
            ("write:EIO:once", f"{eio}|100|100|None|None|None|None|100"),
            ("sync:EIO", f"100|100|100|{eio}|{eio}|None|None|100"),
            ("truncate:EIO,rename:ENOSPC", f"100|100|100|None|None|{eio}|{full}|100")):
        found = outcome(library, faults)
        if found != expected:
            wrong.append(f"{faults}: {found}, expected {expected}")
    begin = time.monotonic()
    outcome(library, "sync:slow=300")
    if time.monotonic() - begin < 0.6:
        wrong.append("two slow syncs took less than 0.6 s")
    with tempfile.NamedTemporaryFile("w") as control:
        control.write("write:EIO")
        control.flush()
        if not outcome(library, "", control.name).startswith(eio):
            wrong.append("the file with the faults is not read")
    print("\n".join(wrong) or "every fault happens")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
