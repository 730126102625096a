"""A connection to the live tap, for loops and for asyncio.

>>> for records in petacq.tap(kind="coincidences", prescale=10):
...     print(records["energy_a"].mean())
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import operator
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Literal, SupportsIndex

import numpy as np

from petacq.daemon import Daemon
from petacq.errors import TapError
from petacq.layout import Records
from petacq.tap.losses import Losses
from petacq.tap.messages import (
    HEADER_BYTES,
    LONGEST_LINE,
    RECORDS,
    RUN_ENDED,
    RUN_STARTED,
    ConnectionEnded,
    Message,
    answer_of,
    message_of,
)

#: How long a daemon to which a tap connects again may take to answer.
_ANSWER_S = 10.0


class Tap:
    """An open connection to the tap of a daemon. Iterate over it, with ``for`` or ``async for``: each array has every N-th
    record of a stretch of the run, with the fields of list-mode. An array is yours: no later one changes it.

    The daemon never waits for its clients. What a client is too slow for is missing from the stream, and counted in
    ``dropped`` and ``missing``. One thread uses it.
    """

    #: What the daemon said: scanner, crystals, tick_ps, fields, ...
    description: dict[str, Any]
    kind: str
    #: The records whose numbers in the run are multiples of it are in the stream.
    prescale: int
    dtype: np.dtype[np.void]
    #: Id of the run that the latest array belongs to; None before the first run.
    run: str | None
    #: 1, 2, ... since the daemon started; 0 before the first run.
    run_number: int
    #: Whether that run is still in progress.
    running: bool
    #: Number, in the run, of the first record of the latest array; the next one has this number plus ``prescale``.
    first_record: int
    #: Records that were chosen for this client, which was too slow to take them; since it connected for the last time.
    dropped: int
    #: How often it has connected again.
    reconnects: int

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        kind: Literal["coincidences", "singles", "triples"] = "coincidences",
        prescale: SupportsIndex = 1,
        *,
        one_run: bool = False,
        timeout: float | None = None,
        reconnect_s: float | None = None,
    ) -> None:
        """Connects to the socket of ``tap.socket``.

        path: None: as the status of the daemon tells it, which is asked as Daemon() does.
        one_run: iteration ends when a run has ended; otherwise it continues with the next run.
        timeout: seconds without any message, while connected, after which iteration raises TimeoutError, and the connection is
        closed; None: waits for ever.
        reconnect_s: when the daemon ends or closes the connection, iteration tries to connect again, at these intervals, and
        continues; ``missing`` and ``unended`` say what was lost. None: it ends.

        Raises OSError if nobody listens there, TapError if the daemon has no tap or refuses the request.
        """
        if reconnect_s is not None and not reconnect_s > 0:
            raise ValueError(f"reconnect_s {reconnect_s}: expected seconds above 0")
        self._path = _path_of_daemon() if path is None else os.fspath(path)
        self._one_run, self._timeout, self._reconnect_s = one_run, timeout, reconnect_s
        self._closed = False
        self.run, self.run_number, self.running = None, 0, False
        self.first_record, self.dropped, self.reconnects = 0, 0, 0
        self._wanted = kind, prescale
        self._socket = self._connected(timeout)
        self._losses = Losses(self.prescale)

    @property
    def missing(self) -> int:
        """Chosen records of the run right before the latest array that did not come: this client was too slow, or not connected."""
        return self._losses.missing

    @property
    def missed(self) -> int:
        """The sum of ``missing`` over all arrays."""
        return self._losses.missed

    @property
    def unended(self) -> tuple[str, ...]:
        """Runs whose end did not come, since the connection broke off: how much is missing there is not known."""
        return self._losses.unended

    def close(self) -> None:
        """Idempotent."""
        self._closed = True
        self._socket.close()

    def __enter__(self) -> Tap:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Records]:
        """Ends when the daemon does, unless ``reconnect_s``, or with the run if ``one_run``; the connection is then closed. It
        stays open if the loop is left earlier: another loop continues with the next records."""
        self._socket.settimeout(self._timeout)  # asyncio may have had it
        while True:
            try:
                message = message_of(self._read(HEADER_BYTES, between=True), self._path)
                payload = self._read(message.payload_bytes)
                records = self._taken(message, payload)
            except ConnectionEnded as ended:
                if not self._goes_on(ended):
                    return
                self._reconnect()
                continue
            except BaseException:
                self.close()
                raise
            if records is not None:
                yield records
            elif self._is_over(message):
                return

    async def __aiter__(self) -> AsyncIterator[Records]:
        """The same for asyncio. A loop that is cancelled closes the connection."""
        while True:
            try:
                async with asyncio.timeout(self._timeout):
                    message = message_of(await self._receive(HEADER_BYTES, between=True), self._path)
                    payload = await self._receive(message.payload_bytes)
                records = self._taken(message, payload)
            except ConnectionEnded as ended:
                if not self._goes_on(ended):
                    return
                await self._reconnect_in_background()
                continue
            except BaseException:
                self.close()
                raise
            if records is not None:
                yield records
            elif self._is_over(message):
                return

    # What comes

    def _taken(self, message: Message, payload: bytearray) -> Records | None:
        """The records of the message, if it has any."""
        self.dropped = message.dropped
        if message.kind == RUN_STARTED:
            self.run, self.run_number, self.running = payload.decode("utf-8", "replace"), message.run_number, True
            self._losses.run_started(self.run)
        elif message.kind == RUN_ENDED:
            self.running = False
            self._losses.run_ended()
        elif message.kind == RECORDS:
            expected = message.records * self.dtype.itemsize
            if message.payload_bytes != expected:
                raise TapError(f"{self._path}: expected {expected} bytes, found {message.payload_bytes}")
            self.first_record = message.first_record
            self._losses.records_came(message.first_record, message.records)
            return np.frombuffer(payload, self.dtype)
        return None

    def _is_over(self, message: Message) -> bool:
        if message.kind == RUN_ENDED and self._one_run:
            self.close()
            return True
        return False

    def _goes_on(self, ended: ConnectionEnded) -> bool:
        """Whether to connect again. Raises ``ended`` if it ended within a message and not."""
        self._socket.close()
        if self._reconnect_s is not None and not self._closed:
            return True
        self.close()
        if ended.args:
            raise ended
        return False

    def _read(self, size: int, between: bool = False) -> bytearray:
        """Writable, so that the array is. ``between``: the connection may end here. Raises ConnectionEnded, then without a text."""
        data = bytearray(size)
        have = 0
        with memoryview(data) as view:
            while have < size:
                try:
                    got = self._socket.recv_into(view[have:])
                except ConnectionResetError:
                    got = 0
                if not got:
                    raise self._ended(between and not have)
                have += got
        return data

    async def _receive(self, size: int, between: bool = False) -> bytearray:
        """As _read()."""
        loop = asyncio.get_running_loop()
        self._socket.setblocking(False)
        data = bytearray(size)
        have = 0
        with memoryview(data) as view:
            while have < size:
                try:
                    got = await loop.sock_recv_into(self._socket, view[have:])
                except ConnectionResetError:
                    got = 0
                if not got:
                    raise self._ended(between and not have)
                have += got
        return data

    def _ended(self, properly: bool) -> ConnectionEnded:
        return ConnectionEnded() if properly else ConnectionEnded(f"{self._path}: it ended within a message")

    # Connections

    def _connected(self, timeout: float | None) -> socket.socket:
        """Nothing is read beyond the answer, so that whoever reads on, with or without asyncio, begins with a message."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            try:
                connection.connect(self._path)
            except OSError as error:
                error.filename = self._path  # that of a socket is not in its message
                raise
            request = {"kind": self._wanted[0], "prescale": operator.index(self._wanted[1])}
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may have said why before it closed
                connection.sendall(json.dumps(request).encode() + b"\n")
            line = bytearray()
            with contextlib.suppress(ConnectionResetError):
                while not line.endswith(b"\n") and len(line) < LONGEST_LINE and (byte := connection.recv(1)):
                    line += byte
            answer = answer_of(line, self._path)
        except BaseException:
            connection.close()
            raise
        self.description, self.kind, self.prescale, self.dtype = answer.description, answer.kind, answer.prescale, answer.dtype
        return connection

    def _try_to_connect(self) -> bool:
        """False: the daemon is not there. Raises TapError if it refuses."""
        try:
            connection = self._connected(_ANSWER_S)
        except (ConnectionEnded, OSError):
            return False
        connection.settimeout(self._timeout)
        self._socket = connection
        self.reconnects += 1
        return True

    def _reconnect(self) -> None:
        assert self._reconnect_s is not None
        while not self._try_to_connect():
            time.sleep(self._reconnect_s)

    async def _reconnect_in_background(self) -> None:
        assert self._reconnect_s is not None
        while not self._closed and not await asyncio.to_thread(self._try_to_connect):
            await asyncio.sleep(self._reconnect_s)


def _path_of_daemon() -> str:
    daemon = Daemon()
    path = (daemon.status().get("tap") or {}).get("socket")
    if not isinstance(path, str):
        raise TapError(f"{daemon.socket}: this daemon tells of no tap: is tap.socket in its configuration?")
    return path


def tap(
    path: str | os.PathLike[str] | None = None,
    kind: Literal["coincidences", "singles", "triples"] = "coincidences",
    prescale: SupportsIndex = 1,
    *,
    one_run: bool = False,
    timeout: float | None = None,
    reconnect_s: float | None = None,
) -> Tap:
    """Connects to the live tap of a daemon; see Tap."""
    return Tap(path, kind, prescale, one_run=one_run, timeout=timeout, reconnect_s=reconnect_s)
