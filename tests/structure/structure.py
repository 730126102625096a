"""The structure of the tree: which folder may use which, and how large folders and files may become.

    structure.py ROOT            prints what is wrong; exit status 1 if anything is
    structure.py ROOT --write    also brings the table of folders in docs/ up to date
"""

import ast
import collections
import os
import re
import sys

# The order of the folders, lowest first. A folder may use only those in earlier lines. Every folder with C++ sources is
# here, but for tests.
ORDER = [
    ["config/spelling"],
    ["config/base", "config/nuclides"],
    ["config/hdf5", "config/layout", "config/scanner"],
    ["config"],
    ["config/command_line", "config/shape"],
    ["net/base"],
    ["net"],
    ["net/foreign"],
    ["net/receive"],
    ["net/pcap"],
    ["gpu/base"],
    ["gpu/rules"],
    ["gpu", "daemon/system"],
    ["gpu/randoms", "gpu/triples", "daemon/system/sockets"],
    ["gpu/cpu"],
    ["gpu/cuda/base"],
    ["gpu/sort", "gpu/cuda/slice"],
    ["gpu/cuda/triples"],
    ["gpu/cuda/transfer"],
    ["gpu/cuda/convert", "gpu/cuda/order", "gpu/cuda/coincidence"],
    ["gpu/cuda"],
    ["daemon/backend", "daemon/coverage", "daemon/marks", "daemon/placement", "daemon/space", "daemon/synchrony", "daemon/tracking"],
    ["daemon/listmode"],
    ["daemon/seconds", "daemon/tap"],
    ["daemon/detector"],
    ["daemon/run"],
    ["daemon/acquisition", "daemon/peer", "daemon/reference", "daemon/sinogram"],
    ["daemon/status"],
    ["daemon/control"],
    ["daemon/http/page"],
    ["daemon/http"],
    ["daemon/preflight", "daemon/service"],
    ["daemon"],
    ["tools/geometry", "tools/nifti", "tools/normalisation", "tools/report", "tools/petsim/random"],
    ["tools/petsim/detector", "tools/petsim/physics"],
    ["tools/petsim/simulation/base"],
    ["tools/petsim/simulation/faults"],
    ["tools/petsim/simulation/events"],
    ["tools/petsim/simulation/board"],
    ["tools/petsim/simulation"],
    ["tools/petsim"],
    ["tools/petctl/text"],
    ["tools/petctl/doctor", "tools/petctl/hosts"],
    ["tools/petctl/frames"],
    ["tools/petctl"],
    ["tools/petcal/estimate", "tools/petcal/estimate/pairs"],
    ["tools/petlm/base"],
    ["tools/petlm/records/interval"],
    ["tools/petlm/records"],
    ["tools/petlm/records/gating", "tools/petlm/records/recovery", "tools/petlm/records/union"],
    ["tools/petlm/reconstruction/projector"],
    ["tools/petlm/reconstruction/corrections"],
    ["tools/petlm/reconstruction/gammas"],
    ["tools/petlm/reconstruction/em", "tools/petlm/reconstruction/errors"],
    ["tools/petlm/export/geometry"],
    ["tools/petlm/export/petsird"],
    ["tools/petlm/export"],
    ["tools/petlm/import/declared"],
    ["tools/petlm/import"],
    ["tools/petlm/reconstruction/image"],
    ["tools/petlm/plot", "tools/petlm/reconstruction/frames", "tools/petlm/results"],
    ["tools/petlm/lifetime", "tools/petlm/nema", "tools/petlm/reconstruction/tracers"],
    ["tools/petlm/resort/singles"],
    ["tools/petlm/resort/search"],
    ["tools/petlm/resort/result"],
    ["tools/petlm/resort/parts"],
    ["tools/petlm/resort"],
    ["tools/petlm/union"],
    ["tools/petlm", "tools/petlm/mpi"],
    ["tools/petcal/base"],
    ["tools/petcal/results"],
    ["tools/petcal/report"],
    ["tools/petcal/check", "tools/petcal/draw", "tools/petcal/steps"],
    ["tools/petcal/activity"],
    ["tools/petcal"],
    ["tools/petbench/base"],
    ["tools/petbench/pipeline", "tools/petbench/receive"],
    ["tools/petbench/cuda", "tools/petbench/live"],
    ["tools/petbench"],
]
# The modules of the Python package, lowest first. A module may import, even within a function, only those in earlier lines.
PYTHON_PACKAGE = "tools/python/src/petacq"
PYTHON_ORDER = [
    ["compression", "coverage_1_0", "crc32c", "errors", "run_state"],
    ["capture", "coverage", "layout", "nuclide_codes", "optional", "rpc"],
    ["arrow", "image", "scanner"],
    ["calibration", "records", "series"],
    ["histograms", "normalisation", "plm", "rates"],
    ["plm_files"],
    ["run"],
    ["petsird_events", "run_list"],
    ["daemon", "dataset", "petsird_blocks", "petsird_efficiencies"],
    ["petsird_header", "tap"],
    ["petsird_check"],
    ["petsird"],
    ["foreign"],
    ["__init__"],
]
MAX_FILES = 30
MAX_LINES = 600
MAX_MEANINGS = 2
# In all of them the shared memory of a block of the GPU.
ONE_MEANING = {"Storage"}
TYPE = re.compile(r"^ *(?:template <[^\n]*>\s*)?(?:enum class|enum|struct|class|union) (?:alignas\([^)]*\) )?"
                  r"(\w+)(?: final)?(?: : [^;(){}]*)? ?\{", re.MULTILINE)
