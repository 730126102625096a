"""What boards send: frames made tick by tick, sparse, dense, or where a search for coincidences may go wrong.

A second has 1,000,000 ticks. The times of singles are those of the frames: the calibration has no offsets.
"""

import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "faults"))

from datagrams import datagram, frame  # noqa: E402

TICKS_PER_S = 1_000_000
BOARDS = 14  # sources; board b has module b
WINDOW, DELAY, MOST = 320, 10_000, 64  # the coincidence window, its delay, the largest group
GAMMAS = {"lower_keV": 200, "upper_keV": 349, "before_ticks": 900, "after_ticks": 1500, "delay_ticks": 20_000}
START = 7 * TICKS_PER_S - 50_000  # of the run
LARGEST = 91  # frames of a datagram
SKEW = 30_000  # ticks by which a board may be behind


def hit(random_, ticks):
    """A frame of some board, mostly in the energy window, some in that of gammas, and often of the same energy as others."""
    adc = random_.choice((2044, 2044, 2044, 1400, 2600, 1000, random_.randrange(1400, 2600)))
    board = random_.randrange(BOARDS)
    return ticks, board, frame(ticks, board, random_.randrange(6), random_.randrange(64), random_.randrange(64), adc)


def tag(random_, ticks):
    kind, value = random_.choice(((0, 7), (0, 7), (1, 1), (1, 0), (2, 4000), (3, 11), (4, 99), (9, 2**32 - 1)))
    board = random_.randrange(BOARDS)
    return ticks, board, struct.pack(">BBQIBB", 0xB0 | random_.randrange(3), kind, ticks, value, 0, 0x5)


def sparse(random_):
    """Pairs and lone singles far apart; some have others near the delay."""
    at, times = START - 5000, []
    while len(times) < 6000:
        at += int(random_.expovariate(1 / (20 * WINDOW))) + 1
        times.append(at)
        if random_.random() < 0.6:
            times.append(at + random_.randrange(WINDOW + 20))
        if random_.random() < 0.3:
            times.append(at + DELAY + random_.randrange(-20, WINDOW + 20))
    return times


def dense(random_):
    """40, 11, 5 and 2 singles in a window: no gaps, then some."""
    at, times = START - 5000, []
    for gap in (8, 30, 60, 150):
        for _ in range(5000):
            at += int(random_.expovariate(1 / gap) + 0.5)
            times.append(at)
    return times


def adversarial(random_):
    """Many equal times, chains of windows without a gap, times at the edges of windows, runs and seconds, bursts."""
    times = [START + d for d in (-WINDOW, -1, -1, 0, 0, 1, WINDOW - 1, WINDOW, WINDOW + 1)]
    at = START + 2000
    for count in (2, 3, MOST - 1, MOST, MOST + 1, 3 * MOST, 2, 2):  # equal times
        times += [at] * count
        at += 2 * WINDOW
    for step in (WINDOW, WINDOW + 1, WINDOW // 2, 100, WINDOW - 1):  # chains that fill shards
        for _ in range(2500):
            times.append(at)
            at += step
        at += 5 * WINDOW
    for number in range(1500):  # now inside, now outside
        times += [at] * random_.choice((1, 1, 2, 3))
        at += WINDOW + number % 2
    at += 2 * DELAY
    for _ in range(200):  # the edges of the delayed window
        times += [at, at] + [at + DELAY + d for d in (-WINDOW, -1, 0, 0, 1, WINDOW - 1, WINDOW, WINDOW + 1)]
        at += random_.choice((DELAY - WINDOW, DELAY, DELAY + 1, 3 * DELAY))
    for _ in range(8):  # bursts as long as slices and blocks
        times += [at + number // 30 * (WINDOW + 1) for number in range(600)]
        times += [at + 20 * (WINDOW + 1) + random_.randrange(2000) for _ in range(400)]
        at += 40 * DELAY
    for second in range(START // TICKS_PER_S + 1, at // TICKS_PER_S + 2):  # a chain across, and equal times on the edge
        edge = second * TICKS_PER_S
        times += [edge + number * WINDOW // 2 for number in range(-20, 20)] + [edge - 1, edge, edge, edge + 1] * 3
        at = max(at, edge)
    end = at + 3 * DELAY
    return times + [end + d for d in (-WINDOW, -1, -1, 0, 0, 1, WINDOW)]


class Stream:
    """`before`: datagrams from which the detector time is known; `datagrams`: the others, as (board, bytes), in the
    order of sending. A run has the ticks from START to `end`; `disorder`: ticks by which a frame may be out of order."""

    def __init__(self, times, seed):
        random_ = random.Random(seed)
        times = sorted(times(random_))
        self.end = times[-1] - WINDOW  # of adversarial(): as it expects
        self.disorder = min((self.end - START) // 25, TICKS_PER_S // 5)
        events = [hit(random_, ticks) for ticks in times]
        events += [(ticks, (board + 1) % BOARDS, frame(ticks, (board + 1) % BOARDS, 1, 30, 30, 2044))
                   for ticks, board, _ in random_.sample(events, 200)]
        for ticks in random_.sample(times, 150) + [START - 1, START, self.end - 1, self.end]:
            events += [tag(random_, ticks) for _ in range(random_.choice((1, 1, 1, 4)))]
        # Times that each board reaches, so that nothing waits for one.
        step = TICKS_PER_S // 4
        events += [(ticks, board, frame(ticks, board)) for board in range(BOARDS)
                   for ticks in [*range(START, self.end, step), *(self.end + i * step for i in range(1, 5))]]
        self.sequences = [random_.randrange(2**40) for _ in range(BOARDS)]
        early = START - 3 * self.disorder
        self.before = [(board, self.datagram(board, [frame(early + 100 * i, board)]))
                       for i in range(5) for board in range(BOARDS)]
        self.datagrams = self.packed(sorted(events, key=lambda event: event[0]), random_)

    def datagram(self, board, frames):
        self.sequences[board] += 1
        return datagram(board, self.sequences[board], frames)

    def packed(self, events, random_):
        """Datagrams of all boards, each in time but for its skew; the frames of a datagram are in any order."""
        skews = [random_.randrange(SKEW) for _ in range(BOARDS)]
        ready, open_ = [], [[] for _ in range(BOARDS)]

        def close(board):
            if open_[board]:
                frames = [event[2] for event in open_[board]]
                last = open_[board][-1][0]
                random_.shuffle(frames)
                ready.append((last + skews[board], board, self.datagram(board, frames)))
                open_[board] = []

        for event in events:
            waiting = open_[event[1]]
            if len(waiting) == LARGEST or (waiting and event[0] - waiting[0][0] > self.disorder // 2):
                close(event[1])
            open_[event[1]].append(event)
        for board in range(BOARDS):
            close(board)
        return [(board, payload) for _, board, payload in sorted(ready, key=lambda one: one[0])]


KINDS = {"sparse": sparse, "dense": dense, "adversarial": adversarial}
