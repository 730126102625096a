"""The control socket of a daemon, without a program for each question: to start petctl takes longer than to answer."""

import json
import socket

PATIENCE_S = 60


class Control:
    """A connection. Raises OSError where nobody listens, or nobody answers."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(PATIENCE_S)
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._lines = self._socket.makefile("r", encoding="utf-8")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._lines.close()
        self._socket.close()

    def call(self, method):
        self._socket.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode() + b"\n")
        while True:
            line = self._lines.readline()
            if not line:
                raise ConnectionError(f"{method}: the daemon has closed the connection")
            answer = json.loads(line)
            if answer.get("id") == 1:
                return answer["result"]


def status_of(path):
    """The status document of the daemon with this control socket."""
    with Control(path) as control:
        return control.call("status")
