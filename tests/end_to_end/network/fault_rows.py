"""The table of the fault matrix: what a board, a network or a capture does wrong, and who has to name it how."""

import dataclasses
import random
import struct
import time
from dataclasses import dataclass

from board import HEADER, Board, big_endian, header, swapped, words_of

SECOND_BOARD = tuple(range(6, 12))


@dataclass
class Row:
    """`health`: the reasons, of the run in progress. `strip`: its word, and words of its text. `doctor`: (subject, words) of
    findings that are problems. `verdict`: reasons of the run, a `!` before those that make it bad. `allowed`: reasons of health
    and verdict that may stand beside them, since they follow or come and go."""
    name: str
    boards: tuple
    health: tuple
    strip: tuple
    doctor: tuple
    verdict: tuple
    allowed: tuple = ()
    listed: int = 0  # how many boards may send: 0, 1, ...; 0: as many as do
    anybody: bool = False  # accept_any
    layout: dict = None
    finding: str = "twenty mistakes"


@dataclass
class ReplayRow:
    """Captures of four healthy boards, changed by `change(packets)`: (host ns, source, datagram) in, one list for each capture out.
    `warns`: words of a warning of petacqd --replay. Exit status 65 where `bad`."""
    name: str
    change: callable
    warns: str
    verdict: tuple
    allowed: tuple = ()
    bad: bool = True
    finding: str = "C5"


@dataclass
class Elsewhere:
    """A finding that has a test of its own: `file` has `text`."""
    finding: str
    what: str
    file: str
    text: str


def hit(**changes):
    """Each field by a function of the right value."""
    return lambda right: right._replace(**{name: change(getattr(right, name)) for name, change in changes.items()})


def constant(value):
    return lambda _: value


def chance(share, seed=1):
    """How often to send a datagram: 1, or 0 for so large a share."""
    choose = random.Random(seed)
    return lambda _: int(choose.random() >= share)


def shifted(datagram, ticks):
    out = bytearray(datagram)
    for at in range(16, len(out), 16):
        struct.pack_into(">Q", out, at + 2, struct.unpack_from(">Q", out, at + 2)[0] + ticks)
    return bytes(out)


def fields(format_, at, value):
    """Captures with a field of every frame changed."""
    def change(packets):
        out = []
        for host, source, datagram in packets:
            changed = bytearray(datagram)
            for start in range(16, len(changed), 16):
                struct.pack_into(format_, changed, start + at, value(struct.unpack_from(format_, changed, start + at)[0]))
            out.append((host, source, bytes(changed)))
        return [out]
    return change


GOOD = Board()
BDM_1 = (1, 2, 3, 4, 5, 6)
LATE_S = 5
MALFORMED = dict(health=("malformed_datagrams",), strip=("WAITING FOR DATA", "they are malformed"),
                 verdict=("!no_data", "!malformed_datagrams"))
INVALID = dict(health=("invalid_frames",), strip=("WAITING FOR DATA", "none of their frames is valid"),
               verdict=("!invalid_frames",))
PARTLY_INVALID = dict(health=("invalid_frames",), strip=("RECORDING",), verdict=("!invalid_frames",))
MEANINGLESS = dict(health=("sequence_meaningless",), strip=("RECORDING",), verdict=("!sequence_meaningless",),
                   allowed=("datagrams_lost", "source_restarted"))
LOST = dict(health=("datagrams_lost",), strip=("RECORDING",), verdict=("!datagrams_lost",))
JUMPING = dict(health=("source_jumping",), strip=("WAITING FOR DATA", "make no sense: check the byte order"),
               verdict=("!time_jumps",), allowed=("time_jumps", "source_clock", "source_stepped_back", "late_frames"))
# Ticks of another unit bring frames together by chance.
WRONG_UNIT = dict(health=("source_clock",), verdict=("!source_clock",), allowed=("boards_out_of_step", "boards_without_partners"))
FOREIGN = {"name": "own", "datagram": {"byte_order": "big", "header_bytes": 16,
                                       "markers": [{"offset": 0, "bytes": 4, "value": 0x50455446}],
                                       "source": {"offset": 6, "bytes": 2}, "sequence": {"offset": 8, "bytes": 8}},
           "frame": {"byte_order": "big", "bytes": 16,
                     "markers": [{"offset": 0, "bytes": 1, "low_bit": 4, "bits": 4, "value": 0xA}],
                     "du": {"offset": 0, "bytes": 1, "bits": 4}, "bdm": {"offset": 1, "bytes": 1},
                     "x": {"offset": 10, "bytes": 1}, "y": {"offset": 11, "bytes": 1}, "energy": {"offset": 12, "bytes": 2}},
           "time": {"counter": [{"offset": 2, "bytes": 8}], "numerator": 1, "roll_over": "none"}}


