"""GATE 10's offline coincidence sorter on the singles of the set, and its rules written out one by one.

The sorter is opengate.actors.coincidences of the package opengate, which runs as it is. Only its file is used: the rest of the
package would load Geant4 and its data.
"""

import importlib.util
import math
import os
import sys
import types

RADIUS = 100.0  # of the circle on which the middles of the modules are put


class Unavailable(Exception):
    """Why the sorter cannot be used."""


def _fail(message):
    raise RuntimeError(message)


def load():
    """The module with the sorter, and the version of opengate."""
    spec = importlib.util.find_spec("opengate")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("the package opengate is not installed")
    from importlib import metadata  # pylint: disable=import-outside-toplevel

    [location] = spec.submodule_search_locations
    for name, path in (("opengate", [location]), ("opengate.actors", [os.path.join(location, "actors")])):
        package = types.ModuleType(name)
        package.__path__ = path  # its modules are found, its __init__ does not run
        sys.modules[name] = package
    errors = types.ModuleType("opengate.exception")  # the real one loads Geant4
    errors.raise_except = _fail
    sys.modules["opengate.exception"] = errors
    try:
        import opengate.actors.coincidences as sorter  # pylint: disable=import-outside-toplevel,import-error
    except ImportError as error:
        raise Unavailable(f"its sorter cannot be imported: {error}") from error
    return sorter, metadata.version("opengate")


def write_singles(path, singles, geometry):
    """A ROOT file of singles as GATE writes them. The time is in ticks, and modules and rings are places, so that distances in
    mm refuse the pairs that differences of modules and rings refuse."""
    import numpy as np  # pylint: disable=import-outside-toplevel
    import uproot  # pylint: disable=import-outside-toplevel,import-error

    times, crystals, energies = (np.array(column) for column in zip(*singles))
    angles = np.array([geometry.module_of(crystal) for crystal in crystals]) * (2 * math.pi / geometry.modules)
    with uproot.recreate(path) as file:
        file["Singles"] = {
            "EventID": np.arange(len(singles), dtype=np.int32), "GlobalTime": times.astype(np.float64),
            "PreStepUniqueVolumeID": crystals.astype(np.int32), "TotalEnergyDeposit": energies.astype(np.float64),
            "PostPosition_X": RADIUS * np.cos(angles), "PostPosition_Y": RADIUS * np.sin(angles),
            "PostPosition_Z": np.array([float(geometry.ring_of(crystal)) for crystal in crystals])}


def sort(sorter, path, rules, multi_window, chunk_size):
    """The pairs of numbers of singles that the sorter finds, in order."""
    import uproot  # pylint: disable=import-outside-toplevel,import-error

    geometry = rules.geometry
    distance = 2 * RADIUS * math.sin(math.pi * (geometry.min_module_difference - 0.5) / geometry.modules)
    with uproot.open(path) as file:
        found = sorter.coincidences_sorter(
            file["Singles"], rules.window, rules.policy, distance, "xy", geometry.max_ring_difference + 0.5, chunk_size=chunk_size,
            return_type="pd", allDigiOpenCoincGate=multi_window)
    return sorted(zip(found["EventID1"].tolist(), found["EventID2"].tolist()))


def pairs_by_rules(singles, rules, overlapping, without_same_crystal, opener_only=True):
    """The pairs when rules of the sorter replace those of the window mode, one after the other.

    opener_only: the pairs of a window are those with its opener.
    without_same_crystal: two singles of one crystal are no pair, also when pairs are counted and the winner is looked for.
    overlapping (not in mode every): a single opens no window if it is the second of a pair, whether or not the first opens one.
    """
    from rules import taken, windows  # pylint: disable=import-outside-toplevel

    def candidates(window):
        return [(a, b) for a in (window[:1] if opener_only else window) for b in window
                if a < b and not (without_same_crystal and singles[a].crystal == singles[b].crystal)]

    every = windows(singles, rules.__class__(**{**rules.__dict__, "mode": "every"}))
    found = []
    if overlapping:
        of_windows = [candidates(window) for window in every]
        second = {b for pairs in of_windows for _, b in pairs}
        opened = [pairs for pairs in of_windows if pairs and pairs[0][0] not in second]
    else:
        opened = [candidates(window) for window in windows(singles, rules)]
    for pairs in opened:
        if pairs:
            found += taken(pairs, singles, rules)
    return sorted(found)
