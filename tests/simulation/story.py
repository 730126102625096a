"""What happens around the daemon in one simulation: settings and events with times, drawn from a seed.

The text has a line `NAME NUMBER` for each setting and a line `MS EVENT WORD...` for each event. preload/world.cpp plays it.
"""

import dataclasses
import json

# With their defaults; None: a story must have it.
SETTINGS = {
    "seed": None, "length_ms": None, "boards": None, "decays_per_s": None, "send_ms": None, "status_ms": None,
    "sockets": 2,
    "gammas": 0,  # GAMMAS
    "delayeds": 0,  # DELAYEDS
    "capture": 0,  # 1: with a raw capture
    "spectra": 0,  # 1: with the spectra of a run
    # One of so many; 0: none.
    "gamma_one_in": 0,  # decays emit a third photon, and of these another; at least 2
    "echo_one_in": 0,  # decays are followed by another after the delay of the delayeds
    "tag_one_in": 0,  # datagrams have a tag
}
GAMMAS = (None, "all", "only_one", "nearest")
DELAYEDS = ("shifted_group", "delayed_window")
CALIBRATIONS = 2
TICKS_PER_MS = 64_000_000
BOARDS = 4
EVENTS_PER_MINUTE = 10
QUIET_START_MS, QUIET_END_MS = 2000, 8000


