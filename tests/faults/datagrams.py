"""Datagrams and captures made byte by byte, a player of captures, and senders of anything.

Nothing here comes from the programs: docs/reference/wire-format.md describes the bytes.
"""

import collections
import socket
import struct
import time

Sent = collections.namedtuple("Sent", "time source payload")  # seconds since the first, id of the source, bytes
HEADER, FRAME = 16, 16
END_OF_STREAM = 1
NEVER = float("inf")


def frame(ticks, bdm=0, du=0, x=20, y=20, adc=2044, head=0xA, tail=0x5):
    return struct.pack(">BBQBBHBB", head << 4 | du, bdm, ticks % 2**64, x, y, adc, 25, tail)


def datagram(source, sequence, frames=(), flags=0, version=1, magic=b"PETF"):
    return magic + struct.pack(">BBHQ", version, flags, source, sequence % 2**64) + b"".join(frames)


def sequence_of(payload):
    return struct.unpack_from(">Q", payload, 8)[0]


def renumbered(payload, sequence, flags=None):
    flags = payload[5] if flags is None else flags
    return payload[:5] + bytes([flags]) + payload[6:8] + struct.pack(">Q", sequence % 2**64) + payload[16:]


def moved(payload, ticks, header=HEADER):
    """The payload with all its frames later by `ticks`."""
    out = bytearray(payload)
    for at in range(header + 2, len(out), FRAME):
        struct.pack_into(">Q", out, at, (struct.unpack_from(">Q", out, at)[0] + ticks) % 2**64)
    return bytes(out)


def ends_stream(payload):
    return payload[:4] == b"PETF" and payload[5] & END_OF_STREAM != 0


def frames_of(payload, header=HEADER):
    return (len(payload) - header) // FRAME


def read_capture(path):
    """The datagrams of a capture of petsim, in its order, and (sequenced framing) their source ids; else their ports."""
    with open(path, "rb") as file:
        data = file.read()
    unit = {0xA1B2C3D4: 1e-6, 0xA1B23C4D: 1e-9}[struct.unpack_from("<I", data)[0]]
    out, at, first = [], 24, None
    while at + 16 <= len(data):
        seconds, fraction, size, _ = struct.unpack_from("<IIII", data, at)
        udp = data[at + 16:at + 16 + size]
        udp = udp[udp.index(b"\x45"):][20:]
        payload = udp[8:]
        when = seconds + fraction * unit
        first = when if first is None else first
        source = struct.unpack_from(">H", payload, 6)[0] if payload[:4] == b"PETF" else struct.unpack_from(">H", udp)[0]
        out.append(Sent(when - first, source, payload))
        at += 16 + size
    return out


def packet(sent, port=9601):
    """An IP packet with the payload, from 10.0.0.1 to 127.0.0.1; the port of the sender follows from its source."""
    udp = struct.pack(">HHHH", 20000 + sent.source % 20000, port, 8 + len(sent.payload), 0) + sent.payload
    return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + bytes([10, 0, 0, 1, 127, 0, 0, 1]) + udp


def write_capture(path, sent, port=9601):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101))
        for one in sent:
            whole = packet(one, port)
            file.write(struct.pack("<IIII", 1 + int(one.time), int(one.time % 1 * 1e9), len(whole), len(whole)) + whole)


def write_pcapng(path, sent, port=9601):
    def block(kind, body):
        size = 12 + len(body)
        return struct.pack("<II", kind, size) + body + struct.pack("<I", size)

    with open(path, "wb") as file:
        file.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        file.write(block(1, struct.pack("<HHI", 101, 0, 262144)))
        for one in sent:
            whole = packet(one, port)
            stamp = int((1 + one.time) * 1e6)
            body = struct.pack("<IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(whole), len(whole))
            file.write(block(6, body + whole + bytes(-len(whole) % 4)))


class Sender:
    """A socket that sends anything to the daemon."""

    def __init__(self, ports, address="127.0.0.1", port=0):
        self.ports = ports
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        self.socket.bind((address, port))
        self.port = self.socket.getsockname()[1]
        self.sent = 0

    def send(self, payload, to=0):
        self.socket.sendto(payload, ("127.0.0.1", self.ports[to % len(self.ports)]))
        self.sent += 1

    def close(self):
        self.socket.close()


class Boards:
    """Plays a capture: each source from a socket of its own, at the pace of the capture."""

    def __init__(self, sent):
        self.stream = sent
        self.sources = sorted({one.source for one in sent})
        self.senders = {}
        self.count = 0
        # Listed by address and port, sources need ports before the daemon starts.
        self.reserved = {source: Sender([0]) for source in self.sources}

    def connect(self, ports):
        self.senders = self.reserved
        for sender in self.senders.values():
            sender.ports = ports

    def send(self, source, payload):
        self.senders[source].send(payload, self.sources.index(source))
        self.count += 1

    def play(self, start=0.0, end=NEVER, edit=None, pace=1.0, meanwhile=None):
        """Sends what lies in start <= time < end; the last end includes the ends of the streams. `edit` turns one
        datagram into a list of payloads. `meanwhile` is called before each datagram with its time."""
        begin = time.monotonic()
        for one in self.stream:
            if not start <= one.time < end:
                continue
            ahead = (one.time - start) / pace - (time.monotonic() - begin)
            if ahead > 0.002:
                time.sleep(ahead)
            if meanwhile:
                meanwhile(one.time)
            for payload in [one.payload] if edit is None else edit(one):
                self.send(one.source, payload)

    def close(self):
        for sender in self.reserved.values():
            sender.close()
