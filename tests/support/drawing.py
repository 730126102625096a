"""Whether programs draw: builds without cairo do not."""

import os
import subprocess


def petlm_draws(programs):
    done = subprocess.run([os.path.join(programs, "petlm"), "plot", "."], capture_output=True, text=True, check=False)
    return "built without cairo" not in done.stderr