class Random:
    """The same numbers on every machine and with every version of Python (splitmix64)."""

    def __init__(self, seed):
        self.state = seed * 2 + 1

    def below(self, limit):
        self.state = (self.state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        v = self.state
        v = ((v ^ (v >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        v = ((v ^ (v >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        return (v ^ (v >> 31)) % limit

    def between(self, least, most):
        return least + self.below(most - least + 1)

    def one_of(self, choices):
        return choices[self.below(len(choices))]


@dataclasses.dataclass(frozen=True)
class Event:
    ms: int
    what: str
    words: tuple = ()

    def __str__(self):
        return " ".join([str(self.ms), self.what, *map(str, self.words)])

    def number(self, word):
        return int(self.words[word])


@dataclasses.dataclass(frozen=True)
class Story:
    settings: dict
    events: tuple

    def __str__(self):
        lines = [f"{name} {self.settings[name]}" for name in SETTINGS] + [str(event) for event in self.events]
        return "\n".join(lines) + "\n"

    def with_events(self, events):
        return Story(self.settings, tuple(events))

    @staticmethod
    def parse(text):
        """Raises ValueError with the line that is wrong."""
        settings, events = {}, []
        for line in text.splitlines():
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0].isdigit() and len(words) > 1:
                events.append(Event(int(words[0]), words[1], tuple(words[2:])))
            elif words[0] in SETTINGS and len(words) == 2 and words[1].isdigit():
                settings[words[0]] = int(words[1])
            else:
                raise ValueError(f"expected MS EVENT WORD... or SETTING NUMBER, found: {line}")
        missing = [name for name, default in SETTINGS.items() if default is None and name not in settings]
        if missing:
            raise ValueError(f"expected the settings {', '.join(SETTINGS)}, missing: {', '.join(missing)}")
        return Story({**SETTINGS, **settings}, tuple(events))


def request(method, number, **parameters):
    message = {"jsonrpc": "2.0", "id": number, "method": method}
    if parameters:
        message["params"] = parameters
    return ("request", (json.dumps(message, separators=(",", ":")),))


def draw_interval(random, at):
    """What a start asks for; the boards' clocks show the time of the story unless something happens to them."""
    begin = random.between(-100, 4000)
    kind = random.below(3)
    if kind == 0:
        return {"duration_s": random.between(1, 9)}
    if kind == 1:
        return {"start_ticks": (at + begin) * TICKS_PER_MS}
    return {"start_ticks": (at + begin) * TICKS_PER_MS, "stop_ticks": (at + begin + random.between(1, 9000)) * TICKS_PER_MS}


def draw_switches(random, length_ms):
    """Another calibration is put in place, and mostly the daemon is told."""
    events = []
    for number in range(random.one_of([0, 0, 1, 3])):
        at = random.between(QUIET_START_MS, length_ms - QUIET_END_MS)
        events.append(Event(at, "calibration", (random.below(CALIBRATIONS),)))
        if random.below(5) != 0:
            events.append(Event(at + random.one_of([0, 1, 40, 700]), *request("reload", 100 + number)))
    return events


def draw_operator(random, length_ms):
    """Commands in an order that mostly makes sense, and at times none."""
    events, at, running = [], QUIET_START_MS, False
    while (at := at + random.between(50, 9000)) < length_ms - QUIET_END_MS:
        kind, number = random.below(10), len(events)
        if kind < 7:
            running = not running
            what = request("start", number, run=f"r{number}") if running else request("stop", number)
        elif kind == 7:
            what = request("start", number, run=f"r{number}", **draw_interval(random, at))
        else:
            what = request(random.one_of(["stop", "nonsense", "subscribe", "acknowledge"]), number)
        events.append(Event(at, *what))
        if kind < 7 and random.below(6) == 0:  # before it is done
            running = not running
            what = request("start", number + 1, run=f"r{number + 1}") if running else request("stop", number + 1)
            events.append(Event(at + random.one_of([0, 1, 5]), *what))
    return events


def draw_fault(random):
    board = random.below(BOARDS)
    one_in = random.one_of([2, 5, 20, 100])
    kind = random.below(20)
    if kind < 3:
        return "silence", (board, random.one_of([100, 450, 900, 3000, 8000]))
    if kind == 3:
        return random.one_of([("off", (board,)), ("on", ("all",))])
    if kind == 4:
        return "reset", (random.one_of([board, "all"]),)
    if kind == 5:
        return "step_us", (random.one_of([board, "all"]), random.one_of([-3000000, -500000, -50000, -5000, 5000, 50000, 1500000, 9000000]))
    if kind == 6:
        return "drift_ppm", (board, random.one_of([-200, -20, 20, 200]))
    if kind < 15:
        return ("lose", "double", "delay", "corrupt")[(kind - 7) // 2], (board, random.one_of([0, one_in]))
    if kind == 15:
        return random.one_of([("burst", (board, random.one_of([20, 200, 1000]))), ("flood", (board, random.one_of([500, 4000])))])
    if kind == 16:
        return "strangers", (random.one_of([1, 30]),)
    if kind == 17:
        return "clock_step_ms", (random.one_of([-3600000, -700, 700, 3600000]),)
    return random.one_of([("disk_full", (random.one_of([500, 4000]),)), ("disk_fails", (random.one_of([500, 4000]),)),
                          ("disk_fails_to_sync", (random.one_of([500, 4000]),)),
                          ("disk_slow", (random.one_of([500, 4000]), random.one_of([20, 200, 1500])))])


def draw(seed, length_ms=60000):
    """The story of a seed."""
    random = Random(seed)
    settings = {"seed": seed, "length_ms": length_ms, "boards": BOARDS, "decays_per_s": random.one_of([50, 200, 400]),
                "send_ms": random.one_of([20, 60, 100]), "status_ms": 2000, "sockets": random.one_of([1, 2, 2, 4]),
                "gammas": random.one_of([0, 0, 1, 2, 3]), "delayeds": random.below(len(DELAYEDS)),
                "capture": random.one_of([0, 0, 1]), "spectra": random.one_of([0, 0, 1]), "gamma_one_in": random.one_of([0, 3]),
                "echo_one_in": random.one_of([0, 4]), "tag_one_in": random.one_of([0, 10])}
    events = draw_operator(random, length_ms) + draw_switches(random, length_ms)
    for _ in range(random.below(max(1, EVENTS_PER_MINUTE * length_ms // 60000)) + 1):
        at, fault = random.between(QUIET_START_MS, length_ms - QUIET_END_MS), draw_fault(random)
        events.append(Event(at, *fault))
        if fault[0] == "reset" and random.below(2) == 0:  # what was lost before it is lost for good
            events.append(Event(min(at + random.between(3000, 20000), length_ms - QUIET_END_MS), *fault))
        if fault[0] == "flood" and random.below(2) == 0:  # more than a slow disk takes
            events.append(Event(at, "disk_slow", (4000, random.one_of([200, 1500]))))
    starts = [event.ms for event in events if event.what == "request" and '"start"' in event.words[0]]
    for _ in range(random.one_of([0, 0, 0, 1, 1, 2]) * max(1, length_ms // 60000)):
        end = random.one_of([("kill", ()), ("power_cut", (random.between(1, 60),)), ("power_cut", (random.between(1, 60),)),
                             ("power_cut", (random.between(1, 5),)), ("terminate", ())])
        at = random.between(QUIET_START_MS, length_ms - QUIET_END_MS)
        if starts and random.below(4) != 0:  # mostly in a run
            at = random.one_of(starts) + random.between(100, 7000)
        events.append(Event(at, *end))
    return Story(settings, tuple(sorted(events, key=lambda event: event.ms)))
