"""What a kill or a power cut left of a run can be recovered, and is sound then."""

import os
import shutil
import subprocess

from run_checks import records_of


def failures(run, petlm):
    """Leaves nothing behind."""
    # Where nothing had to be on the disk, there may be nothing to recover.
    if run.ended or run.life.exit == 0 or run.disk_faults or not any(run.promised().values()):
        return []
    recovered = run.directory + ".recovered"
    shutil.rmtree(recovered, ignore_errors=True)
    try:
        for arguments in (["recover", run.directory], ["verify", recovered]):
            done = subprocess.run([petlm, *arguments], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return [f"recovery: run {run.name}: petlm {arguments[0]} says {done.returncode}: {done.stderr[-300:]}"]
        return [f"recovery: run {run.name}: {there} {kind} of {left} were recovered"
                for kind in run.kinds
                if (left := count_of(run.directory, kind)) != (there := count_of(recovered, kind))]
    finally:
        shutil.rmtree(recovered, ignore_errors=True)


def count_of(directory, kind):
    records = records_of(os.path.join(directory, f"{kind}.plm"))
    return 0 if records is None else len(records)
