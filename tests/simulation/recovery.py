"""What a kill or a power cut left of a run can be recovered, and is sound then."""

import os
import shutil
import subprocess

from play import POWER_CUT
from run_checks import records_of

HAS_PROBLEMS = 1  # of the exit statuses of petlm


def failures(run, petlm):
    """Leaves nothing behind."""
    # Where nothing had to be on the disk, there may be nothing to recover.
    if run.ended or run.life.exit == 0 or run.disk_faults or not any(run.promised().values()):
        return []
    recovered, damaged = run.directory + ".recovered", False
    shutil.rmtree(recovered, ignore_errors=True)
    try:
        for arguments in (["recover", run.directory], ["verify", recovered]):
            done = subprocess.run([petlm, *arguments], capture_output=True, text=True, check=False)
            if arguments[0] == "recover":
                # Of what was not synced, a power cut may leave later pages without earlier ones.
                damaged = run.life.exit == POWER_CUT and done.returncode == HAS_PROBLEMS
            if done.returncode != 0 and not (damaged and arguments[0] == "recover"):
                return [f"recovery: run {run.name}: petlm {arguments[0]} says {done.returncode}: {(done.stdout + done.stderr)[-300:]}"]
        counts = [(kind, count_of(run.directory, kind), count_of(recovered, kind)) for kind in run.kinds]
        # Those behind the first damage are recovered, too.
        return [f"recovery: run {run.name}: {there} {kind} of {left} were recovered"
                for kind, left, there in counts if there < left or there > left and not damaged]
    finally:
        shutil.rmtree(recovered, ignore_errors=True)


def count_of(directory, kind):
    records = records_of(os.path.join(directory, f"{kind}.plm"), torn=True)
    return 0 if records is None else len(records)
