"""The oldest versions that CMakeLists.txt and pyproject.toml allow are tested: minimum_versions_test.py ROOT

Every library has one. On Debian 12 each is that of the distribution, up to its own corrections, so that a build there is the build against
the oldest. Elsewhere only the first is checked.
"""
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(ROOT / "tests/support"))
from minimum_versions import minimum_versions  # noqa: E402

# What CMake calls a library, and its package in Debian. None: nobody can ask for its version.
PACKAGES = {
    "Boost": "libboost-dev", "spdlog": "libspdlog-dev", "fmt": "libfmt-dev", "nlohmann_json": "nlohmann-json3-dev", "CLI11": "libcli11-dev",
    "Eigen3": "libeigen3-dev", "OpenSSL": "libssl-dev", "libisal": "libisal-dev", "libzstd": "libzstd-dev", "hwloc": "libhwloc-dev",
    "ZLIB": "zlib1g-dev", "PNG": "libpng-dev", "HDF5": "libhdf5-dev", "libsystemd": "libsystemd-dev", "cairo": "libcairo2-dev",
    "g++": "g++-12", "cmake": "cmake",
    "cairo-svg": None, "Curses": None, "Threads": None, "PkgConfig": None, "CUDAToolkit": None,
}
MODULES = {"numpy": "python3-numpy", "h5py": "python3-h5py", "pandas": "python3-pandas", "pydicom": "python3-pydicom", "matplotlib": "python3-matplotlib"}


def installed(package):
    """The version of the library, without Debian's epoch and revision."""
    found = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return re.sub(r"^\d+:|[-+].*$", "", found.stdout) if found.returncode == 0 else None


minima = minimum_versions(ROOT)
problems = [f"{name} is not known to this test" for name in set(minima) - set(PACKAGES)]
problems += [f"CMakeLists.txt does not name {name}" for name in set(PACKAGES) - set(minima)]
problems += [f"{name} has no oldest version" for name, package in PACKAGES.items() if package and not minima.get(name)]

project = (ROOT / "tools/python/pyproject.toml").read_text(encoding="utf-8")
modules = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', project))
problems += [f"pyproject.toml names no oldest {name}" for name in MODULES if name not in modules]
checked = [(name, minima.get(name), package) for name, package in PACKAGES.items() if package]
checked += [(name, modules.get(name), package) for name, package in MODULES.items()]

system = platform.freedesktop_os_release()
if (system["ID"], system.get("VERSION_ID")) == ("debian", "12"):
    for name, version, package in checked:
        there = installed(package)
        print(f"{name} {version}: {package} {there}")
        if version and there and there != version and not there.startswith(f"{version}."):
            problems.append(f"{name}: {version} is named as the oldest version, but Debian 12 builds and tests {there}")
print("\n".join(problems))
sys.exit(1 if problems else 0)
