"""Serves what petacqd does, and energies of its records, over EPICS pvAccess. Needs p4p; PETACQ_SOCKET names the control socket.

    PREFIX:STATE, :HEALTH, :RUN         texts, every second
    PREFIX:SINGLES, :PROMPTS, :MISSED   per second; records that the tap has missed
    PREFIX:ENERGIES                     counts of the energies of the records of the run from the tap, in bins of 10 keV from 0
    PREFIX:START, :STOP                 only with --control: put the name of a run, or an empty text
"""

import argparse
import asyncio

import numpy as np
from p4p.nt import NTScalar
from p4p.server import Server
from p4p.server.thread import SharedPV
from status import send_status

import petacq

parser = argparse.ArgumentParser(description="Serves status and energies of petacqd over EPICS pvAccess.")
parser.add_argument("--prefix", default="PETACQ")
parser.add_argument("--prescale", type=int, default=100, help="every N-th coincidence")
parser.add_argument("--control", action="store_true", help="whoever may put may start and stop runs")
given = parser.parse_args()
daemon = petacq.Daemon()
commands = ("START", "STOP") if given.control else ()
pvs = {name: SharedPV(nt=NTScalar("s"), initial="") for name in ("STATE", "HEALTH", "RUN", *commands)}
pvs |= {name: SharedPV(nt=NTScalar("d"), initial=0.0) for name in ("SINGLES", "PROMPTS", "MISSED")}
pvs["ENERGIES"] = SharedPV(nt=NTScalar("ad"), initial=np.zeros(150))


def command(pv, operation):
    try:
        (daemon.start if pv is pvs["START"] else daemon.stop)(operation.value().raw.value or None)
        operation.done()
    except petacq.DaemonError as error:
        operation.done(error=str(error))


def post(status):
    for name, key in {"STATE": "state", "HEALTH": "health", "RUN": "run"}.items():
        pvs[name].post(status.get(key) or "")
    for name, key in {"SINGLES": "singles_per_s", "PROMPTS": "prompts_per_s"}.items():
        pvs[name].post(status.get(key) or 0.0)


async def main():
    sending, run, counts = asyncio.create_task(send_status(daemon, post)), None, np.zeros(150)
    async for part in (tap := petacq.Tap(prescale=given.prescale, reconnect_s=1)):
        counts, run = counts if tap.run == run else np.zeros(150), tap.run
        counts = counts + np.histogram(part["energy_a"], 150, (0, 1500))[0]
        pvs["ENERGIES"].post(counts)
        pvs["MISSED"].post(float(tap.missed))
    sending.cancel()


for name in commands:
    pvs[name].put(command)
with Server(providers=[{f"{given.prefix}:{name}": pv for name, pv in pvs.items()}]):
    asyncio.run(main())
