"""Publishes what petacqd does, and a sample of its records, over NATS. Needs nats-py; PETACQ_SOCKET names the control socket.

    PREFIX.status         every second: state, health, run, rates
    PREFIX.records.KIND   each array of the tap as it is, with the headers run, first, missing and dtype (a NumPy description)
    PREFIX.start|stop     only with --control: requests, with the name of a run or empty; the reply is the answer of petacqd

    numpy.frombuffer(message.data, numpy.dtype(ast.literal_eval(message.headers["dtype"])))
"""

import argparse
import asyncio
import json

import nats
from status import send_status

import petacq

parser = argparse.ArgumentParser(description="Publishes status and records of petacqd over NATS.")
parser.add_argument("--server", default="nats://localhost:4222")
parser.add_argument("--prefix", default="petacq")
parser.add_argument("--kind", default="coincidences", choices=["coincidences", "singles", "triples"])
parser.add_argument("--prescale", type=int, default=100, help="every N-th record")
parser.add_argument("--control", action="store_true", help="whoever may send requests may start and stop runs")
given = parser.parse_args()
daemon = petacq.Daemon()


async def answer(request):
    try:
        method = daemon.start if request.subject.endswith(".start") else daemon.stop
        said = await asyncio.to_thread(method, request.data.decode() or None)
    except (petacq.DaemonError, UnicodeDecodeError) as error:
        said = {"error": str(error)}
    await request.respond(json.dumps(said).encode())


async def main():
    connection = await nats.connect(given.server)
    for verb in ("start", "stop") if given.control else ():
        await connection.subscribe(f"{given.prefix}.{verb}", cb=answer)
    topic = f"{given.prefix}.status"
    sending = asyncio.create_task(send_status(daemon, lambda status: connection.publish(topic, json.dumps(status).encode())))
    async for part in (tap := petacq.Tap(kind=given.kind, prescale=given.prescale, reconnect_s=1)):
        headers = {"run": tap.run, "first": str(tap.first_record), "missing": str(tap.missing), "dtype": str(part.dtype.descr)}
        await connection.publish(f"{given.prefix}.records.{given.kind}", part.tobytes(), headers=headers)
    sending.cancel()


asyncio.run(main())
