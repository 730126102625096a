"""JSON-RPC 2.0 over a Unix socket, one message per line: docs/reference/control.md of petacqd."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any, Self

from petacq.errors import DaemonError, DaemonTimeoutError, RefusedError


class Connection:
    """One connection, for one thread. After an error it is of no more use."""

    def __init__(self, path: str, timeout_s: float) -> None:
        """``timeout_s``: for the connection to be accepted. Raises DaemonError."""
        self._path = path
        self._received = bytearray()
        self._searched = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(path)
        except OSError as error:  # also of a path that is too long
            self._socket.close()
            raise DaemonError(f"cannot reach petacqd at {path}: {error.strerror or error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def call(self, method: str, parameters: Mapping[str, Any], timeout_s: float) -> Any:
        """The result. Raises RefusedError for an error in the answer."""
        end = time.monotonic() + timeout_s
        said = {name: value for name, value in parameters.items() if value is not None}
        try:
            request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": said}, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{method}: a parameter that is not JSON: {error}") from error
        self._send(request.encode() + b"\n", end, timeout_s)
        answer = self._message(end, timeout_s)
        refusal = answer.get("error")
        if isinstance(refusal, Mapping):
            code = refusal.get("code")
            raise RefusedError(str(refusal.get("message")), code if isinstance(code, int) else 0)
        if answer.get("id") != 1 or "result" not in answer:
            raise DaemonError(f"petacqd at {self._path} sent no answer to {method}: {answer!r:.60}")
        return answer["result"]

    def notification(self, method: str, timeout_s: float) -> Any:
        """The parameters of the next one."""
        message = self._message(time.monotonic() + timeout_s, timeout_s)
        if message.get("method") != method:
            raise DaemonError(f"petacqd at {self._path} sent no {method}: {message!r:.60}")
        return message.get("params")

    def _message(self, end: float, timeout_s: float) -> dict[str, Any]:
        line = self._line(end, timeout_s)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DaemonError(f"petacqd at {self._path} sent what is not JSON: {error}") from error
        if not isinstance(message, dict):
            raise DaemonError(f"petacqd at {self._path} sent no JSON-RPC message: {message!r:.60}")
        return message

    def _send(self, data: bytes, end: float, timeout_s: float) -> None:
        try:
            self._wait_until(end)
            self._socket.sendall(data)
        except TimeoutError:
            raise self._late(timeout_s) from None
        except OSError:
            pass  # closed by the daemon: it may have said why

    def _line(self, end: float, timeout_s: float) -> bytes:
        while (at := self._received.find(b"\n", self._searched)) < 0:
            self._searched = len(self._received)
            try:
                self._wait_until(end)
                received = self._socket.recv(1 << 16)
            except TimeoutError:
                raise self._late(timeout_s) from None
            except OSError as error:
                raise DaemonError(f"the connection to petacqd at {self._path} failed: {error.strerror}") from error
            if not received:
                raise DaemonError(f"petacqd at {self._path} has closed the connection")
            self._received += received
        line = bytes(self._received[:at])
        del self._received[: at + 1]
        self._searched = 0
        return line

    def _wait_until(self, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _late(self, timeout_s: float) -> DaemonTimeoutError:
        return DaemonTimeoutError(f"petacqd at {self._path} did not answer within {timeout_s:g} s")