def rows():
    def board(**changes):
        return (dataclasses.replace(GOOD, **changes),)

    def other(**changes):
        """A good board, and another."""
        return (dataclasses.replace(GOOD), dataclasses.replace(GOOD, **{"source": 1, "bdms": SECOND_BOARD, **changes}))

    yield Row("nothing", board(), (), ("RECORDING",), (), ())
    # The twenty mistakes of a board.
    yield Row("another magic number", board(header=lambda s, n: b"PETX" + header(s, n)[4:]),
              doctor=(("framing", "the magic number is 50 45 54 58, not 50 45 54 46"),), **MALFORMED)
    yield Row("head and tail markers swapped", board(hit=hit(head=constant(5), tail=constant(10))), finding="C8",
              doctor=(("markers", "head and tail are swapped"),), **INVALID)
    yield Row("sequence number 0 for ever", board(number=lambda count, frames: 0),
              doctor=(("numbers", "stands still at 0"),), **MEANINGLESS)
    yield Row("little-endian header", board(header=lambda s, n: struct.pack("<" + HEADER[1:], b"PETF", 1, 0, s, n)),
              doctor=(("numbers", "its bytes swapped (little-endian)"),), **MEANINGLESS)
    yield Row("sequence number in steps of 2", board(number=lambda count, frames: 2 * count),
              doctor=(("numbers", "grows in steps of 2"),), **MEANINGLESS)
    yield Row("little-endian time", board(frame=swapped("Q", 2, 10)), finding="C8",
              doctor=(("times", "its bytes swapped (little-endian)"),), **JUMPING)
    yield Row("little-endian energy", board(frame=swapped("H", 12, 14)), ("energies_outside",), ("RECORDING",),
              (("fields", "the energy of source 0 is little-endian"),), ("energies_outside",))
    yield Row("BDMs counted from 1", board(bdms=BDM_1),
              doctor=(("modules", "sends BDM 1-6, the scanner description lists 0-5 for it: all are one too high, "
                                  "counted from 1?"),),
              **PARTLY_INVALID)
    yield Row("DUs counted from 1", board(hit=hit(du=lambda du: du + 1)),
              doctor=(("fields", "DU 1 to 6 seen, 0 to 5 allowed, in source 0: one too high, counted from 1?"),), **PARTLY_INVALID)
    yield Row("x and y 4 times too large", board(hit=hit(x=lambda x: 4 * x, y=lambda y: 4 * y)),
              doctor=(("fields", "so 4 times too large"),), **PARTLY_INVALID)
    yield Row("each datagram twice", board(sent=lambda count: 2), ("duplicate_datagrams",), ("RECORDING",),
              (("loss", "duplicates, each one comes twice"),), ("duplicate_datagrams",))
    yield Row("hits with the marker of tags", board(hit=hit(head=constant(0xB))), ("only_tags",),
              ("NO DATA", "only tag frames arrive"), (("markers", "which marks tags, and none is a hit"),), ("!only_tags",),
              finding="C8")
    yield Row("no header", board(header=lambda s, n: b""),
              doctor=(("framing", "bare, while sequenced is configured"),), **MALFORMED)
    yield Row("time that stands still", board(hit=hit(time=constant(12345678))),
              strip=("WAITING FOR DATA", "source 0: its times stand still"),
              doctor=(("times", "stand still: all frames have the same time"),), **WRONG_UNIT)
    yield Row("time of 32 bits", board(hit=hit(time=lambda t: t & 0xFFFFFFFF)), ("source_stepped_back", "late_frames"),
              ("RECORDING",), (("times", "a counter of 32 bits"),), ("!late_frames", "source_stepped_back"),
              allowed=("source_clock", "sources_behind", "time_jumps", "source_jumping"))
    yield Row("times in ns", board(tick_s=1e-9), strip=("RECORDING",), doctor=(("times", "nanoseconds rather than ticks"),),
              **WRONG_UNIT)
    yield Row("times in us", board(tick_s=1e-6), strip=("WAITING FOR DATA", "source 0: its clock makes"),
              doctor=(("times", "microseconds rather than ticks"),), **WRONG_UNIT)
    yield Row("a quarter of the gain", board(hit=hit(energy=lambda energy: energy // 4)), ("energies_outside",), ("RECORDING",),
              (("energies", "the fullest energy of 6 of 6 BDMs is not near 511 keV"),), ("energies_outside",))
    yield Row("frames of 17 bytes", board(frame=lambda h: big_endian(h) + b"\0"),
              doctor=(("framing", "frames are 17 bytes long, expected 16"),), **MALFORMED)
    yield Row("frames in reverse order of bytes", board(frame=words_of(16)),
              doctor=(("framing", "the 16 bytes of each frame are in reverse order"),), **INVALID)
    # More of what boards send.
    for size in (8, 4, 2):  # of no time two bytes look like markers
        yield Row(f"little-endian words of {size} bytes", board(frame=words_of(size), hit=hit(time=lambda t: t & ~0xF00)),
                  finding="C9", doctor=(("framing", f"little-endian words of {size} bytes"),), **INVALID)
    for size, text in ((8, "8 bytes too short"), (12, "4 bytes too short"), (20, "4 bytes too long")):
        yield Row(f"a header of {size} bytes", board(header=lambda s, n, size=size: (header(s, n) + bytes(4))[:size]), finding="C9",
                  doctor=(("framing", text),), **MALFORMED)
    yield Row("another version", board(header=lambda s, n: struct.pack(HEADER, b"PETF", 2, 0, s, n)), finding="C9",
              doctor=(("framing", "the version (byte 4) is 2, expected 1"),), **MALFORMED)
    yield Row("little-endian magic number", board(header=lambda s, n: b"FTEP" + header(s, n)[4:]), finding="C9",
              doctor=(("framing", "its bytes are swapped, little-endian"),), **MALFORMED)
    yield Row("a checksum behind the frames", board(trailer=b"\1\2\3\4"), finding="C9",
              doctor=(("framing", "4 bytes after the last frame"),), **MALFORMED)
    yield Row("modules of another board", board(bdms=SECOND_BOARD), finding="C9",
              doctor=(("modules", "sends BDM 6-11, the scanner description lists 0-5 for it: all are 6 too high"),), **INVALID)
    yield Row("a source id that is not listed", board(source=7), ("unknown_source",),
              ("WAITING FOR DATA", "only from senders that are not listed"),
              (("from", "may not send, and is not used: source 7"),), ("!no_data", "unknown_source"), finding="C9")
    yield Row("a little-endian source id", other(source=256), ("source_silent", "unknown_source"), ("RECORDING",),
              (("from", "source id 256 is 1 with its bytes swapped"),), ("!source_silent", "unknown_source"), finding="C9")
    yield Row("one id at two boards", other(source=0), ("sequence_meaningless", "source_silent"), ("RECORDING",),
              (("from", "send as source 0"),), ("!sequence_meaningless", "!source_silent"),
              allowed=("invalid_frames", "source_restarted", "source_stepped_back", "late_frames"), finding="C1")
    yield Row("one id and the same modules at two boards", (Board(), Board()), listed=1, health=("sequence_meaningless",),
              strip=("RECORDING",), doctor=(("from", "send as source 0"),), verdict=("!sequence_meaningless",),
              allowed=("source_restarted", "source_stepped_back", "late_frames"), finding="C1")
    yield Row("sequence number that counts frames", board(number=lambda count, frames: frames), finding="C1",
              doctor=(("numbers", "counts frames"),), **MEANINGLESS)
    yield Row("a standing sequence number hides loss", board(number=lambda count, frames: 0, sent=chance(0.3)), finding="C1",
              doctor=(("numbers", "stands still at 0"),), **MEANINGLESS)
    yield Row("every third datagram is lost", board(sent=lambda count: int(count % 3 != 2)), finding="C9",
              doctor=(("loss", "one of every 3 is missing"),), **LOST)
    yield Row("loss by chance", board(sent=chance(0.3)), finding="C9", doctor=(("loss", ", evenly"),), **LOST)
    yield Row("loss in bursts", board(sent=lambda count: int(count % 400 >= 60)), finding="C9",
              doctor=(("loss", ", in bursts"),), **LOST)
    yield Row("a board 5 s ahead", other(moment=lambda s: s + LATE_S), ("source_leading", "time_jumps"), ("RECORDING",),
              (("times", "ms ahead of the others"),), ("!time_jumps",), finding="C9")
    yield Row("a board with the time of day", other(moment=lambda s, now=time.time(): s + now), ("source_leading", "time_jumps"),
              ("RECORDING",), (("times", "ms ahead of the others"),), ("!time_jumps",), finding="C9")
    yield Row("made-up ids from the beginning, an hour ahead",
              tuple(Board(source=100 + i, rate=2000, moment=lambda s: s + 3600) for i in range(2)) +
              tuple(Board(source=i, bdms=tuple(range(6 * i, 6 * i + 6)), rate=2000, after_s=1) for i in range(4)),
              ("source_leading", "late_frames"), ("RECORDING",), (("times", "2 sources are ahead of the others: 100, 101"),),
              ("!late_frames",), allowed=("sources_behind", "data_missing", "time_jumps"), anybody=True, finding="B10")
    # Two mistakes at once: each is named.
    yield Row("BDMs from 1, and little-endian time", board(bdms=BDM_1, frame=swapped("Q", 2, 10)), finding="two at once",
              doctor=(("modules", "one too high, counted from 1?"), ("times", "its bytes swapped (little-endian)")),
              **{**JUMPING, "verdict": ("!time_jumps", "!invalid_frames"), "allowed": JUMPING["allowed"] + ("invalid_frames",)})
    yield Row("swapped markers, and numbers in steps of 2",
              board(hit=hit(head=constant(5), tail=constant(10)), number=lambda count, frames: 2 * count), finding="two at once",
              doctor=(("markers", "head and tail are swapped"), ("numbers", "grows in steps of 2")),
              **{**INVALID, "health": ("invalid_frames", "sequence_meaningless"),
                 "verdict": ("!invalid_frames", "!sequence_meaningless")})
    yield Row("another magic number, and DUs from 1",
              board(header=lambda s, n: b"PETX" + header(s, n)[4:], hit=hit(du=lambda du: du + 1)), finding="two at once",
              doctor=(("framing", "the magic number is"), ("fields", "DU 1 to 6 seen")), **MALFORMED)
    yield Row("times in ns, and BDMs from 1", board(tick_s=1e-9, bdms=BDM_1), ("source_clock", "invalid_frames"), ("RECORDING",),
              (("times", "nanoseconds rather than ticks"), ("modules", "one too high, counted from 1?")),
              ("!source_clock", "!invalid_frames"), finding="two at once")
    yield Row("little-endian header, and x 4 times too large",
              board(header=lambda s, n: struct.pack("<" + HEADER[1:], b"PETF", 1, 0, s, n), hit=hit(x=lambda x: 4 * x)),
              ("sequence_meaningless", "invalid_frames"), ("RECORDING",),
              (("numbers", "little-endian"), ("fields", "so 4 times too large")), ("!sequence_meaningless", "!invalid_frames"),
              allowed=MEANINGLESS["allowed"], finding="two at once")
    yield Row("sequence number 0, and each datagram twice", board(number=lambda count, frames: 0, sent=lambda count: 2),
              ("sequence_meaningless", "duplicate_datagrams"), ("RECORDING",),
              (("numbers", "stands still at 0"), ("loss", "duplicates")), ("!sequence_meaningless", "duplicate_datagrams"),
              finding="two at once")
    # A declared layout.
    declared = dict(layout=FOREIGN, finding="C9")
    yield Row("a layout that fits", board(), (), ("RECORDING",), (), (), **declared)
    yield Row("a layout, and another magic number", board(header=lambda s, n: b"PETX" + header(s, n)[4:]),
              doctor=(("framing", "sampled datagrams do not fit the layout"),), **MALFORMED, **declared)
    yield Row("a layout, and another marker of frames", board(hit=hit(head=constant(0xC))),
              doctor=(("markers", "do not have the markers of the layout"),), **INVALID, **declared)
    yield Row("a layout, and DUs counted from 1", board(hit=hit(du=lambda du: du + 1)),
              doctor=(("fields", "DU 1 to 6 seen, 0 to 5 allowed"),), **PARTLY_INVALID, **declared)
    yield Row("a layout, and sequence number 0", board(number=lambda count, frames: 0),
              doctor=(("numbers", "stands still at 0"),), **MEANINGLESS, **declared)
    yield Row("a layout, and times in ns", board(tick_s=1e-9), strip=("RECORDING",),
              doctor=(("times", "nanoseconds rather than ticks"),), **WRONG_UNIT, **declared)


def halves(apart_ns):
    """Two hosts received two boards each; the clock of the second was ahead."""
    def change(packets):
        return [[(host + half * apart_ns, source, datagram) for host, source, datagram in packets if source % 2 == half]
                for half in (0, 1)]
    return change


REPLAYS = (
    ReplayRow("healthy captures", lambda packets: [packets], "", (), bad=False),
    ReplayRow("captures 0.7 s apart", halves(700_000_000), "late", ("!late_frames",), allowed=("data_missing",)),
    ReplayRow("captures 2 s apart", halves(2_000_000_000), "late", ("!late_frames",),
              allowed=("source_silent", "time_jumps", "data_missing")),
    ReplayRow("the capture of two boards is missing", lambda packets: halves(0)(packets)[:1], "sent nothing in the run",
              ("!source_silent",)),
    ReplayRow("the same capture twice", lambda packets: [packets, packets], "came more than once", ("duplicate_datagrams",),
              bad=False),
    ReplayRow("times that stand still", fields(">Q", 2, constant(10**9)), "its times stand still", ("!source_clock",)),
    ReplayRow("times in ns", fields(">Q", 2, lambda ticks: ticks // 64), "ticks a second,", ("!source_clock",)),
    ReplayRow("a quarter of the gain", fields(">H", 12, lambda energy: energy // 4), "outside the energy window",
              ("energies_outside",), bad=False),
    ReplayRow("markers of another format", fields(">B", 15, constant(0)), "with wrong markers", ("!invalid_frames",),
              allowed=("source_silent",)),
)

ELSEWHERE = (
    Elsewhere("B5", "a service manager that reads nothing", "tests/faults/rows_guard.py", "the service manager reads nothing"),
    Elsewhere("B6", "clients that may only look", "tests/faults/rows_guard.py", "128 clients that may only look"),
    Elsewhere("B7", "links and FIFOs where temporary files might be", "tests/faults/rows_guard.py",
              "links and FIFOs where temporary files might be"),
    Elsewhere("B8", "readers that never read", "tests/daemon/http/limits_test.cpp", "a client that never reads is disconnected"),
    Elsewhere("B9", "escape sequences in files and notes", "tests/faults/rows_guard.py", "escape sequences in files and notes"),
    Elsewhere("B10", "a slow disk of the raw capture", "tests/faults/rows_guard.py", "the raw capture's disk takes 2 s a write"),
    Elsewhere("B10", "an empty last file of a run", "tests/faults/rows_guard.py", "an empty file as the last part of a run"),
    Elsewhere("B10", "a token file of others", "tests/daemon/http/records_test.cpp", "a token file that others can read"),
    Elsewhere("B8", "a chunk larger than its data set", "tests/config/calibration_file_test.cpp",
              "a chunk larger than its data set"),
    Elsewhere("B10", "a token file of another owner", "tests/daemon/http/records_test.cpp", "found the owner 4321"),
    Elsewhere("B10", "a second Origin header", "tests/daemon/http/routing_test.cpp", '{"origin", "http://evil.example"}'),
    Elsewhere("C10", "files on systems without locks", "tests/config/calibration_file_test.cpp", "is read without locks"),
    Elsewhere("B11", "a capture cut during its replay", "tests/net/pcap/capture_bytes_test.cpp",
              "a capture that becomes shorter while it is read is an error"),
    Elsewhere("C2", "a group received by several sockets", "tests/end_to_end/first_day/ports_test.py",
              "each socket would get every datagram"),
    Elsewhere("C3", "two daemons at one port", "tests/end_to_end/first_day/ports_test.py", "taken by another petacqd"),
    Elsewhere("C4", "a board out of step", "tests/end_to_end/network/synchrony_test.py", "boards_out_of_step"),
    Elsewhere("C6", "wrong checksums, ports and lengths, broadcast", "tests/end_to_end/network/kernel_test.py",
              "udp_checksum_errors"),
    Elsewhere("C7", "a group at a unicast address", "tests/end_to_end/first_day/ports_test.py",
              "receives nothing that is sent to the group"),
    Elsewhere("C7", "an interface that is made anew", "tests/end_to_end/first_day/ports_test.py", "multicast_not_joined"),
    Elsewhere("C11", "a run that failed", "tests/daemon/status/recording_test.cpp", "RUN FAILED"),
    Elsewhere("C11", "a command that is told of health", "tests/faults/rows_guard.py", "a command is told of health and recording"),
    Elsewhere("C12", "a calibration that exists", "tests/tools/petcal/petcal_test.cpp", "petcal replaces a file only with --force"),
)
