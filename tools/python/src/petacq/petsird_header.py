"""The scanner in a PETSIRD file, and how records become its events."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from petacq.errors import PetacqError
from petacq.run import Run
from petacq.scanner import Scanner

HALF_LIGHT_MM_PER_PS = 0.299792458 / 2
MOST_TOF_BINS = 65535
MOST_PAIR_EFFICIENCIES = 1 << 22


@dataclass(frozen=True)
class Options:
    block_ms: int = 1  #: length of a time block: the resolution of the time of an event
    tof_bin_ticks: int = 1  #: width of a TOF bin; 0: no TOF
    energy_bins: int = 1  #: of the energy window
    delayeds: bool = True
    tof_resolution_ps: float | None = None  #: FWHM of the time difference of a pair, if known
    energy_resolution: float | None = None  #: FWHM / energy at 511 keV, if known


@dataclass
class Report:
    """The contents of the file, and what it lacks."""

    prompts: int = 0
    delayeds: int = 0
    not_held: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Bins:
    """How records become events: the tables of one conversion."""

    element: npt.NDArray[np.int64]  # [crystal]: module * elements in a module + element
    window_ticks: int
    tof_bin_ticks: int
    tof_half: int  # bins on either side of the middle one
    energy_edges: npt.NDArray[np.float32]
    start_ticks: int
    ms_per_tick: float
    block_ms: int

    @property
    def energies(self) -> int:
        return len(self.energy_edges) - 1

    def detection_bins(self, crystal: npt.NDArray[Any], energy: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        bin_of = np.searchsorted(self.energy_edges, energy, "right") - 1
        return np.asarray(self.element[crystal] * self.energies + np.clip(bin_of, 0, self.energies - 1), np.int64)

    def tof(self, dt: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """A pair is written as (a, b), and a came first: t_a - t_b = -dt is never positive."""
        if self.tof_bin_ticks == 0:
            return np.zeros(len(dt), np.int64)
        width = self.tof_bin_ticks
        return np.asarray(self.tof_half - (2 * dt.astype(np.int64) + width) // (2 * width), np.int64)

    def block_of(self, ticks: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        since = ticks.astype(np.int64) - self.start_ticks
        return np.asarray(np.floor(since * (self.ms_per_tick / self.block_ms)), np.int64)


def bins_of(run: Run, options: Options) -> Bins:
    scanner = run.scanner
    window_ticks = run.coincidences.description.get("window_ticks")  # of this list-mode: it may have been re-sorted
    if not isinstance(window_ticks, int):
        window_ticks = run.configuration["coincidence"]["window_ticks"]
    half = 0
    if options.tof_bin_ticks:
        half = (2 * window_ticks + options.tof_bin_ticks) // (2 * options.tof_bin_ticks)
        if 2 * half + 1 > MOST_TOF_BINS:
            raise PetacqError(
                f"{2 * half + 1} TOF bins of {options.tof_bin_ticks} ticks in a window of {window_ticks}: expected at most "
                f"{MOST_TOF_BINS}; choose wider ones"
            )
    lower, upper = _energy_window(run)
    return Bins(
        element=_elements(scanner),
        window_ticks=window_ticks,
        tof_bin_ticks=options.tof_bin_ticks,
        tof_half=half,
        energy_edges=np.linspace(lower, upper, options.energy_bins + 1).astype(np.float32),
        start_ticks=run.start_ticks,
        ms_per_tick=scanner.tick_ps * 1e-9,
        block_ms=options.block_ms,
    )


def _elements(scanner: Scanner) -> npt.NDArray[np.int64]:
    """Modules go along the axis first, then around the ring; so do the elements in a module. STIR expects this."""
    crystal = np.arange(scanner.crystal_count)
    ring, y = scanner.ring(crystal), scanner.in_ring(crystal) % scanner.crystals_per_module_y
    module = scanner.module(crystal) * scanner.modules_z + ring // scanner.crystals_per_module_z
    element = y * scanner.crystals_per_module_z + ring % scanner.crystals_per_module_z
    return module * (scanner.crystals_per_module_y * scanner.crystals_per_module_z) + element


def _energy_window(run: Run) -> tuple[float, float]:
    energy = run.configuration.get("energy", {})
    if energy.get("filter", True) and energy.get("upper_keV", 0) > energy.get("lower_keV", 0):
        return float(energy["lower_keV"]), float(energy["upper_keV"])
    highest = 0.0
    for block in run.coincidences.blocks():
        highest = max(highest, float(block["energy_a"].max()), float(block["energy_b"].max()))
    return 0.0, float(math.floor(highest) + 1)


def has_delayeds(run: Run) -> bool:
    found = run.configuration.get("coincidence", {}).get("delay_ticks")
    return found is not None


def header_of(petsird: Any, run: Run, options: Options, bins: Bins, report: Report) -> Any:
    scanner = run.scanner
    coincidence = run.configuration.get("coincidence", {})
    tick_mm = scanner.tick_ps * HALF_LIGHT_MM_PER_PS
    if options.tof_bin_ticks:
        tof = (np.arange(2 * bins.tof_half + 2) - bins.tof_half - 0.5) * (options.tof_bin_ticks * tick_mm)
    else:
        tof = np.array([-1.0, 1.0]) * ((bins.window_ticks + 0.5) * tick_mm)
    policies = petsird.CoincidencePolicy
    policy = {
        "RemoveMultiples": policies.REJECT_HIGHER_MULTIPLES,
        "TakeAllGoods": policies.MULTIPLES_AS_ALL_COINCIDENCES,
    }.get(coincidence.get("multiples_policy"), policies.OTHER)
    if coincidence.get("window_mode") != "single":
        policy = policies.OTHER
    information = petsird.ScannerInformation(
        model_name=scanner.name,
        scanner_geometry=_geometry(petsird, scanner),
        tof_bin_edges=[[petsird.BinEdges(edges=tof.astype(np.float32))]],
        tof_resolution=[[(options.tof_resolution_ps or 0.0) * HALF_LIGHT_MM_PER_PS]],
        event_energy_bin_edges=[petsird.BinEdges(edges=bins.energy_edges)],
        energy_resolution_at_511=[options.energy_resolution or 0.0],
        prompt_event_policy=policy,
        delayed_event_policy=policy,
        prompt_events_are_stored=True,
        delayed_events_are_stored=options.delayeds and has_delayeds(run),
        detection_efficiencies=_efficiencies(petsird, run, bins, report),
    )
    # The reader returns f32 values, so f32 values are written; headers can then be compared.
    information.tof_resolution = [[float(np.float32(v)) for v in row] for row in information.tof_resolution]
    information.energy_resolution_at_511 = [float(np.float32(v)) for v in information.energy_resolution_at_511]
    exam = petsird.ExamInformation(protocol=run.note or None)
    if subject := run.operator.get("subject"):
        exam.subject = petsird.Subject(id=str(subject))
    if run.start is not None:
        nanoseconds = round(run.start.timestamp() * 1000) * 1_000_000
        exam.start_of_acquisition = petsird.DateTime(nanoseconds)
    return petsird.Header(scanner=information, exam=exam)


def _geometry(petsird: Any, scanner: Scanner) -> Any:
    """One type of module, a box for each crystal. The module at the angle 0 is on +x; the others are turned about z."""

    def matrix(angle: float, x: float, y: float, z: float) -> Any:
        c, s = math.cos(angle), math.sin(angle)
        rows = ((c, -s, 0, x), (s, c, 0, y), (0, 0, 1, z))
        return petsird.RigidTransformation(matrix=np.array(rows, np.float32))

    depth, width, height = scanner.crystal_length_mm, scanner.crystal_pitch_y_mm, scanner.crystal_pitch_z_mm
    corners = [(0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (1, 1, 0)]
    box = petsird.BoxShape(
        corners=[petsird.Coordinate(c=np.array((x * depth, y * width, z * height), np.float32)) for x, y, z in corners]
    )
    in_module_z = scanner.axial_mm[: scanner.crystals_per_module_z]
    middle_z = (in_module_z[0] + in_module_z[-1]) / 2
    elements = [
        matrix(0.0, scanner.ring_radius_mm, float(y - width / 2), float(z - middle_z - height / 2))
        for y in scanner.tangential_mm[: scanner.crystals_per_module_y]
        for z in in_module_z
    ]
    module_z = scanner.axial_mm[:: scanner.crystals_per_module_z] - in_module_z[0] + middle_z
    modules = [
        matrix(2 * math.pi * k / scanner.modules_in_ring, 0.0, 0.0, float(z))
        for k in range(scanner.modules_in_ring)
        for z in module_z
    ]
    crystals = petsird.ReplicatedBoxSolidVolume(
        object=petsird.BoxSolidVolume(shape=box, material_id=0), transforms=elements
    )
    module = petsird.DetectorModule(detecting_elements=crystals)
    return petsird.ScannerGeometry(
        replicated_modules=[petsird.ReplicatedDetectorModule(object=module, transforms=modules)]
    )


def _efficiencies(petsird: Any, run: Run, bins: Bins, report: Report) -> Any:
    """All 1, but for pairs of modules that were not in coincidence. (The package's own default for the factor is 0.)"""
    scanner = run.scanner
    efficiencies = petsird.DetectionEfficiencies(method_description="none: all equal", calibration_factor=1.0)
    least = run.configuration.get("coincidence", {}).get("min_module_difference")
    if not least:
        return efficiencies
    in_module = scanner.crystals_per_module_y * scanner.crystals_per_module_z * bins.energies
    if in_module**2 > MOST_PAIR_EFFICIENCIES:
        report.not_held.append(
            f"min_module_difference {least}: needs an efficiency for each of {in_module}^2 pairs of bins of two modules"
        )
        return efficiencies
    place = np.arange(scanner.bdm_count) // scanner.modules_z
    apart = np.abs(place[:, None] - place[None, :])
    apart = np.minimum(apart, scanner.modules_in_ring - apart)
    table = np.where(apart >= least, 0, -1).astype(np.int32)
    ones = petsird.ModulePairEfficiencies(values=np.ones((in_module, in_module), np.float32), sgid=0)
    efficiencies.module_pair_sgidlut = [[table]]
    efficiencies.module_pair_efficiencies_vectors = [[[ones]]]
    return efficiencies


def not_held(run: Run, options: Options, bins: Bins) -> list[str]:
    scanner = run.scanner
    said = [f"times: known to {options.block_ms} ms, the length of a time block ({scanner.tick_ps:g} ps in the run)"]
    low, high = bins.energy_edges[0], bins.energy_edges[-1]
    what = "one bin" if bins.energies == 1 else f"{bins.energies} bins"
    said.append(f"energies: {what} from {low:g} to {high:g} keV")
    if options.tof_bin_ticks == 0:
        said.append("time differences: left out")
    elif options.tof_bin_ticks > 1:
        said.append(f"time differences: in bins of {options.tof_bin_ticks} ticks")
    if options.tof_bin_ticks and options.tof_resolution_ps is None:
        said.append("TOF resolution: not known, written as 0")
    if options.energy_resolution is None:
        said.append("energy resolution: not known, written as 0")
    coincidence = run.configuration.get("coincidence", {})
    if coincidence.get("max_ring_difference") is not None:
        said.append(f"max_ring_difference {coincidence['max_ring_difference']}: the format has no place for it")
    if has_delayeds(run):
        said.append("delayed coincidences: left out" if not options.delayeds else "the delay of delayed coincidences")
    if run.singles is not None:
        said.append("singles: not converted")
    if any(key != "subject" for key in run.operator):
        said.append("nuclide, activity, bed position and keys of the operator: the header has no place for them")
    said += [f"what is missing: {part}" for part in run.coincidences.missing]
    return said