# Headers that include <nlohmann/json.hpp> rather than json_fwd.hpp, and why.
COMPLETE_JSON = {"config/base/json_templates.hpp": "the precompiled headers", "config/base/answer.hpp": "facts are a member"}

# What run.json and descriptions say beside the coverage, for people and for programs of 1.0.
OTHER_FACTS = re.compile(
    r'\b(?:value|at|find|contains|number|ticks_in|member)\(\s*(?:\w+,\s*)?"/?(start_ticks|stop_ticks|start_utc|stop_utc)"'
    r'|"(/configuration/(?:coincidence|energy)[^"]*|/expected_randoms/data_s)"')

TOP = ("config", "daemon", "gpu", "net", "systemd", "tests", "tools")
CPP = (".cpp", ".hpp", ".cu", ".cuh")
SOURCES = CPP + (".py", ".js", ".css", ".html", ".sh")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
TABLE = re.compile(r"(<!-- generated: folders -->\n).*?(<!-- end -->)", re.DOTALL)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Tree:
    """The sources of a tree with their includes, and the libraries with their sources and links."""

    def __init__(self, root, order=None):
        self.root = root
        self.rank = {folder: i for i, line in enumerate(order or ORDER) for folder in line}
        self.text = {}
        self.targets = {}
        self.cmake = ""
        for top in TOP:
            for folder, _, files in os.walk(os.path.join(root, top)):
                here = os.path.relpath(folder, root)
                for name in files:
                    if name.endswith(SOURCES):
                        self.text[f"{here}/{name}"] = read(os.path.join(folder, name))
                    elif name == "CMakeLists.txt":
                        self._read_cmake(here, read(os.path.join(folder, name)))
        self.includes = {path: INCLUDE.findall(text) for path, text in self.text.items() if path.endswith(CPP)}

    def _read_cmake(self, folder, text):
        """Fills `targets`: name -> {"program": bool, "sources": [...], "links": [...]}."""
        text = re.sub(r"#.*", "", text)
        self.cmake += text
        for command, arguments in re.findall(r"(\w+)\s*\(([^)]*)\)", text):
            words = arguments.split()
            if command in ("add_library", "add_executable", "target_sources", "target_link_libraries") and words:
                target = self.targets.setdefault(words[0], {"program": False, "sources": [], "links": []})
                target["program"] |= command == "add_executable"
                if command == "target_link_libraries":
                    target["links"] += [w for w in words[1:] if w not in ("PUBLIC", "PRIVATE", "INTERFACE")]
                else:
                    target["sources"] += [os.path.normpath(os.path.join(folder, w)) for w in words[1:]
                                          if w.endswith(CPP) and "$" not in w]

    def unit(self, path):
        """The folder of the order to which a file or folder belongs; its own folder if the order names none."""
        folder = path if path in self.rank else os.path.dirname(path)
        while folder and folder not in self.rank:
            folder = os.path.dirname(folder)
        return folder or os.path.dirname(path)

    def is_test(self, path):
        return path.startswith("tests/")

    def included_files(self, path):
        return [name for name in self.includes.get(path, []) if name in self.includes]

    def units_of(self, target):
        return sorted({self.unit(s) for s in target["sources"] if not self.is_test(s) and s in self.text})

    def libraries_with(self, unit):
        return [name for name, target in self.targets.items() if unit in self.units_of(target)]

    def links(self):
        """target -> the targets of this tree that it links directly"""
        return {name: set(target["links"]) & set(self.targets) for name, target in self.targets.items()}

    def uses(self):
        """unit -> the units whose headers its files include, apart from itself"""
        used = collections.defaultdict(set)
        for path in self.includes:
            used[self.unit(path)] |= {self.unit(name) for name in self.included_files(path)} - {self.unit(path)}
        return used


