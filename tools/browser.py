"""Drives a headless Chromium through its debugging pipe. Needs only Python and Chromium."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# s; limit of every wait, not an expected duration: the machine may be busy
PATIENCE = 300


def find():
    """Path of a Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One Chromium process. It takes a second or more to start; a page of it opens at once."""

    def __init__(self, path, within=()):
        """`within`: words before the command, such as those that enter a network namespace."""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def place_pipes():  # the browser reads descriptor 3 and writes descriptor 4
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(
            [*within, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
             "--force-color-profile=srgb", "--lang=en-GB", f"--user-data-dir={self._profile.name}",
             "--remote-debugging-pipe", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._next = 1
        self._pages = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def page(self, **screen):
        """A page that shares nothing with the others; `screen` as for Page.show_as."""
        return Page(self, **screen)

    def _message(self, patience):
        end = time.monotonic() + patience
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has ended")
            self._buffer += chunk
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """The result of a method of the DevTools protocol. Events that arrive meanwhile go to their pages."""
        number, self._next = self._next, self._next + 1
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message(PATIENCE)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer.get("sessionId") in self._pages:
                self._pages[answer["sessionId"]].take_event(answer)

    def attach(self, page, target):
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._pages[session] = page
        return session

    def detach(self, session):
        self._pages.pop(session, None)


class Page:
    """One page, with a profile of its own. `complaints` holds the errors and warnings of its console and its failed
    requests."""

    def __init__(self, browser, **screen):
        self._browser = browser
        self.complaints = []
        self._context = browser.call("Target.createBrowserContext")["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = browser.attach(self, target)
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(domain + ".enable")
        self.show_as(**screen)

    def show_as(self, width=1400, height=900, scale=1, mobile=False, dark=False):
        """The screen, from now on."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=mobile)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._browser.detach(self._session)
        self._browser.call("Target.disposeBrowserContext", browserContextId=self._context)

    def take_event(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Log.entryAdded":
            self.complaints.append(values["entry"]["text"] + " " + values["entry"].get("url", ""))
        elif method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            self.complaints.append(str([a.get("value") for a in values["args"]]))

    def call(self, method, **parameters):
        return self._browser.call(method, session=self._session, **parameters)

    def before(self, script):
        """Runs a script in every document that is opened from now on, before its own."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, expression):
        """The value of a JavaScript expression; waits for promises."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", "exception"))
        return result["result"].get("value")

    def wait(self, condition, patience=PATIENCE):
        """Waits until a JavaScript expression is true. It may fail while the page loads."""
        end = time.monotonic() + patience
        while True:
            try:
                if self.evaluate(f"Boolean({condition})"):
                    return
            except RuntimeError:
                pass
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {condition}; {self.complaints}")
            time.sleep(0.02)

    def press(self, key, code=0, shift=False):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code,
                      modifiers=8 if shift else 0)

    def click(self, selector, patience=PATIENCE):
        """Clicks with the mouse in the middle of an element, wherever it is on the page. Tries again if the element was
        disabled, or the page moved it away meanwhile."""
        end = time.monotonic() + patience
        while True:
            x, y = self.evaluate(f"""(element => {{
                element.scrollIntoView({{block: "center", behavior: "instant"}});
                window.clicked = false;
                element.addEventListener("click", () => {{ window.clicked = true; }}, {{capture: true, once: true}});
                const box = element.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2];
            }})(document.querySelector({json.dumps(selector)}))""")
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
            try:
                if self.evaluate("window.clicked") is not False:
                    return
            except RuntimeError:  # the click has led to another page
                return
            if time.monotonic() > end:
                raise TimeoutError(f"no click reaches {selector}")

    def back(self):
        """To the page before this one."""
        history = self.call("Page.getNavigationHistory")
        self.call("Page.navigateToHistoryEntry", entryId=history["entries"][history["currentIndex"] - 1]["id"])

    def type(self, text):
        """Types into the element that has the focus."""
        self.call("Input.insertText", text=text)

    def screenshot(self, file, whole_page=True, of=None):
        """Writes a PNG of the whole page, of the element that the selector `of` names, or of the viewport as it is."""
        parameters = {"format": "png", "captureBeyondViewport": whole_page, "optimizeForSpeed": False}
        if of:
            box = self.evaluate(f"""(element => {{
                element.scrollIntoView({{block: "center", behavior: "instant"}});
                const box = element.getBoundingClientRect();
                return {{x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height}};
            }})(document.querySelector({json.dumps(of)}))""")
            parameters["clip"] = {**box, "scale": 1}
        elif whole_page:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            parameters["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        with open(file, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot", **parameters)["data"]))
