"""Looks at the documentation site in Chromium, as its readers do. tools/docs calls it."""

import contextlib
import functools
import http.server
import threading
import urllib.parse

from browser import Browser

SCREENS = {"a desktop": {"width": 1400, "height": 900}, "a phone": {"width": 390, "height": 844, "mobile": True}}
# What does not fit: the page in the window; a table, a command or a word in its column, unless it scrolls there by itself; a word of a title
# in one line. Pictures that are missing, and options whose hyphens have become a dash.
MISFITS = """(() => {
    const root = document.documentElement, found = [];
    if (root.scrollWidth > root.clientWidth) found.push(`${root.scrollWidth - root.clientWidth} px wider than the window`);
    const article = document.querySelector("article"), edge = document.querySelector(".content").getBoundingClientRect().right;
    const scrolls = part => part !== article && (["auto", "scroll"].includes(getComputedStyle(part).overflowX) || scrolls(part.parentElement));
    const wide = [...article.querySelectorAll("*")].find(part => part.getBoundingClientRect().right > edge + 1 && !scrolls(part.parentElement));
    if (wide) found.push(`too wide: ${wide.localName} ${wide.textContent.trim().replace(/\\s+/g, " ").slice(0, 60)}`);
    for (const title of document.querySelectorAll("h1, h2")) {
        for (const part of [title, ...title.querySelectorAll("*")]) part.style.overflowWrap = "normal";
        if (title.scrollWidth > title.clientWidth) found.push(`a word of a title too long for a line: ${title.textContent}`);
    }
    const dash = article.textContent.match(/[\\s[(]–[a-zA-Z][\\w-]*/);
    if (dash) found.push(`a dash in place of hyphens: ${dash}`);
    for (const image of document.images)
        if (!image.complete || image.naturalWidth === 0) found.push(`no picture ${image.getAttribute("src")}`);
    return found;
})()"""
BRIGHTNESS = "getComputedStyle(document.body).%s.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0)"
FOUND = "document.querySelector('#search-results ul.search li a')"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(site):
    """The address of the site, as long as it is served."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def show(page, address):
    page.open(address)
    page.wait(f"location.href === {address!r} && document.readyState === 'complete'")


def misfits(page, address, name):
    """Opens a page of the site and yields what is wrong with its layout."""
    page.show_as(**SCREENS["a desktop"])
    show(page, address)
    for screen, size in SCREENS.items():
        page.show_as(**size)
        yield from (f"{name}, on {screen}: {misfit}" for misfit in page.evaluate(MISFITS))


def darkness(page, address):
    page.show_as(**SCREENS["a desktop"], dark=True)
    show(page, address)
    paper, ink = (page.evaluate(BRIGHTNESS % part) for part in ("backgroundColor", "color"))
    if not paper < 200 < 400 < ink:
        yield f"a dark screen shows ink of {ink} on paper of {paper}, of 765"


def misses(page, address, words):
    """Words of readers, by the page that the search must show first."""
    page.show_as(**SCREENS["a desktop"])
    for name, sought in words.items():
        for word in sought:
            show(page, f"{address}search.html?q={urllib.parse.quote(word)}")
            try:
                page.wait(FOUND, patience=20)
                first = page.evaluate(FOUND + ".pathname").removeprefix("/")
            except TimeoutError:
                first = "nothing"
            if first != f"{name}.html":
                yield f"the search for '{word}' finds {first} first, expected {name}.html"


def problems(chromium, site, words):
    """What a reader of the site would stumble over: all pages, on both screens; a dark page; the search; what the browser complains of."""
    with served(site) as address, Browser(chromium) as browser, browser.page() as page:
        for file in sorted(site.rglob("*.html")):
            name = file.relative_to(site).as_posix()
            yield from misfits(page, address + name, name)
            yield from (f"{name}: the browser complains: {complaint}" for complaint in page.complaints)
            page.complaints.clear()
        yield from darkness(page, address + "index.html")
        yield from misses(page, address, words)
        yield from (f"the browser complains: {complaint}" for complaint in page.complaints)
