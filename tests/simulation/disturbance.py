"""How long the faults of a story act."""

from units import MS, S


def lasts_ns(event):
    """How long a fault acts by itself."""
    if event.what in ("silence", "flood"):
        return event.number(1) * MS
    if event.what in ("disk_full", "disk_fails", "disk_fails_to_sync", "disk_slow"):
        return event.number(0) * MS
    return 10**18 if event.what in ("off", "drift_ppm") else 0


def disturbed(story, begin_ns, end_ns, *faults):
    """Whether one of these faults may act between two times."""
    return any(e.what in faults and e.ms * MS <= end_ns and e.ms * MS + lasts_ns(e) + 2 * S >= begin_ns for e in story.events)
