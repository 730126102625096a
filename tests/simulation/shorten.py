"""Delta debugging (Zeller's ddmin): the fewest events of a story with which the same check still fails."""


def shorten(events, still_fails, most_tries=200):
    """`still_fails(events)` plays a story with these events only. Returns those of the shortest story found."""
    events, parts, tries = list(events), 2, 0
    while events and tries < most_tries:
        size = max(1, -(-len(events) // parts))
        for begin in range(0, len(events), size):
            rest = events[:begin] + events[begin + size :]
            tries += 1
            if still_fails(rest):
                events, parts = rest, max(parts - 1, 2)
                break
            if tries >= most_tries:
                break
        else:
            if size == 1:
                break
            parts = min(len(events), 2 * parts)
    return events
