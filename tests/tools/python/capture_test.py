import json
import struct
import unittest
import warnings

import numpy as np
import support

import petacq


def simulate(name, *arguments):
    """A capture of petsim, and what petsim says that a receiver gets from it."""
    file, summary = support.scratch() / name, support.scratch() / f"{name}.json"
    site = support.small_run().parents[1]
    support.call(
        *("petsim", "--crystals", "surface", "--scanner", site / "small.scanner.json", "--calibration", site / "small.h5", "--quiet"),
        *("--write", file, "--summary", summary, "--duration-s", 0.1, "--rate", 200000, "--sources", 4, *arguments),
    )
    return file, json.loads(summary.read_text(encoding="utf-8"))["total"]["expected"]


def slow_frames(data, header):
    """Frame by frame, from the documentation of the formats."""
    out = []
    at = 24
    while at < len(data):
        captured = struct.unpack_from("<I", data, at + 8)[0]
        payload = data[at + 16 + 28 : at + 16 + captured]
        at += 16 + captured
        if header:
            if len(payload) < 16 or payload[:5] != b"PETF\x01" or len(payload) % 16:
                continue
            payload = payload[16:]
        if len(payload) % 16:
            continue
        for i in range(0, len(payload), 16):
            f = payload[i : i + 16]
            if f[0] >> 4 != 0xA or f[15] & 15 != 5:
                continue
            degrees = f[14] - 256 if f[14] > 127 else f[14]
            time = int.from_bytes(f[2:10], "big")
            adc = int.from_bytes(f[12:14], "big")
            out.append((f[1], f[0] & 15, f[10], f[11], adc, time, degrees + (f[15] >> 4) / 16))
    return out


def slow_frames_2(data):
    """Those of version 2, sequenced."""
    out = []
    at = 24
    while at < len(data):
        captured = struct.unpack_from("<I", data, at + 8)[0]
        payload = data[at + 16 + 28 + 16 : at + 16 + captured]
        at += 16 + captured
        for i in range(0, len(payload), 16):
            f = payload[i : i + 16]
            if f[15] >> 4 != 0xA:
                continue
            degrees = f[14] - 256 if f[14] > 127 else f[14]
            out.append((f[0] << 8 | f[1], f[15] & 15, f[10], f[11], int.from_bytes(f[12:14], "big"),
                        int.from_bytes(f[2:10], "big"), degrees))  # fmt: skip
    return out


