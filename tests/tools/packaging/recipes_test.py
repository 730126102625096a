"""The recipes for Spack and conda name what CMakeLists.txt needs, with the same oldest versions: recipes_test.py ROOT

Neither program is needed. Where rattler-build is installed (tools/setup --package), the recipe for conda is also read by it.
"""

import importlib.util
import pathlib
import re
import sys
import types
import unittest

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests/support"))
from minimum_versions import minimum_versions  # noqa: E402

MINIMA = minimum_versions(ROOT)
SPACK = {"Boost": "boost", "spdlog": "spdlog", "fmt": "fmt", "nlohmann_json": "nlohmann-json", "CLI11": "cli11", "Eigen3": "eigen",
         "OpenSSL": "openssl", "libisal": "isa-l", "libzstd": "zstd", "hwloc": "hwloc", "ZLIB": "zlib", "PNG": "libpng", "HDF5": "hdf5",
         "libsystemd": "systemd", "cairo": "cairo", "cmake": "cmake", "Curses": "ncurses", "PkgConfig": "pkgconfig"}
CONDA = SPACK | {"Boost": "libboost-headers", "nlohmann_json": "nlohmann_json", "hwloc": "libhwloc", "libsystemd": "libsystemd", "PkgConfig": "pkg-config"}
# Of the compiler and the C library, a part of cairo, and what a variant brings.
ELSEWHERE = {"Threads", "g++", "cairo-svg", "CUDAToolkit"}
VERSION = re.search(r"^project\(petacqd VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M).group(1)
RECIPE = ROOT / "tools/packaging/conda/recipe.yaml"
OPTIONS = set(re.findall(r"^\s*(?:option|find_path)\((\w+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M))


class Spack:
    """As much of Spack as a recipe sees: what it declares."""

    def __init__(self, name):
        self.depends, self.conflicts, self.versions, self.variants = {}, {}, [], {}
        package = types.ModuleType("spack.package")
        package.depends_on = lambda spec, when="", type=("build", "link"): self.depends.update({spec: when})
        package.conflicts = lambda spec, when="", msg="": self.conflicts.update({spec: msg})
        package.version = lambda number, **source: self.versions.append(number)
        package.variant = lambda name, default, description: self.variants.update({name: default})
        package.license = lambda name, checked_by: None
        package.InstallError = type("InstallError", (Exception,), {})
        modules = {"spack": types.ModuleType("spack"), "spack.package": package}
        for system in ("cmake.CMake", "cuda.Cuda", "bundle.Bundle"):
            module, kind = system.split(".")
            name_of = f"spack_repo.builtin.build_systems.{module}"
            modules[name_of] = types.ModuleType(name_of)
            setattr(modules[name_of], f"{kind}Package", type(f"{kind}Package", (), {}))
        for parent in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
            modules[parent] = types.ModuleType(parent)
        path = ROOT / f"tools/packaging/spack/spack_repo/petacqd/packages/{name}/package.py"
        before = dict(sys.modules)
        sys.modules.update(modules)
        try:
            spec = importlib.util.spec_from_file_location(f"recipe_{name}", path)
            self.module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self.module)
        finally:
            for added in modules:
                sys.modules.pop(added)
            sys.modules.update({key: value for key, value in before.items() if key in modules})


class Recipes(unittest.TestCase):
    def agree(self, found, names):
        for name, version in MINIMA.items():
            if name in ELSEWHERE:
                continue
            self.assertIn(names[name], found, f"{name} is missing")
            self.assertEqual(found.pop(names[name]) or "", version or "", name)

    def test_spack(self):
        recipe = Spack("petacqd")
        self.assertEqual(recipe.versions, [VERSION])
        found = {}
        for spec in recipe.depends:
            name, version = re.match(r"([\w-]+)(?:@([\d.]+):)?", spec).groups()
            found[name] = version
        self.agree(found, SPACK)
        self.assertEqual(set(found), {"c", "cxx", "ninja", "gzip", "zlib-api", "concurrentqueue", "mpi"})
        oldest = [int(part) for part in MINIMA["g++"].split(".")]
        self.assertIn(f"%gcc@:{oldest[0]}.{oldest[1] - 1}", recipe.conflicts)

    def test_what_spack_tells_cmake(self):
        recipe = Spack("petacqd")
        queue = Spack("concurrentqueue").module.Concurrentqueue()
        package = recipe.module.Petacqd()
        package.define = lambda name, value: (name, value)
        package.define_from_variant = lambda name, variant: (name, recipe.variants.get(variant, variant == "cuda"))
        queue.folder = lambda: "/headers"

        class Spec:
            variants = {"cuda_arch": types.SimpleNamespace(value=("80", "90"))}

            def __getitem__(self, name):
                return {"concurrentqueue": types.SimpleNamespace(package=queue)}[name]

            def satisfies(self, what):
                return what == "+cuda"

        package.spec = Spec()
        said = dict(package.cmake_args())
        self.assertEqual((said["MOODYCAMEL_INCLUDE_DIR"], said["CMAKE_CUDA_ARCHITECTURES"], said["CMAKE_DISABLE_FIND_PACKAGE_MPI"]),
                         ("/headers", "80;90", True))
        self.assertLessEqual({name for name in said if not name.startswith("CMAKE_")}, OPTIONS)

    def test_conda(self):
        text = RECIPE.read_text(encoding="utf-8")
        self.assertIn(f'  version: "{VERSION}"\n', text)
        needs = re.search(r"^requirements:\n(.*?)^  run:\n", text, re.M | re.S).group(1)
        found = {name: version for name, version in re.findall(r"^    - ([\w-]+)(?: >=([\d.]+))?", needs, re.M)}
        self.agree(found, CONDA)
        self.assertEqual(set(found), {"ninja", "gzip"})
        options = set(re.findall(r"-D(\w+)=", text))
        self.assertLessEqual({name for name in options if not name.startswith("CMAKE_")}, OPTIONS)

    @unittest.skipUnless(importlib.util.find_spec("rattler_build"), "rattler-build is not installed")
    def test_conda_as_its_program_reads_it(self):
        import rattler_build

        variants = rattler_build.VariantConfig({"c_stdlib": ["sysroot"], "c_stdlib_version": ["2.28"], "c_compiler": ["gcc"], "cxx_compiler": ["gxx"]})
        (rendered,) = rattler_build.Stage0Recipe.from_file(RECIPE).render(variants)
        self.assertEqual((rendered.recipe.package.name, str(rendered.recipe.package.version)), ("petacqd", VERSION))
        self.assertIn("gxx", str(rendered.recipe.to_dict()["requirements"]["build"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
