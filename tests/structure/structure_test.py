"""The tree passes structure.py, and structure.py finds the faults of made-up trees.

    structure_test.py ROOT
"""

import os
import sys
import tempfile
import unittest

import structure

ROOT = sys.argv[1]
ORDER = [["net"], ["gpu", "daemon/system"], ["daemon/run"], ["daemon"], ["tools/petcal"]]
LIBRARIES = {
    "net/CMakeLists.txt": "add_library(petacq_net STATIC wire.cpp)",
    "gpu/CMakeLists.txt": "add_library(petacq_gpu STATIC pipeline.cpp)\ntarget_link_libraries(petacq_gpu PUBLIC petacq_net)",
    "daemon/run/CMakeLists.txt": "add_library(petacq_run run.cpp)\ntarget_link_libraries(petacq_run PUBLIC petacq_gpu)",
}


class TheTree(unittest.TestCase):
    """Each check of structure.py, applied to this tree."""

    @classmethod
    def setUpClass(cls):
        cls.tree = structure.Tree(ROOT)

    def test_every_folder_of_the_order_exists(self):
        for folder in self.tree.rank:
            self.assertTrue(os.path.isdir(os.path.join(ROOT, folder)), folder)
        self.assertGreater(len(self.tree.includes), 300)
        self.assertGreater(len(self.tree.uses()), 10)


def add_check(check):
    def test(self):
        problems = list(check(self.tree))
        self.assertEqual(problems, [], "\n" + "\n".join(problems))
    setattr(TheTree, "test_" + check.__name__.removeprefix("check_"), test)


for one in structure.CHECKS:
    add_check(one)


