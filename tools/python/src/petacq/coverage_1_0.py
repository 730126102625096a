"""What the files of petacqd 1.0 say instead of their coverage, and how JSON is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
NO_RULES: Mapping[str, Any] = {}

#: Half-open, in ticks.
Ticks = tuple[int, int]


def utc(text: Any) -> datetime | None:
    """None for what is no time."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def member(document: Any, key: str) -> Any:
    return document.get(key) if isinstance(document, Mapping) else None


def object_of(document: Any, key: str) -> Mapping[str, Any]:
    """Empty for what is no object."""
    found = member(document, key)
    return found if isinstance(found, Mapping) else NO_RULES


def whole_number(found: Any) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def joined(intervals: Sequence[Ticks]) -> tuple[Ticks, ...]:
    """The times that are in any of them: in order; what overlaps or touches becomes one."""
    out: list[Ticks] = []
    for start, end in sorted(intervals):
        if start == end:
            continue
        if out and start <= out[-1][1]:
            before = out.pop()
            start, end = before[0], max(before[1], end)
        out.append((start, end))
    return tuple(out)


# Files of petacqd 1.0


def rules_of_1_0(
    description: Mapping[str, Any], run: Mapping[str, Any], unknown: list[str]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Those of the run, with the sections by which ``petlm resort`` has replaced some of them."""
    of_run, resorted = object_of(run, "configuration"), object_of(description, "resorted")
    rules = {key: object_of(resorted, key) or object_of(of_run, key) for key in ("coincidence", "energy")}
    if rules["coincidence"] or of_run:
        return rules["coincidence"], rules["energy"]
    window = whole_number(description.get("window_ticks"))
    if window is None:
        unknown.append("the rules by which its records were made")
        return NO_RULES, NO_RULES
    unknown += ["min_module_difference", "max_ring_difference", "window_mode", "multiples_policy", "the energy window"]
    return {"window_ticks": window, "delay_ticks": whole_number(description.get("delay_ticks"))}, NO_RULES


def recorded_by_1_0(run: Mapping[str, Any], tick_ps: float) -> Ticks | None:
    """From the first data to the stop: runs of 1.0 start where detector time stood, also before their data."""
    start, stop = whole_number(run.get("start_ticks")), whole_number(run.get("stop_ticks"))
    if start is None or stop is None or stop < start:
        return None
    data_s = member(run.get("expected_randoms"), "data_s")
    if not isinstance(data_s, (int, float)) or not tick_ps > 0:
        return start, stop
    data_ticks = data_s / (tick_ps * 1e-12)
    if data_ticks >= (stop - start) * (1 - 1e-9):
        return start, stop
    return stop - int(max(0.0, data_ticks)), stop


def anchor_of_1_0(run: Mapping[str, Any], begin: int, tick_ps: float) -> tuple[int, int] | None:
    start, stop = utc(run.get("start_utc")), utc(run.get("stop_utc"))
    if begin == run["start_ticks"] and start is not None:
        return begin, _ns_of(start)
    if stop is None:
        return None
    return begin, _ns_of(stop) - round((run["stop_ticks"] - begin) * tick_ps * 1e-3)


def _ns_of(when: datetime) -> int:
    return (when.replace(tzinfo=when.tzinfo or timezone.utc) - EPOCH) // timedelta(microseconds=1) * 1000


def intervals_of_1_0(
    description: Mapping[str, Any], recorded: Ticks | None, whole_run: bool
) -> tuple[tuple[Ticks, ...] | None, int | None]:
    """And for how many ticks records were taken within them, if not all."""
    cut, gate = description.get("cut"), description.get("gate")
    derived = "merged" in description or (isinstance(cut, Mapping) and isinstance(gate, Mapping))
    if recorded is None or derived:
        return None, None
    if isinstance(cut, Mapping):
        start = max(recorded[0], whole_number(cut.get("from_ticks")) or 0)
        to = whole_number(cut.get("to_ticks"))
        end = max(start, recorded[1] if to is None else min(recorded[1], to))
        of_gate = whole_number(cut.get("open_ticks"))
        if "gate" not in cut:
            return joined([(start, end)]), None
        return (joined([(start, end)]), of_gate) if of_gate is not None else (None, None)
    if isinstance(gate, Mapping):
        live = whole_number(gate.get("live_ticks"))
        return (joined([recorded]), live) if live is not None else (None, None)
    return (joined([recorded]), None) if whole_run else (None, None)
