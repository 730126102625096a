"""Jupyter executes the example notebooks, and what they show is what petlm says of the run."""

import base64
import importlib.util
import os
import unittest
from unittest import mock

import support
from notebook_test import EXAMPLES, busy_daemon

try:
    import nbclient
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
except ImportError as error:
    raise unittest.SkipTest(f"{error.name} is not installed (tools/setup --python)") from error
if "python3" not in KernelSpecManager().find_kernel_specs():
    raise unittest.SkipTest("no Jupyter kernel for Python (ipykernel: tools/setup --python)")


def executed(name, **environment):
    """The notebook with its outputs."""
    notebook = nbformat.read(EXAMPLES / name, 4)
    nbformat.validate(notebook)
    with mock.patch.dict(os.environ, {"PYTHONPATH": str(support.SOURCE / "tools/python/src"), "MPLBACKEND": "Agg", **environment}):
        nbclient.NotebookClient(notebook, timeout=support.PATIENCE_S).execute()
    return notebook


def printed(notebook):
    outputs = [output for cell in notebook["cells"] if cell["cell_type"] == "code" for output in cell["outputs"]]
    return "".join(output.get("text", "") for output in outputs)


class Jupyter(unittest.TestCase):
    def test_a_run(self):
        kinds = [line.split(",")[0] for line in support.call("petlm", "dump", support.small_run() / "coincidences.plm").splitlines()]
        prompts, delayeds = kinds.count("prompt"), kinds.count("delayed")
        for name in ("first_look.ipynb", "rates.ipynb"):
            notebook = executed(name, PETACQ_RUN=str(support.small_run()))
            self.assertIn(f"<td style='text-align:left'>{prompts:,}</td>", notebook["cells"][1]["outputs"][-1]["data"]["text/html"])
            if name == "first_look.ipynb":
                self.assertIn(f"{prompts:,} prompts, {delayeds:,} delayeds", printed(notebook))

    def test_many_runs(self):
        text = printed(executed("runs_as_tables.ipynb", PETACQ_RUN=str(support.small_run())))
        self.assertIn("1 of 1 runs are complete and have prompts", text)

    def test_an_image(self):
        folder = support.scratch() / "look"
        support.call(
            *("petlm", "image", support.small_run(), "--output", folder, "--voxel-mm", 4, "--iterations", 1, "--subsets", 4),
            *("--backend", "cpu", "--depth-mm", 0),
        )
        cells = executed("image.ipynb", PETACQ_IMAGE=str(folder))["cells"]
        shown = cells[1]["outputs"][-1]["data"]
        self.assertEqual(shown["text/html"].count("<img"), 3)
        if importlib.util.find_spec("matplotlib") is not None:
            self.assertEqual(base64.b64decode(shown["image/png"])[:4], b"\x89PNG")

    def test_a_daemon(self):
        with busy_daemon("jupyter") as (_, live):
            self.assertIn("ledger closed: True", printed(executed("live.ipynb", PETACQ_START="1", **live)))


if __name__ == "__main__":
    unittest.main()
