"""One row at work: a daemon, the boards, a run, and the comparison with a clean replay."""

import json
import os

from datagrams import HEADER, Boards, Sender
from testbed import Daemon, Site, expect, records_of, wait_for


# Shown beside a difference, to tell its cause.
LOSSES = [("datagrams", name) for name in ("lost", "dropped_kernel", "dropped_no_buffer", "malformed", "unknown_source")]
LOSSES += [("frames", name) for name in ("late", "time_jump", "bad_marker", "bad_address")]


class Skipped(Exception):
    """The row is impossible here."""


class Stage:
    def __init__(self, programs, row, variant, kills):
        self.programs, self.row, self.variant, self.kills = programs, row, variant, kills
        self.capture, stream = programs.stream(variant.framing, **row.stream)
        self.boards = Boards(stream)
        self.header = HEADER if variant.framing == "sequenced" else 0
        self.sites, self.daemons, self.senders = [], [], []
        self.site = self.daemon = self.live = self.answer = None
        self.reference_of = self.capture  # a row whose clean result is that of another capture says so
        self.started = {"run": "r"}
        self.environment = {}
        self.done = False  # the row has compared by itself
        self.exits = (0,)  # exit status of the daemon

    def patch(self):
        sockets = [{"address": "127.0.0.1", "port": 0} for _ in range(self.variant.sockets)]
        patch = json.loads(json.dumps(self.row.patch))
        patch.setdefault("receive", {})
        patch["receive"].update({"sockets": sockets, "framing": self.variant.framing})
        return patch

    def listed(self):
        """The boards as the scanner description lists them."""
        out = []
        for source in self.boards.sources:
            bdms = sorted({one.payload[at + 1] for one in self.boards.stream if one.source == source
                           for at in range(self.header, len(one.payload), 16)})
            if self.variant.framing == "sequenced":
                out.append({"id": source, "bdms": bdms})
            else:
                out.append({"address": "127.0.0.1", "port": self.boards.reserved[source].port, "bdms": bdms})
        return out

    def new_site(self, patch=None, sources=None):
        self.sites.append(Site(self.programs, patch, sources))
        return self.sites[-1]

    def new_daemon(self, site, environment=None):
        self.daemons.append(Daemon(site, environment))
        return self.daemons[-1]

    def open(self):
        """The daemon of the row."""
        self.site = self.new_site(self.patch(), self.listed() if self.variant.listed else None)
        self.daemon = self.new_daemon(self.site, self.environment)
        self.boards.connect(self.daemon.ports)

    def unknown_sender(self):
        """Somebody who is on no list."""
        address = "127.0.0.2" if self.variant.framing == "bare" else "127.0.0.1"
        self.senders.append(Sender(self.daemon.ports, address))
        return self.senders[-1]

    def need_socket_buffers(self):
        """For rows whose datagrams wait in the sockets."""
        if "net.core.rmem_max" in self.daemon.log():
            raise Skipped("the kernel grants smaller socket buffers (net.core.rmem_max)")

    def sent(self):
        return self.boards.count + sum(sender.sent for sender in self.senders)

    def settle(self):
        """Waits until the daemon has received everything that was sent, or its run has ended."""
        wait_for(lambda: self.daemon.received() >= self.sent() or self.daemon.process.poll() is not None,
                 f"{self.sent()} datagrams received")

    def start(self):
        self.daemon.client.call("start", **self.started)

    def stop(self):
        """Stops the run unless it has ended."""
        if self.daemon.status()["state"] != "idle":
            self.daemon.client.ask("stop")
            self.answer = self.daemon.client.answer()

    def perform(self):
        if not self.row.run:
            return self.row.play(self)
        self.prepare()
        self.row.play(self)
        if self.live is None and not self.done:
            self.settle()
            if self.row.health:
                wait_for(lambda: self.row.health in json.dumps(self.daemon.status()["health"]["reasons"]),
                         f"health names {self.row.health}")
            self.stop()
        if not self.done:
            self.compare()
        expect(self.daemon.end() in self.exits, f"the daemon exits with {self.daemon.process.returncode}")
        return None

    def prepare(self):
        before = getattr(self.row.play, "before", None)
        if before:
            before(self)
        self.open()
        self.start()

    def compare(self):
        run = self.started["run"]
        clean = self.programs.reference(self.reference_of, receive={"framing": self.variant.framing})
        live = self.live or self.site.listmode(run)
        document, ledger = live.run, live.run["ledger"]
        wrong = []
        reason = document.get("stop_reason") or ""
        if document["state"] != self.row.state:
            wrong.append(f"state {document['state']}, expected {self.row.state}")
        if not ledger["closed"]:
            wrong.append(f"the ledger does not close: {ledger['open']}")
        if self.row.reason not in reason:
            wrong.append(f"the reason is not {self.row.reason}: {reason}")
        for path, wanted in self.row.counters_of(self.variant).items():
            value = ledger
            for key in path.split("."):
                value = value.get(key) if isinstance(value, dict) else None
            good = wanted(value) if callable(wanted) else value == wanted
            if not good:
                wrong.append(f"{path} is {value}" + ("" if callable(wanted) else f", expected {wanted}"))
        wrong += self.differences(live, clean)
        losses = {name: ledger[part][name] for part, name in LOSSES if ledger[part].get(name)}
        expect(not wrong, "; ".join(wrong) + (f" ({losses})" if losses else ""))

    def differences(self, live, clean):
        if live.sha == clean.sha:
            return []
        most = self.row.loses(self) if callable(self.row.loses) else self.row.loses
        there, wanted = records_of(self.programs, live.path), records_of(self.programs, clean.path)
        missing, more = (wanted - there).total(), (there - wanted).total()
        out = [f"{missing} of {wanted.total()} records missing, {most} may be"] if missing > most else []
        # Without a single, a triple may become a pair: a loss also makes records.
        if more > most:
            out.append(f"{more} records that the clean replay has not")
        if not missing and not more:
            out.append("the same records in other bytes: " + live.sha)
        return out

    def prefix(self, path):
        """What can be read of a file is the start of the clean list-mode. Returns the number of its records."""
        clean = self.programs.reference(self.capture)
        there = self.programs.run("petlm", "dump", path, check=False).stdout.splitlines()[1:]
        wanted = self.programs.run("petlm", "dump", clean.path).stdout.splitlines()[1:]
        expect(there == wanted[:len(there)], "the file is not a prefix of the clean list-mode")
        return len(there)

    def clean(self):
        for daemon in self.daemons:
            if daemon.process.poll() is None:
                daemon.kill()
        self.boards.close()
        for sender in self.senders:
            sender.close()
        if not os.environ.get("PETACQ_KEEP"):
            for site in self.sites:
                site.remove()
