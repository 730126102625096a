"""Pictures of what the operator sees, for docs/."""

import shutil
import subprocess

from machine import Failure


class Album:
    """Without a directory it takes none."""
    screen = {"width": 1200, "height": 760}

    def __init__(self, browser, directory):
        self.directory = directory
        if directory is None:
            return
        if shutil.which("pngquant") is None:
            raise Failure("pictures need pngquant (tools/setup --browser)")
        directory.mkdir(parents=True, exist_ok=True)
        self.terminals = browser.page(width=1100, height=700)

    def page(self, name, page, of=None, to=None):
        """The viewport, the element that the selector `of` names, or the top of the page down to the element `to`."""
        if self.directory is None:
            return
        if to:
            bottom = page.evaluate(f"document.querySelector({to!r}).getBoundingClientRect().bottom")
            page.show_as(**{**self.screen, "height": int(bottom) + 16})
        self._take(name, lambda file: page.screenshot(file, whole_page=False, of=of))
        page.show_as(**self.screen)

    def terminal(self, name, terminal):
        if self.directory is None:
            return
        page = self.directory / "screen.html"
        page.write_text(terminal.as_html(), encoding="utf-8")
        self.terminals.open(page.as_uri())
        self.terminals.wait("document.readyState == 'complete' && document.querySelector('pre')")
        page.unlink()
        self._take(name, lambda file: self.terminals.screenshot(file, of="pre"))

    def _take(self, name, photograph):
        file = self.directory / f"{name}.png"
        photograph(file)
        subprocess.run(["pngquant", "--force", "--strip", "--speed", "1", "--output", file, "128", file], check=True)
