"""A board of the small scanner, which can send what a maker of boards may send by mistake."""

import random
import socket
import struct
import threading
import time
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Callable

Hit = namedtuple("Hit", "head du bdm time x y energy tail")
TICK_S = 15.625e-12
FRAMES = 20  # in a datagram
KEPT_S = 0.2  # of what is due; far less than watermark.max_lag_ms
HEADER = ">4sBBHQ"


def big_endian(hit):
    return struct.pack(">BBQBBHbB", hit.head << 4 | hit.du, hit.bdm, hit.time % 2**64, hit.x, hit.y, hit.energy, 25, hit.tail)


def header(source, number):
    return struct.pack(HEADER, b"PETF", 1, 0, source, number % 2**64)


def words_of(size):
    """Frames as little-endian words of so many bytes."""
    def encode(hit):
        frame = big_endian(hit)
        return b"".join(frame[at:at + size][::-1] for at in range(0, 16, size))
    return encode


def swapped(format_, start, end):
    """Frames of which one field is little-endian."""
    def encode(hit):
        frame = big_endian(hit)
        return frame[:start] + struct.pack("<" + format_, *struct.unpack(">" + format_, frame[start:end])) + frame[end:]
    return encode


@dataclass
class Board:
    """Sends until it is stopped. What is left as it is, is right."""
    source: int = 0
    bdms: tuple = tuple(range(6))
    hit: Callable = lambda hit: hit
    frame: Callable = big_endian
    header: Callable = header
    number: Callable = lambda count, frames: count
    trailer: bytes = b""
    tick_s: float = TICK_S
    sent: Callable = lambda count: 1  # how often the datagram is sent
    rate: float = 5000  # frames/s
    after_s: float = 0  # begins so much later
    moment: Callable = lambda s: s  # of detector time
    _stopped: threading.Event = field(default_factory=threading.Event, init=False)

    def start(self, port):
        self._thread = threading.Thread(target=self._send, args=(port,))
        self._thread.start()

    def stop(self):
        self._stopped.set()
        self._thread.join()

    def _send(self, port):
        if self._stopped.wait(self.after_s):
            return
        chance = random.Random()  # no two boards have hits at the same distances, which would look like coincidences
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
            out.connect(("127.0.0.1", port))
            start, frames, count = time.monotonic(), 0, 0
            while not self._stopped.wait(0.004):
                due = int((time.monotonic() - start) * self.rate)
                # A board keeps little: after a wait for a core it goes on with the present time.
                frames = max(frames, due - int(KEPT_S * self.rate))
                while frames + FRAMES <= due:
                    hits = [self.hit(self._draw(chance, start + (n + chance.random()) / self.rate, n))
                            for n in range(frames, frames + FRAMES)]
                    datagram = self.header(self.source, self.number(count, frames)) + b"".join(map(self.frame, hits)) + self.trailer
                    for _ in range(self.sent(count)):
                        out.send(datagram)
                    frames, count = frames + FRAMES, count + 1

    def _draw(self, chance, seconds, number):
        energy = int(chance.gauss(511, 25)) if chance.random() < 0.6 else chance.randrange(100, 400)
        return Hit(0xA, chance.randrange(6), self.bdms[number % len(self.bdms)], int(self.moment(seconds) / self.tick_s),
                   chance.randrange(8, 56), chance.randrange(8, 56), energy, 0x5)
