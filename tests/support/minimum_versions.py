"""What CMakeLists.txt needs, with the oldest version of each: a dictionary of names as CMake or pkg-config has them."""

import re


def minimum_versions(root):
    text = (root / "CMakeLists.txt").read_text(encoding="utf-8")
    minima = {name: version for name, version in re.findall(r"find_package\((\w+)(?: ([\d.]+))?", text)}
    for call in re.findall(r"pkg_check_modules\(\w+ ([^)]*)\)", text):
        for name, version in re.findall(r"\b((?:lib|hwloc|cairo)[\w-]*)(?:>=([\d.]+))?", call):
            minima[name] = version
    minima["g++"] = re.search(r"CMAKE_CXX_COMPILER_VERSION VERSION_LESS ([\d.]+)\)\n  message", text).group(1)
    minima["cmake"] = re.search(r"^cmake_minimum_required\(VERSION ([\d.]+?)\.\.\.", text).group(1)
    return minima
