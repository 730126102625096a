"""Captures of boards, and boards that send them: petsim's datagrams, or the same hits as PETsys boards send them."""

import socket
import struct

HEAD, UDP_AT = struct.Struct("<IHHiIII"), 28  # IPv4 without options


def read(file):
    """(time in ns, sender's port, datagram) of each packet of a capture that petsim has written: nanoseconds, raw IPv4."""
    with open(file, "rb") as opened:
        data = opened.read()
    magic, *_, link = HEAD.unpack_from(data)
    if (magic, link) != (0xA1B23C4D, 101):
        raise ValueError(f"{file}: not a capture of petsim")
    at, packets = HEAD.size, []
    while at < len(data):
        s, ns, size, _ = struct.unpack_from("<IIII", data, at)
        packet = data[at + 16:at + 16 + size]
        packets.append((s * 10**9 + ns, struct.unpack_from(">H", packet, 20)[0], packet[UDP_AT:]))
        at += 16 + size
    return packets


def write(file, packets):
    with open(file, "wb") as out:
        out.write(HEAD.pack(0xA1B23C4D, 2, 4, 0, 0, 262144, 101))
        for time, port, datagram in packets:
            udp = struct.pack(">HHHH", port, 9601, 8 + len(datagram), 0) + datagram
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, bytes([127, 0, 0, 1]),
                             bytes([127, 0, 0, 1]))
            out.write(struct.pack("<IIII", *divmod(time, 10**9), 20 + len(udp), 20 + len(udp)) + ip + udp)


def as_petsys(datagram):
    """Frames without a header, as boards whose layout is petsys-tofpet2.layout.json send them."""
    blocks = []
    for at in range(0, len(datagram), 16):
        du, bdm, ticks, x, y, energy = struct.unpack_from(">BBQBBH", datagram, at)
        channel = x | y << 3 | (bdm * 4 + du % 16) << 6
        word = channel << 42 | ticks % 1024 << 30 | (energy - 27) % 1024
        if not blocks or blocks[-1][0] != ticks // 1024:
            blocks.append((ticks // 1024, []))
        blocks[-1][1].append(word)
    return b"\xa5" + b"".join(struct.pack(f"<QQ{len(words)}Q", number | (2 + len(words)) << 36, len(words), *words)
                              for number, words in blocks)


def send(packets, ports, wait):
    """Sends all in order, each sender from a socket of its own, to one of the ports. `wait(n)` returns when the daemon has
    received n datagrams: no more are under way than any socket buffer holds."""
    senders = {}
    for port in sorted({port for _, port, _ in packets}):
        senders[port] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        senders[port].connect(("127.0.0.1", ports[len(senders) % len(ports)]))
    try:
        for number, (_, port, datagram) in enumerate(packets, 1):
            senders[port].send(datagram)
            if number % 40 == 0:
                wait(number)
        wait(len(packets))
    finally:
        for sender in senders.values():
            sender.close()

