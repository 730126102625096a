"""The datagrams that arrived, by their sources, numbers and times."""

import numpy as np

HEADER, FRAME, TIME = 16, 16, slice(2, 10)


class Arrivals:
    """Well-formed datagrams with frames, in the order in which they arrived. Their frames are in order of time."""

    def __init__(self, datagrams):
        self.all_at = np.array([at for at, _ in datagrams], np.int64)
        all_heads = np.frombuffer(b"".join(d[:HEADER] for _, d in datagrams), np.uint8).reshape(-1, HEADER)
        self.all_source = all_heads[:, 7].astype(np.int64)
        self.number = all_heads[:, 8:16].copy().view(">u8").ravel().astype(np.int64)
        some = [(at, d) for at, d in datagrams if len(d) > HEADER]
        heads = np.frombuffer(b"".join(d[:HEADER] for _, d in some), np.uint8).reshape(-1, HEADER)
        self.at = np.array([at for at, _ in some], np.int64)
        self.source = heads[:, 7].astype(np.int64)
        self.frames = np.array([len(d) // FRAME - 1 for _, d in some], np.int64)
        self.first = self._times([d[HEADER : 2 * HEADER] for _, d in some])
        self.last = self._times([d[-FRAME:] for _, d in some])

    @staticmethod
    def _times(frames):
        return np.frombuffer(b"".join(frames), np.uint8).reshape(-1, FRAME)[:, TIME].copy().view(">u8").ravel().astype(np.int64)

    def of(self, board):
        return np.flatnonzero(self.source == board)
