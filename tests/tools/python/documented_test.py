"""docs/how-to/python.md and the module have the same names, after ``import petacq`` alone."""

import ast
import functools
import inspect
import re
import subprocess
import sys
import unittest

import support

import petacq

GUIDE = (support.SOURCE / "docs" / "how-to" / "python.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
#: What the examples call their objects.
OBJECTS = {
    "run": (petacq.Run, petacq.ListedRun),
    "pairs": (petacq.PlmFile,),
    "seconds": (petacq.PlmFile,),
    "file": (petacq.PlmFile,),
    "rates": (petacq.RunRates,),
    "scanner": (petacq.Scanner,),
    "frames": (petacq.Frames,),
    "coverage": (petacq.Coverage,),
    "daemon": (petacq.Daemon,),
    "tap": (petacq.Tap,),
    "data": (petacq.Dataset,),
    "mice": (petacq.Dataset,),
    "image": (petacq.Image,),
}


class Documented(unittest.TestCase):
    def test_what_the_documents_name_is_there(self):
        names = set()
        for page in sorted((support.SOURCE / "docs").rglob("*.md")):
            names |= set(re.findall(r"(?<![\w./-])petacq((?:\.[A-Za-z_]\w*)+)", page.read_text(encoding="utf-8")))
        self.assertGreater(len(names), 30)
        names |= {f".histograms.{name}" for name in re.findall(r"^\| `(\w+)\([^`]*\)` \|", GUIDE, re.MULTILINE)}
        self.assertIn(".histograms.sinogram", names)
        code = "import petacq\n" + "\n".join(f"petacq{name}" for name in sorted(names))
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {sys.path[0]!r})\n{code}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=support.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_there_is_documented(self):
        missing = [name for name in petacq.__all__ if f"petacq.{name}" not in GUIDE and f"`{name}`" not in GUIDE]
        self.assertEqual(missing, [])
        self.assertEqual([name for name in petacq.__all__ if not hasattr(petacq, name)], [])

    def test_the_examples_are_python(self):
        self.assertGreater(len(CODE), 5)
        for code in CODE:
            ast.parse(code)

    def test_the_members_in_the_examples(self):
        seen = set()
        for code in CODE:
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in OBJECTS:
                    seen.add(node.value.id)
                    kinds = OBJECTS[node.value.id]
                    self.assertTrue(any(has(kind, node.attr) for kind in kinds), f"{node.value.id}.{node.attr}")
        self.assertEqual(seen, set(OBJECTS))


@functools.cache
def has(kind: type, name: str) -> bool:
    made = any(f"self.{name}: " in inspect.getsource(base) for base in kind.__mro__ if base.__module__.startswith("petacq"))
    return made or hasattr(kind, name) or any(name in base.__dict__.get("__annotations__", {}) for base in kind.__mro__)


if __name__ == "__main__":
    unittest.main()