def upward(tree, user, used):
    """Why the folder `user` may not use the folder `used`; None if it may."""
    if user == used or user.startswith("tests"):
        return None
    if used.startswith("tests"):
        return f"{user} uses {used}, a folder of tests"
    for folder in (user, used):
        if folder not in tree.rank:
            return f"{folder} is not in the order of the folders (ORDER in tests/structure/structure.py)"
    if tree.rank[used] < tree.rank[user]:
        return None
    return f"{user} uses {used}, which is not below it in the order of the folders"


def check_includes(tree):
    for path in tree.includes:
        for name in tree.included_files(path):
            why = upward(tree, tree.unit(path), tree.unit(name))
            if why:
                yield f"{path} includes {name}: {why}"


def check_folders_are_listed(tree):
    for folder in sorted({os.path.dirname(path) for path in tree.includes}):
        if folder not in tree.rank and not folder.startswith("tests"):
            yield f"{folder} is not in the order of the folders (ORDER in tests/structure/structure.py)"


def check_links(tree):
    """A library has one folder, or also folders in it, and links libraries of folders further down."""
    for name, target in tree.targets.items():
        units = tree.units_of(target)
        if any(not unit.startswith(units[0] + "/") for unit in units[1:]) and not target["program"]:
            yield f"library {name} has sources of several folders: {', '.join(units)}"
        for link in sorted(tree.links()[name]):
            if not target["program"] and units and units[0].startswith("tools/") and "daemon" in tree.units_of(tree.targets[link]):
                yield f"library {name} links {link}: what a tool and the daemon need lies below both"
            highest = {side: max(tree.units_of(tree.targets[side]), key=lambda unit: tree.rank.get(unit, -1), default=None)
                       for side in (name, link)}
            if None not in highest.values() and (why := upward(tree, highest[name], highest[link])):
                yield f"link graph: {name} links {link}: {why}"


def check_includes_are_linked(tree):
    """A library links, directly or not, a library of every folder whose headers its files include."""
    links = tree.links()
    for user, used in ((user, used) for user, all_used in sorted(tree.uses().items()) for used in sorted(all_used)):
        users, libraries = tree.libraries_with(user), tree.libraries_with(used)
        if user.startswith("tests") or not users or not libraries:
            continue
        if not any(set(libraries) & ({name} | reachable(links, name)) for name in users):
            yield f"files of {user} include headers of {used}, but no library of {user} links one of {used}"


