"""Runs the cells of the example notebook, with nbclient if a kernel is installed, otherwise one after the other."""

import contextlib
import io
import json
import os
import sys
import unittest
from unittest import mock

import support

NOTEBOOK = support.SOURCE / "tools" / "python" / "examples" / "first_look.ipynb"


class Notebook(unittest.TestCase):
    def test_the_code_of_its_cells(self):
        notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
        self.assertEqual(notebook["nbformat"], 4)
        names = {}
        out = io.StringIO()
        environment = {"PETACQ_RUN": str(support.small_run()), "MPLBACKEND": "Agg"}
        with mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(out):
            for number, cell in enumerate(notebook["cells"]):
                if cell["cell_type"] == "code":
                    self.assertEqual(cell["outputs"], [], "stored without output")
                    exec(compile("".join(cell["source"]), f"{NOTEBOOK.name} cell {number}", "exec"), names)
        text = out.getvalue()
        self.assertIn("prompts", text)
        peak = int(text.split("photopeak at ")[1].split()[0])
        self.assertAlmostEqual(peak, 511, delta=15)
        self.assertEqual(names["run"].id, "small")

    def test_in_jupyter(self):
        try:
            import nbclient
            import nbformat
            from jupyter_client.kernelspec import KernelSpecManager
        except ImportError as error:
            self.skipTest(f"{error.name} is not installed")
        if "python3" not in KernelSpecManager().find_kernel_specs():
            self.skipTest("no Jupyter kernel for Python (ipykernel)")
        notebook = nbformat.read(NOTEBOOK, 4)
        nbformat.validate(notebook)
        paths = os.pathsep.join([str(support.SOURCE / "tools/python/src"), *sys.path])
        environment = {"PETACQ_RUN": str(support.small_run()), "PYTHONPATH": paths, "MPLBACKEND": "Agg"}
        with mock.patch.dict(os.environ, environment):
            nbclient.NotebookClient(notebook, timeout=support.PATIENCE_S).execute()
        shown = notebook.cells[1]["outputs"][0]["data"]
        self.assertIn("<table>", shown["text/html"])


if __name__ == "__main__":
    unittest.main()