class MadeUpTrees(unittest.TestCase):
    def problems(self, check, files, **options):
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return list(check(structure.Tree(root, ORDER), **options))

    def assert_found(self, check, files, *parts, **options):
        problems = self.problems(check, files, **options)
        self.assertEqual(len(problems), 1, problems)
        for part in parts:
            self.assertIn(part, problems[0])

    def test_includes(self):
        good = {"net/wire.hpp": "", "gpu/pipeline.hpp": '#include "net/wire.hpp"\n', "gpu/cuda/slice/device_slice.hpp": "",
                "gpu/pipeline.cpp": '#include "gpu/cuda/slice/device_slice.hpp"\n', "daemon/system/log.hpp": "#include <string>\n",
                "tests/gpu/a_test.cpp": '#include "gpu/pipeline.hpp"\n'}
        self.assertEqual(self.problems(structure.check_includes, good), [])
        check = structure.check_includes
        self.assert_found(check, good | {"net/wire.cpp": '#include "gpu/pipeline.hpp"\n'},
                          "net/wire.cpp includes gpu/pipeline.hpp", "not below")
        self.assert_found(check, good | {"daemon/system/log.cpp": ' # include "gpu/cuda/slice/device_slice.hpp"\n'}, "daemon/system uses gpu")
        self.assert_found(check, good | {"gpu/pipeline.cpp": '#include "tests/gpu/help.hpp"\n', "tests/gpu/help.hpp": ""},
                          "a folder of tests")
        self.assert_found(check, good | {"daemon/new/a.cpp": "", "tools/other/a.hpp": "",
                                         "tools/petcal/a.cpp": '#include "tools/other/a.hpp"\n'}, "not in the order")

    def test_coverage(self):
        good = {"tools/petlm/a.cpp": 'source.coverage().span();\ncontent["start_utc"] = text;\n', "daemon/run/list.cpp": ""}
        check = structure.check_coverage
        self.assertEqual(self.problems(check, good), [])
        for text in ('run.value("start_ticks", json())', 'run.at("stop_utc")', 'ticks_in(run, "start_ticks")',
                     'number(run, "/stop_ticks")', 'at("/configuration/coincidence/window_ticks")'):
            self.assert_found(check, good | {"tools/petcal/b.cpp": text}, "expected the coverage")

    def test_link_graph(self):
        sources = {"net/wire.cpp": "", "gpu/pipeline.cpp": "", "daemon/run/run.cpp": ""}
        good = LIBRARIES | sources
        check = structure.check_links
        self.assertEqual(self.problems(check, good), [])
        links = self.problems(lambda tree: [tree.links()], good)[0]
        self.assertEqual(links, {"petacq_net": set(), "petacq_gpu": {"petacq_net"}, "petacq_run": {"petacq_gpu"}})
        upward = "add_library(petacq_net wire.cpp)\ntarget_link_libraries(petacq_net\n  PRIVATE petacq_run) # why"
        self.assert_found(check, good | {"net/CMakeLists.txt": upward}, "net uses daemon/run")
        both = "add_library(petacq_run run.cpp ../../net/wire.cpp)"
        self.assert_found(check, good | {"daemon/run/CMakeLists.txt": both}, "petacq_run has sources of several folders")
        within = {"daemon/CMakeLists.txt": "add_library(petacq_daemon main.cpp run/run.cpp)", "daemon/main.cpp": ""}
        self.assertEqual(self.problems(check, sources | within), [])
        tool = {"tools/petcal/CMakeLists.txt": "add_library(petacq_petcal main.cpp)\ntarget_link_libraries(petacq_petcal petacq_daemon)",
                "tools/petcal/main.cpp": ""}
        self.assert_found(check, sources | within | tool, "petacq_petcal links petacq_daemon", "below both")

    def test_folders_are_listed(self):
        check = structure.check_folders_are_listed
        self.assertEqual(self.problems(check, {"net/wire.cpp": "", "tests/net/new/a_test.cpp": ""}), [])
        self.assert_found(check, {"net/new/wire.cpp": ""}, "net/new is not in the order")
        self.assert_found(check, {"tools/petcal/new/main.cpp": ""}, "tools/petcal/new is not in the order")

    def test_includes_without_a_link(self):
        files = LIBRARIES | {"net/wire.cpp": "", "net/wire.hpp": "", "gpu/pipeline.cpp": "",
                             "daemon/run/run.cpp": '#include "net/wire.hpp"\n'}
        self.assertEqual(self.problems(structure.check_includes_are_linked, files), [])
        files["gpu/CMakeLists.txt"] = "add_library(petacq_gpu pipeline.cpp)"
        self.assert_found(structure.check_includes_are_linked, files, "no library of daemon/run links one of net")

    def test_cycles(self):
        check = structure.check_cycles
        chain = {"tests/a/a.hpp": '#include "tests/b/b.hpp"\n', "tests/b/b.hpp": '#include "tests/c/c.hpp"\n',
                 "tests/c/c.hpp": ""}
        self.assertEqual(self.problems(check, chain), [])
        self.assert_found(check, chain | {"tests/c/c.hpp": '#include "tests/a/a.hpp"\n'}, "tests/a, tests/b, tests/c")
        targets = {"net/CMakeLists.txt": "add_library(a a.cpp)\nadd_library(b b.cpp)\n"
                                         "target_link_libraries(a PUBLIC b)\ntarget_link_libraries(b PRIVATE a)\n"}
        self.assert_found(check, targets, "cycle between targets: a, b")

    def test_python_modules(self):
        check = structure.check_python_modules
        order = [["errors"], ["plm"], ["run"]]
        package = structure.PYTHON_PACKAGE
        good = {f"{package}/errors.py": "import os\n", f"{package}/plm.py": "from petacq import errors\n",
                f"{package}/run.py": "from petacq.plm import Plm\nfrom .errors import Error\n"}
        self.assertEqual(self.problems(check, good, order=order), [])
        for text in ("from petacq.run import Run", "def f():\n    import petacq.run", "from . import run",
                     "if TYPE_CHECKING:\n    from petacq import run"):
            self.assert_found(check, good | {f"{package}/errors.py": text}, "errors.py imports run", order=order)
        self.assert_found(check, good | {f"{package}/plm.py": "from petacq import Run"}, "plm.py imports Run", order=order)
        self.assert_found(check, good | {f"{package}/new.py": ""}, "new.py", "PYTHON_ORDER", order=order)
        within = good | {f"{package}/plm/a.py": "from petacq.plm.b import B\n"}
        self.assertEqual(self.problems(check, within, order=order), [])
        self.assert_found(check, within | {f"{package}/plm/b.py": "from petacq.run import Run"}, "plm.py imports run", order=order)

    def test_type_names(self):
        check = structure.check_type_names
        part = "class Part {\n};\n"
        files = {"net/a.hpp": part, "net/b.cpp": "    struct Part final : Base {\n    };\n", "tests/net/a_test.cpp": part}
        files["gpu/a.hpp"] = "// a struct Part {\nenum class Part;\nPart part{};\n"
        self.assertEqual(self.problems(check, files), [])
        for text in (part, "template <class T>\nstruct Part {\n};\n", "enum class Part : std::uint8_t { a };\n",
                     "struct alignas(64) Part {\n};\n"):
            self.assert_found(check, files | {"gpu/b.cuh": text}, "the type name Part has 3 meanings, at most 2", "net/b.cpp")

    def test_sizes(self):
        check = structure.check_sizes
        self.assertEqual(self.problems(check, {f"net/{i}.cpp": "x\n" * 600 for i in range(30)}), [])
        self.assert_found(check, {f"net/{i}.cpp": "" for i in range(31)}, "net has 31 source files")
        self.assert_found(check, {"tests/net/long_test.cpp": "x\n" * 601}, "tests/net/long_test.cpp has 601 lines")

    def test_heavy_headers(self):
        check = structure.check_heavy_headers
        header = {"net/a.hpp": "#include <nlohmann/json.hpp>\n", "net/a.cpp": "#include <nlohmann/json.hpp>\n"}
        self.assert_found(check, header, "net/a.hpp", "json_fwd", complete_json={})
        self.assertEqual(self.problems(check, header, complete_json={"net/a.hpp": "a member"}), [])
        self.assert_found(check, {"net/a.hpp": ""}, "need not be", complete_json={"net/a.hpp": "a member"})
        units = {"tools/petcal/options.hpp": "#include <CLI/CLI.hpp>\n",
                 "tools/petcal/main.cpp": '#include "tools/petcal/options.hpp"\n', "daemon/main.cpp": "#include <CLI/App.hpp>\n"}
        self.assertEqual(self.problems(check, units, complete_json={}), [])
        units["tools/petcal/more.cpp"] = '#include "tools/petcal/options.hpp"\n'
        self.assert_found(check, units, "tools/petcal includes CLI11 in more than one", complete_json={})

    def test_sources_are_built(self):
        check = structure.check_sources_are_built
        files = LIBRARIES | {"net/wire.cpp": "", "net/forgotten.cpp": ""}
        self.assert_found(check, files, "net/forgotten.cpp is in no CMakeLists.txt")

    def test_test_names(self):
        check = structure.check_test_names
        self.assert_found(check, {"tests/net/a_test.cpp": 'TEST_CASE("one; two") {}\nTEST_CASE("three") {}\n'}, "one; two")

    def test_test_files(self):
        check = structure.check_test_files
        case = "class One(unittest.TestCase):\n"
        good = {"tests/net/a_test.cpp": "TEST_CASE()", "tests/net/help.cpp": "", "tests/net/b_test.py": case,
                "tests/net/c_test.sh": "", "tests/net/CMakeLists.txt": "add_test(COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/c_test.sh)"}
        self.assertEqual(self.problems(check, good), [])
        for name, text in (("a.cpp", "TEST_CASE()"), ("b.py", case), ("test_b.py", "")):
            self.assert_found(check, good | {f"tests/gpu/{name}": text}, f"tests/gpu/{name} holds tests")
        self.assert_found(check, {"tests/c.sh": "", "tests/CMakeLists.txt": good["tests/net/CMakeLists.txt"].replace("_test", "")},
                          "tests/c.sh")

    def test_docs(self):
        check = structure.check_docs
        files = {"net/wire.hpp": "", "gpu/pipeline.cpp": "", "daemon/run/run.cpp": '#include "net/wire.hpp"\n'}
        table = self.problems(lambda tree: [structure.table(tree)], files)[0]
        self.assertIn("| `daemon/run/` | `net/` |", table)
        page = "# A\n<!-- generated: folders -->\n%s<!-- end -->\n"
        self.assertEqual(self.problems(check, files | {"docs/deep/architecture.md": page % table}), [])
        self.assert_found(check, files | {"docs/architecture.md": page % "old\n"}, "differs")
        self.assert_found(check, files | {"docs/architecture.md": "# A\n"}, "no table")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