def reachable(graph, start):
    found, open_nodes = set(), [start]
    while open_nodes:
        for node in graph.get(open_nodes.pop(), ()):
            if node not in found:
                found.add(node)
                open_nodes.append(node)
    return found


def check_type_names(tree):
    """A name of a type has one meaning in the whole tree, or two where both are well known."""
    places = collections.defaultdict(list)
    for path in sorted(tree.includes):
        for name in TYPE.findall("" if tree.is_test(path) else tree.text[path]):
            places[name].append(path)
    for name, paths in sorted(places.items()):
        if len(paths) > MAX_MEANINGS and name not in ONE_MEANING:
            yield f"the type name {name} has {len(paths)} meanings, at most {MAX_MEANINGS} are allowed: {', '.join(paths)}"


def check_cycles(tree):
    """Cycles of includes between folders, those of tests too, and cycles between targets."""
    for what, graph in (("folders", tree.uses()), ("targets", tree.links())):
        for members in {tuple(sorted({n} | {m for m in reachable(graph, n) if n in reachable(graph, m)}))
                        for n in list(graph) if n in reachable(graph, n)}:
            yield f"cycle between {what}: {', '.join(members)}"


def check_python_modules(tree, order=None):
    rank = {name: i for i, line in enumerate(order or PYTHON_ORDER) for name in line}
    modules = collections.defaultdict(str)
    for path, text in tree.text.items():
        if path.startswith(PYTHON_PACKAGE + "/") and path.endswith(".py"):
            # The modules of a package within it are one.
            modules[path.removeprefix(PYTHON_PACKAGE + "/").split("/")[0].removesuffix(".py")] += text + "\n"
    for name in sorted(set(modules) ^ set(rank)):
        yield f"{PYTHON_PACKAGE}/{name}.py: PYTHON_ORDER in tests/structure/structure.py lists the modules that exist"
    for user in sorted(set(modules) & set(rank)):
        for used in sorted(imported_modules(modules[user]) - {user}):
            if rank.get(used, len(rank)) >= rank[user]:
                yield f"{PYTHON_PACKAGE}/{user}.py imports {used}, which is not below it in PYTHON_ORDER"


def imported_modules(text):
    """Names of the package that a module imports, wherever in its text: modules, and what only the package itself has."""
    used = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            path = (node.module or "").split(".")
            if node.level == 1:
                path = ["petacq", *filter(None, path)]
            if path[0] == "petacq":
                used |= {path[1]} if len(path) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            used |= {path[1] if len(path) > 1 else "__init__" for path in names if path[0] == "petacq"}
    return used


def check_sizes(tree):
    count = collections.Counter(os.path.dirname(path) for path in tree.text)
    for folder, files in count.items():
        if files > MAX_FILES:
            yield f"{folder} has {files} source files, more than {MAX_FILES}"
    for path, text in tree.text.items():
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield f"{path} has {lines} lines, more than {MAX_LINES}"


def check_heavy_headers(tree, complete_json=None):
    complete_json = COMPLETE_JSON if complete_json is None else complete_json
    uses = {path for path, names in tree.includes.items()
            if "nlohmann/json.hpp" in names and path.endswith((".hpp", ".cuh")) and not tree.is_test(path)}
    for path in sorted(uses - set(complete_json)):
        yield f"{path} includes <nlohmann/json.hpp>: <nlohmann/json_fwd.hpp> is enough for most headers"
    for path in sorted(set(complete_json) - uses):
        yield f"{path} need not be in COMPLETE_JSON (tests/structure/structure.py)"
    programs = collections.defaultdict(list)
    for path in tree.includes:
        if path.endswith(".cpp") and not tree.is_test(path) and includes_cli11(tree, path):
            folder = path.rpartition("/")[0]
            if f"{folder}/main.cpp" in tree.includes:
                program = folder
            else:
                program = "/".join(path.split("/")[:2]) if path.startswith("tools/") else path.split("/")[0]
            programs[program].append(path)
    for program, paths in programs.items():
        if len(paths) > 1:
            yield f"{program} includes CLI11 in more than one translation unit: {', '.join(sorted(paths))}"


