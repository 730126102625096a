"""What the operator looks at: the live page, `petctl watch`, a shell."""

from machine import Failure, eventually
from terminal import Terminal


class LivePage:
    """The live page in a browser."""
    name = "page"

    def __init__(self, page):
        self.page = page

    def ask(self, expression):
        """The value of a JavaScript expression; None while the browser changes to another page."""
        try:
            return self.page.evaluate(expression)
        except RuntimeError:
            return None

    def words(self, selector):
        """The text of an element, with single blanks."""
        return " ".join((self.ask(f"document.querySelector({selector!r})?.innerText") or "").split())

    def text(self):
        """The tab of the browser, and what stands at the top."""
        return f"{self.ask('document.title')} | {self.words('#recording')} | {self.words('#reasons')}"

    def enter(self, field, text):
        self.page.click(field)
        self.page.type(text)

    def top(self):
        self.page.evaluate("scrollTo({top: 0, behavior: 'instant'})")


class Watch(Terminal):
    """`petctl watch`, by alice of the group petacq."""
    name = "petctl watch"

    def __init__(self, machine):
        super().__init__(machine.enter("runuser", "-u", "alice", "--", "env", "LANG=C.UTF-8", "petctl", "watch"))

    def text(self):
        """The title of the window, and the screen."""
        return f"{self.title()} | {super().text()}"


class Shell(Terminal):
    """A shell of the user petacq in the data directory."""
    prompt = "petacq@scanner:~$"

    def __init__(self, machine, directory):
        super().__init__(machine.enter(
            "runuser", "-u", "petacq", "--", "env", "-C", directory, "LANG=C.UTF-8", f"HOME={directory}",
            f"PS1={self.prompt} ", "bash", "--norc", "--noprofile"), columns=120, lines=50)
        eventually(self._waits, "a shell waits for a command")

    def _text_rows(self):
        return [row for row in self.rows() if row]

    def _waits(self):
        return self._text_rows()[-1:] == [self.prompt]

    def clear(self):
        """Clears the screen by Ctrl-L."""
        self.type("\x0c")
        eventually(lambda: self._text_rows() == [self.prompt], "an empty screen")

    def run(self, command):
        """What the command prints, row by row. Begins with an empty screen that must be large enough."""
        first = len(self._text_rows())
        self.type(command + "\n")
        eventually(lambda: len(self._text_rows()) > first and self._waits(), f"$ {command}")
        return self._text_rows()[first:-1]


def see(view, *words, absent=()):
    """Waits until `view` shows all words, and none of `absent`."""
    def shown():
        text = view.text()
        return all(word in text for word in words) and not any(word in text for word in absent)

    try:
        eventually(shown, f"{view.name}: {' … '.join(words)}")
    except Failure as failure:
        raise Failure(f"{failure}, but: {view.text()}") from None
