"""A terminal: runs a program on a pseudo-terminal and knows what is on its screen. Needs python3-pyte."""

import fcntl
import html
import os
import pty
import select
import struct
import termios
import threading

import pyte

COLOURS = {"default": "inherit", "black": "#555753", "red": "#ff6b6b", "green": "#57d957", "brown": "#f0c040",
           "blue": "#7fb0ff", "magenta": "#d89ae0", "cyan": "#4fd6d6", "white": "#eeeeec"}


class Terminal:
    """A thread follows the program, so that the screen is up to date whenever somebody looks."""

    def __init__(self, command, columns=110, lines=34):
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self._lock = threading.Lock()
        self._child, self._descriptor = pty.fork()
        if self._child == 0:  # rxvt has no sequences that pyte does not know, and titles
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            os.execvpe(command[0], command, {**os.environ, "TERM": "rxvt", "LANG": "C.UTF-8"})
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self):
        while True:
            select.select([self._descriptor], [], [])
            try:
                output = os.read(self._descriptor, 65536)
            except OSError:  # a terminal reports its end in this way
                output = b""
            if not output:
                return
            with self._lock:
                self._stream.feed(output)

    def type(self, text):
        os.write(self._descriptor, text.encode())

    def rows(self):
        with self._lock:
            return [row.rstrip() for row in self.screen.display]

    def title(self):
        """What the program asked the window to be called."""
        with self._lock:
            return self.screen.title

    def text(self):
        """The screen as one line, with single blanks."""
        return " ".join(" ".join(self.rows()).split())

    def as_html(self):
        """The screen as a page, for a picture."""
        with self._lock:
            rows = ["".join(self._cell(self.screen.buffer[y][x]) for x in range(self.screen.columns))
                    for y in range(self.screen.lines)]
        while rows and not rows[-1].replace("<span>", "").replace("</span>", "").strip():
            rows.pop()
        return ("<!DOCTYPE html><meta charset=utf-8><style>body { margin: 0; background: #1d1f21; color: #d8d8d4; }"
                "pre { margin: 0; padding: 12px 16px; font: 15px/1.3 'DejaVu Sans Mono', monospace; width: max-content; }"
                "</style><pre>" + "\n".join(rows) + "</pre>")

    @staticmethod
    def _cell(cell):
        ink, paper = (COLOURS.get(colour, f"#{colour}") for colour in (cell.fg, cell.bg))
        if cell.reverse:
            ink, paper = "#1d1f21" if paper == "inherit" else paper, "#d8d8d4" if ink == "inherit" else ink
        style = "".join([f"color:{ink};" if ink != "inherit" else "", f"background:{paper};" if paper != "inherit" else "",
                         "font-weight:bold;" if cell.bold else "", "text-decoration:underline;" if cell.underscore else ""])
        text = html.escape(cell.data)
        return f'<span style="{style}">{text}</span>' if style else text
