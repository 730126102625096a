"""The fault matrix: every row runs the real programs with one fault and compares every record with a clean replay.

    matrix_test.py BIN SOURCE [--short] [--only TEXT] [--jobs N] [--kills N] [--list]

BIN has the programs, SOURCE is the tree. --short: the representative part. --only: rows whose name or fault contains the
text. docs/how-to/develop.md says how to add a row. Exit status 1 if a row fails, 77 if rows can only be skipped.
"""

import argparse
import concurrent.futures
import importlib
import os
import shutil
import sys
import tempfile
import time
import traceback

import rows
from testbed import Failed, Programs
from stage import Stage, Skipped

SUBJECTS = ("rows_time", "rows_senders", "rows_arrival", "rows_counters", "rows_replay", "rows_control", "rows_disk",
            "rows_small", "rows_kill", "rows_guard")


def attempt(programs, row, variant, kills):
    """(verdict, what is wrong, seconds)"""
    begin = time.monotonic()
    stage = None
    try:
        stage = Stage(programs, row, variant, kills)
        stage.perform()
        return "pass", "", time.monotonic() - begin
    except Skipped as skipped:
        return "skip", str(skipped), time.monotonic() - begin
    except Failed as failed:
        return "FAIL", str(failed), time.monotonic() - begin
    except Exception:  # noqa: BLE001: whatever it is, it is this row's
        return "FAIL", traceback.format_exc(limit=-3), time.monotonic() - begin
    finally:
        if stage:
            stage.clean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("source")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    for subject in SUBJECTS:
        importlib.import_module(subject)
    chosen = [(row, variant) for row in rows.ALL for variant in row.variants()
              if (row.short_variant(variant) or not options.short) and options.only in row.title(variant)]
    if options.list:
        for row, variant in chosen:
            print(f"{row.title(variant)} | {row.when} | may lose: {'a part' if callable(row.loses) else row.loses} | "
                  f"{row.names(variant)}")
        return 0
    work = tempfile.mkdtemp(prefix="petacq-faults-")
    try:
        programs = Programs(options.bin, options.source, work)
        failed = passed = skipped = 0
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            kills = 5 if options.short else options.kills
            running = {pool.submit(attempt, programs, row, variant, kills): row.title(variant) for row, variant in chosen}
            for future in concurrent.futures.as_completed(running):
                verdict, why, seconds = future.result()
                passed, skipped, failed = passed + (verdict == "pass"), skipped + (verdict == "skip"), failed + (verdict == "FAIL")
                print(f"{verdict} {seconds:5.1f} s  {running[future]}{': ' if why else ''}{why[:600]}", flush=True)
        print(f"fault matrix: {passed} passed, {skipped} skipped, {failed} failed")
        return 1 if failed or not chosen else 0 if passed else 77
    finally:
        if os.environ.get("PETACQ_KEEP"):
            print("kept:", work)
        else:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
