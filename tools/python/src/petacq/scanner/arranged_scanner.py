"""A scanner described in the long form: any arrangement of crystals, and the units behind which they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import ScannerError
from petacq.scanner.arrangement import Address, Arrangement, Integers, Layer, Millimetres, ModuleType, Row
from petacq.scanner.keys import Part, whole
from petacq.scanner.place_modules import place_modules
from petacq.scanner.scanner import Scanner

_MOST_CRYSTALS = 1 << 28
_MOST_DUS = 16

#: What only a ring has.
_OF_RING = frozenset(
    ("channels", "modules_y", "modules_z", "blocks_y", "blocks_z", "crystals_y", "crystals_z", "ring_radius_mm")
    + ("crystal_pitch_y_mm", "crystal_pitch_z_mm", "crystal_length_mm", "block_gap_y_mm", "block_gap_z_mm")
    + ("module_gap_z_mm",)
)


class ArrangedScanner(Scanner):
    """What only a ring has (``rings``, ``crystals_in_ring``, ``ring()`` and others) raises ScannerError."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """From the JSON of a description in the long form. Raises ScannerError."""
        scanner = Part(document, "")
        types, units = [], []
        for described in scanner.parts("module_types"):
            types.append(_type_of(described))
            units.append(_units_of(described, types[-1]))
        if not types:
            raise ScannerError("/module_types: expected at least one")
        modules = place_modules(scanner.parts("modules"), types)
        if not modules:
            raise ScannerError("/modules: expected at least one")
        tick_ps = scanner.number("tick_ps")
        if tick_ps <= 0:
            raise ScannerError(f"/tick_ps: expected a number above 0, found {tick_ps}")
        values = {
            "name": scanner.text("name"),
            "tick_ps": tick_ps,
            "position_size": scanner.count("position_size", most=256),
            "arrangement": Arrangement(types, modules),
            "description": document,
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        if self.crystal_count > _MOST_CRYSTALS:
            raise ScannerError(f"{self.crystal_count} crystals: expected at most {_MOST_CRYSTALS}")
        object.__setattr__(self, "_units", _channel_map(scanner.part("channel_map"), self.arrangement, units))

    arrangement: Arrangement
    description: Mapping[str, Any]  #: the JSON
    _units: Mapping[tuple[int, int], Integers]  # of each (BDM, DU) its crystals

    def __getattr__(self, name: str) -> Any:
        if name in _OF_RING:
            raise ScannerError(f"{name}: expected a ring, in the short form; scanner {self.name} has the long form")
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrangedScanner) and self.description == other.description

    def __hash__(self) -> int:
        return hash((self.name, self.crystal_count))

    def __repr__(self) -> str:
        modules = len(self.arrangement.modules)
        return f"ArrangedScanner({self.name!r}, {modules} modules, {self.crystal_count} crystals)"

    @property
    def is_ring(self) -> bool:
        return False

    # Counts

    @property
    def bdm_count(self) -> int:
        return 1 + max(bdm for bdm, _ in self._units)

    @property
    def du_count(self) -> int:
        return 1 + max(du for _, du in self._units)

    @property
    def crystals_per_du(self) -> int:
        """Most crystals of a unit."""
        return max(map(len, self._units.values()))

    @property
    def crystal_count(self) -> int:
        return self.arrangement.crystal_count

    # Numbering

    @cached_property
    def _channels(self) -> tuple[Integers, Integers, Integers]:
        """BDM, DU and local number of each crystal."""
        bdms, dus, locals_ = (np.empty(self.crystal_count, np.int64) for _ in range(3))
        for (bdm, du), crystals in self._units.items():
            bdms[crystals], dus[crystals] = bdm, du
            locals_[crystals] = np.arange(len(crystals))
        return bdms, dus, locals_

    @cached_property
    def _crystals(self) -> Integers:
        """``[bdm][du][local]``; -1: there is none."""
        out = np.full((self.bdm_count, self.du_count, self.crystals_per_du), -1)
        for (bdm, du), crystals in self._units.items():
            out[bdm, du, : len(crystals)] = crystals
        return out

    def address(self, crystal: npt.ArrayLike) -> Address:
        at = self._existing(crystal)
        return Address(*(part[at] for part in self.arrangement.addresses))

    def module(self, crystal: npt.ArrayLike) -> Integers:
        """Module in which it is, of ``arrangement.modules``."""
        return self.address(crystal).module

    def bdm(self, crystal: npt.ArrayLike) -> Integers:
        """BDM that sends its hits."""
        return self._channels[0][self._existing(crystal)]

    def du(self, crystal: npt.ArrayLike) -> Integers:
        """DU of its hits."""
        return self._channels[1][self._existing(crystal)]

    def local(self, crystal: npt.ArrayLike) -> Integers:
        return self._channels[2][self._existing(crystal)]

    def crystal(self, bdm: npt.ArrayLike, du: npt.ArrayLike, local: npt.ArrayLike) -> Integers:
        """The crystal with that local number in that unit; -1 where there is none."""
        b, d, n = np.broadcast_arrays(*(np.asarray(x, np.int64) for x in (bdm, du, local)))
        shape = self._crystals.shape
        there = (b >= 0) & (d >= 0) & (n >= 0) & (b < shape[0]) & (d < shape[1]) & (n < shape[2])
        b, d, n = (np.where(there, x, 0) for x in (b, d, n))
        return np.where(there, self._crystals[b, d, n], -1)

    def local_of_origin(self, origin: npt.ArrayLike) -> Integers:
        """The entry of the position table itself."""
        return np.asarray(origin, np.int64)

    def _existing(self, crystal: npt.ArrayLike) -> Integers:
        c = np.asarray(crystal, np.int64)
        if c.size and not (0 <= int(c.min()) and int(c.max()) < self.crystal_count):
            raise ScannerError(f"crystal {int(c.max())}: expected less than {self.crystal_count}, and at least 0")
        return c

    # Places

    def positions_mm(self, depth_mm: npt.ArrayLike = 0.0) -> Millimetres:
        depth = np.asarray(depth_mm, float)
        return self.arrangement.positions_mm() + depth.reshape(-1, 1) * self.outward()

    def outward(self) -> Millimetres:
        return self.arrangement.outward()

    def axes(self) -> Millimetres:
        return self.arrangement.axes()

    def sizes_mm(self) -> Millimetres:
        return self.arrangement.sizes_mm()


def row_of(part: Part) -> Row:
    """Crystals side by side, as a description has them. Raises ScannerError."""
    equal = part.has("count") or part.has("pitch_mm")
    if equal == bool(part.items("sizes_mm")):
        found = "both" if equal else "neither"
        raise ScannerError(f"{part.path}: expected either count and pitch_mm, or sizes_mm, found {found}")
    if equal:
        pitch = part.number("pitch_mm")
        size = part.number("size_mm", pitch)
        if not 0 < size <= pitch:
            raise ScannerError(f"{part.path}/size_mm: expected above 0 and at most the pitch, found {size}")
        sizes = np.full(part.count("count", most=4096), size)
        gaps = np.full(len(sizes), pitch - size)
    else:
        sizes = np.array(part.items("sizes_mm"), float)
        if not (np.isfinite(sizes).all() and (sizes > 0).all()):
            raise ScannerError(f"{part.path}/sizes_mm: expected numbers above 0")
        gaps = np.zeros(len(sizes))
    for gap in part.parts("gaps"):
        gaps[gap.count("after", most=len(sizes) - 1) - 1] += gap.number("mm")
    gaps[-1] = 0
    begin = np.concatenate([[0], np.cumsum(sizes + gaps)])
    return Row(begin[:-1] + sizes / 2 + part.number("shift_mm", 0.0) - begin[-1] / 2, sizes)


def _type_of(part: Part) -> ModuleType:
    layers: list[Layer] = []
    at = 0.0
    for of in part.parts("layers"):
        y, z, length = row_of(of.part("y")), row_of(of.part("z")), of.number("length_mm")
        attenuation = of.number("attenuation_per_cm") if of.has("attenuation_per_cm") else None
        for _ in range(of.count("count", 1, most=64)):
            at += of.number("gap_mm", 0.0)
            layers.append(Layer(y, z, at, length, of.text("material", "LYSO"), attenuation))
            at += length
    if not layers:
        raise ScannerError(f"{part.path}/layers: expected at least one")
    resolutions = [part.number(key) if part.has(key) else None for key in ("time_resolution_ps", "energy_resolution")]
    return ModuleType(part.text("name"), layers, *resolutions)


def _range(part: Part, key: str, count: int) -> range:
    if not part.has(key):
        return range(count)
    ends = part.items(key)
    first, last = (whole(end, f"{part.path}/{key}", 0, count - 1) for end in ends) if len(ends) == 2 else (1, 0)
    if first > last:
        raise ScannerError(f"{part.path}/{key}: expected a first and a last of {count}, found {ends}")
    return range(first, last + 1)


def _units_of(part: Part, of: ModuleType) -> list[Integers]:
    """The crystals of each unit of a module, numbered from the first crystal of the module."""
    firsts = np.concatenate([[0], np.cumsum([layer.crystal_count for layer in of.layers])])
    units = []
    for unit in part.parts("units") or [Part({}, f"{part.path}/units")]:
        crystals = []
        for k in _range(unit, "layers", len(of.layers)):
            y, z = of.layers[k].y, of.layers[k].z
            columns, rows = np.array(_range(unit, "y", len(y))), np.array(_range(unit, "z", len(z)))
            crystals.append((firsts[k] + columns[:, None] * len(z) + rows).ravel())
        units.append(np.concatenate(crystals))
    found = np.sort(np.concatenate(units))
    if not np.array_equal(found, np.arange(of.crystal_count)):
        raise ScannerError(f"{part.path}/units: expected each of the {of.crystal_count} crystals in exactly one unit")
    return units


def _channel_map(
    part: Part, arrangement: Arrangement, units: Sequence[Sequence[Integers]]
) -> dict[tuple[int, int], Integers]:
    of_module = [units[m.type] for m in arrangement.modules]
    mapped: list[tuple[int, int, int, int]] = []  # BDM, DU, module, unit
    per_bdm = part.count("units_per_bdm", most=_MOST_DUS) if part.has("units_per_bdm") else None
    for listed in part.parts("units"):
        module = listed.count("module", least=0, most=len(of_module) - 1)
        unit = listed.count("unit", 0, 0, len(of_module[module]) - 1)
        mapped.append((listed.count("bdm", least=0, most=65535), listed.count("du", None, 0, _MOST_DUS - 1), module, unit))
    if not mapped:
        for module, parts in enumerate(of_module):
            if per_bdm is None and len(parts) > _MOST_DUS:
                raise ScannerError(f"/channel_map: expected units_per_bdm or units; module {module} has {len(parts)} units")
            for unit in range(len(parts)):
                address = (module, unit) if per_bdm is None else divmod(len(mapped), per_bdm)
                mapped.append((*address, module, unit))
    elif per_bdm is not None:
        raise ScannerError("/channel_map: expected units_per_bdm or units, found both")
    everywhere = {(module, unit) for module, parts in enumerate(of_module) for unit in range(len(parts))}
    addresses = {(bdm, du) for bdm, du, _, _ in mapped}
    if {(module, unit) for _, _, module, unit in mapped} != everywhere or len(mapped) != len(everywhere):
        raise ScannerError("/channel_map/units: expected every unit of every module once")
    if len(addresses) != len(mapped):
        raise ScannerError("/channel_map/units: expected an address of its own for every unit")
    return {
        (bdm, du): arrangement.first_crystal[module] + of_module[module][unit] for bdm, du, module, unit in mapped
    }