class Capture(unittest.TestCase):
    def test_version_2(self):
        description = json.loads((support.SOURCE / "config/examples/small.scanner.json").read_text(encoding="utf-8"))
        description.pop("sources")
        description["frame_version"] = 2
        description["geometry"].update(channels=200, bdm_count=200 * 2 * 2)
        description["dimensions"]["ring_radius_mm"] = 1500
        site = support.scratch()
        (site / "large.scanner.json").write_text(json.dumps(description), encoding="utf-8")
        scanner = petacq.Scanner.load(site / "large.scanner.json")
        self.assertEqual(scanner.bdm_count, 800)
        support.call("petcal", "make", "--scanner", site / "large.scanner.json", "--output", site / "large.h5", "--bins", 1)
        support.call(
            *("petsim", "--crystals", "surface", "--scanner", site / "large.scanner.json", "--calibration", site / "large.h5"),
            *("--write", site / "large.pcap", "--duration-s", 0.01, "--rate", 500000, "--sources", 4, "--corrupt", "marker:0.1"),
            "--quiet",
        )
        frames = petacq.read_frames(site / "large.pcap", frame_version=scanner.frame_version)
        expected = slow_frames_2((site / "large.pcap").read_bytes())
        self.assertGreater(len(expected), 1000)
        self.assertEqual(len(frames), len(expected))
        columns = (frames.bdm, frames.du, frames.x, frames.y, frames.adc, frames.time, frames.temperature)
        for column, values in zip(columns, zip(*expected)):
            np.testing.assert_array_equal(column, np.array(values, column.dtype))
        self.assertGreater(frames.bdm.max(), 255)
        self.assertEqual(frames.bdm.dtype, np.dtype(np.uint16))
        self.assertEqual(len(petacq.read_frames(site / "large.pcap")), 0)  # of the other version

    def check(self, file, framing):
        frames = petacq.read_frames(file, framing)
        expected = slow_frames(file.read_bytes(), framing == "sequenced")
        self.assertEqual(len(frames), len(expected))
        columns = (frames.bdm, frames.du, frames.x, frames.y, frames.adc, frames.time, frames.temperature)
        for column, values in zip(columns, zip(*expected)):
            np.testing.assert_array_equal(column, np.array(values, column.dtype))
        self.assertEqual(frames.time.dtype, np.dtype(np.uint64))
        self.assertEqual(frames.adc.dtype, np.dtype(np.uint16))
        self.assertEqual(frames.temperature.dtype, np.dtype(np.float32))
        return frames

    def test_has_all_frames_that_petsim_sends(self):
        for framing in ("sequenced", "bare"):
            with self.subTest(framing):
                file, said = simulate(f"{framing}.pcap", "--framing", framing, "--seed", 3)
                frames = self.check(file, framing)
                self.assertEqual(len(frames), said["frames_received"])
                blocks = list(petacq.frame_blocks(file, framing, block_frames=1000))
                self.assertGreater(len(blocks), 5)
                np.testing.assert_array_equal(np.concatenate([b.raw for b in blocks]), frames.raw)

    def test_leaves_out_what_is_malformed(self):
        file, said = simulate(
            *("corrupt.pcap", "--corrupt", "magic:0.05", "--corrupt", "length:0.05", "--corrupt", "version:0.05"),
            *("--corrupt", "marker:0.1", "--tag-dead-time", "15:0.01"),
        )
        frames = self.check(file, "sequenced")
        self.assertGreater(said["frames_bad_marker"], 10)
        self.assertGreater(said["tags_received"], 10)
        self.assertEqual(len(frames), said["frames_received"] - said["frames_bad_marker"])

    def test_gives_the_singles_of_petacqd(self):
        try:
            import h5py  # noqa: F401
        except ImportError:
            self.skipTest("h5py is not installed")
        file, _ = simulate("singles.pcap", "--seed", 8)
        site = support.small_run().parents[1]
        support.call("petacqd", "--config", site / "petacqd.json", "--replay", file, "--run", "of-frames")
        run = petacq.open_run(site / "data" / "of-frames")
        calibration = run.calibration()
        frames = petacq.read_frames(file)
        crystal = calibration.crystal(frames.bdm, frames.du, frames.x, frames.y)
        frames = petacq.Frames(frames.raw[crystal >= 0])
        crystal = crystal[crystal >= 0]
        energy = calibration.energy_keV(crystal, frames.adc)
        time = frames.time.astype("i8") + calibration.time_offset[crystal]
        window = run.configuration["energy"]
        kept = (energy >= window["lower_keV"]) & (energy <= window["upper_keV"])
        order = np.lexsort((energy[kept], crystal[kept], time[kept]))
        singles = run.singles.records()
        self.assertGreater(len(singles), 1000)
        np.testing.assert_array_equal(singles["time"], time[kept][order])
        np.testing.assert_array_equal(singles["crystal"], crystal[kept][order])
        np.testing.assert_array_equal(singles["energy"], energy[kept][order])

    def test_a_capture_that_ends_within_a_packet(self):
        file, _ = simulate("whole.pcap")
        whole = petacq.read_frames(file)
        for cut, lost in ((1, 0), (5001, 100)):  # the last packets are ends of streams, without frames
            part = support.scratch() / "part.pcap"
            part.write_bytes(file.read_bytes()[:-cut])
            with self.assertWarnsRegex(petacq.IncompleteWarning, "part.pcap: ends within"):
                frames = petacq.read_frames(part)
            self.assertLessEqual(len(frames), len(whole) - lost)
            np.testing.assert_array_equal(frames.raw, whole.raw[: len(frames)])

    def test_other_files_are_refused(self):
        file, _ = simulate("good.pcap")
        data = file.read_bytes()
        other = support.scratch() / "other.pcap"
        for content, why in (
            (b"", "expected a pcap file, found 0 bytes"),
            (b"x" * 1000, "not a pcap file"),
            (data[:20] + struct.pack("<I", 1) + data[24:], "link type 1: expected 101"),
            (data[:40] + b"\x46" + data[41:], "byte 40: expected a UDP datagram"),
            (data[:32] + struct.pack("<I", 20) + data[36:], "20 bytes of a packet of"),
        ):
            other.write_bytes(content)
            with self.assertRaisesRegex(petacq.CaptureError, why):
                petacq.read_frames(other)
        with self.assertRaises(FileNotFoundError):
            petacq.read_frames(support.scratch() / "none.pcap")
        with self.assertRaisesRegex(ValueError, "framing"):
            petacq.read_frames(file, "neither")
        other.write_bytes(data[:24])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.assertEqual(len(petacq.read_frames(other)), 0)


if __name__ == "__main__":
    unittest.main()
