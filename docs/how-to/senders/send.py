"""A detector board in software: send.py ADDRESS PORT SOURCE BDM SECONDS HITS_PER_S TICK_PS"""
import json
import socket
import struct
import sys
import time

MOST_FRAMES = 91  # 1,472 bytes: an MTU of 1500
END_OF_STREAM = 1
TRIGGER = 0  # kind of tag


def header(source, sequence, flags):
    return struct.pack(">4sBBHQ", b"PETF", 1, flags, source, sequence)


def hit(du, bdm, ticks, x, y, energy, degrees):
    whole = int(degrees // 1)
    return struct.pack(">BBQBBHbB", 0xA0 | du, bdm, ticks, x, y, energy, whole, int(degrees % 1 * 16) << 4 | 0x5)


def tag(channel, kind, ticks, value):
    return struct.pack(">BBQIBB", 0xB0 | channel, kind, ticks, value, 0, 0x5)


def main(address, port, source, bdm, seconds, hits_per_s, tick_ps):
    board = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    board.connect((address, int(port)))  # one address and port for all datagrams
    source, bdm, rate, ticks_per_s = int(source), int(bdm), float(hits_per_s), 1e12 / float(tick_ps)
    start = time.clock_gettime(time.CLOCK_MONOTONIC)  # stands for the clock of the detector, which all boards share
    total = int(float(seconds) * rate)
    sequence = hits = frames_sent = tags = 0
    while hits < total or sequence == 0:
        due = (time.clock_gettime(time.CLOCK_MONOTONIC) - start) * rate
        frames = []  # none: the datagram is a heartbeat
        while hits < total and hits <= due and len(frames) < MOST_FRAMES:
            time_s = start + hits / rate
            if time_s >= start + tags:  # once a second
                frames.append(tag(0, TRIGGER, int(time_s * ticks_per_s), tags := tags + 1))
            else:
                frames.append(hit(0, bdm, int(time_s * ticks_per_s), 12, 34, 500, 25.0))
                hits += 1
        board.send(header(source, sequence, END_OF_STREAM if hits == total else 0) + b"".join(frames))
        sequence, frames_sent = sequence + 1, frames_sent + len(frames)
        if len(frames) < MOST_FRAMES:
            time.sleep(0.004)  # full datagrams go at once, others after 4 ms
    print(json.dumps({"datagrams": sequence, "frames": frames_sent}))


main(*sys.argv[1:])