def includes_cli11(tree, path):
    graph = {p: tree.included_files(p) for p in tree.includes}
    return any(name.startswith("CLI/") for p in {path} | reachable(graph, path) for name in tree.includes[p])


def table(tree):
    """The order of the folders as docs/ shows it, with the folders that they use."""
    uses = tree.uses()
    lines = ["| folder | uses |", "|---|---|"]
    for folder in tree.rank:
        used = sorted(uses.get(folder, ()), key=lambda f: (tree.rank.get(f, -1), f))
        lines.append(f"| `{folder}/` | {', '.join(f'`{f}/`' for f in used) or '–'} |")
    return "\n".join(lines) + "\n"


def architecture_page(root):
    for folder, _, files in os.walk(os.path.join(root, "docs")):
        if "architecture.md" in files:
            return os.path.join(folder, "architecture.md")
    return None


def check_coverage(tree):
    """Consumers ask the coverage of a file when it was taken and by which rules, and nothing else."""
    for path, text in tree.text.items():
        if not path.startswith(("tools/petlm/", "tools/petcal/")) or not path.endswith(CPP):
            continue
        for fact in OTHER_FACTS.findall(text):
            yield f"{path} reads {''.join(fact)}; expected the coverage of the file (daemon/coverage/)"


def check_docs(tree, write=False):
    page = architecture_page(tree.root)
    text = read(page) if page else ""
    expected = TABLE.sub(lambda m: m[1] + table(tree) + m[2], text)
    if not TABLE.search(text):
        yield "docs: architecture.md has no table of the folders (<!-- generated: folders --> ... <!-- end -->)"
    elif text != expected and write:
        with open(page, "w", encoding="utf-8") as file:
            file.write(expected)
    elif text != expected:
        yield f"{os.path.relpath(page, tree.root)}: the table of the folders differs; tests/structure/structure.py . --write"


def check_sources_are_built(tree):
    for path in tree.includes:
        if path.endswith((".cpp", ".cu")) and os.path.basename(path) not in tree.cmake:
            yield f"{path} is in no CMakeLists.txt"


def check_test_names(tree):
    for path in tree.includes:
        for name in re.findall(r'TEST_CASE\(\s*((?:"[^"]*"\s*)+)', tree.text[path]):
            if ";" in name:
                yield f"{path}: CTest splits the name of a test at its semicolon: {name.strip()}"


def check_test_files(tree):
    """A file of tests is named X_test.cpp, X_test.py or X_test.sh, wherever it is; what helps tests is not,
    nor is what only prepares them (seeds.py)."""
    run_by_ctest = set(re.findall(r"\$\{CMAKE_CURRENT_SOURCE_DIR\}/(\w+\.(?:py|sh))", tree.cmake)) - {"run_tests.py", "seeds.py"}
    for path in filter(tree.is_test, tree.text):
        name = os.path.basename(path)
        has_tests = name in run_by_ctest or re.search(r"TEST_CASE\(|\(unittest\.TestCase\)", tree.text[path])
        if (has_tests or name.startswith("test_")) and not os.path.splitext(name)[0].endswith("_test"):
            yield f"{path} holds tests: its name must end with _test"


CHECKS = (check_folders_are_listed, check_includes, check_links, check_includes_are_linked, check_cycles, check_type_names,
          check_python_modules, check_sizes, check_heavy_headers, check_coverage, check_docs, check_sources_are_built, check_test_names, check_test_files)


def main():
    tree = Tree(sys.argv[1])
    if "--write" in sys.argv:
        list(check_docs(tree, write=True))
    problems = [problem for check in CHECKS for problem in check(tree)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
