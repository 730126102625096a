"""Sends what petacqd does, and a sample of its records, to Kafka. Needs kafka-python; PETACQ_SOCKET names the control socket.

    PREFIX.status         every second: state, health, run, rates, as JSON
    PREFIX.records.KIND   each array of the tap as it is, with the run as key, so that those of a run stay in order, and the headers
                          first, missing and dtype (a NumPy description)
"""

import argparse
import asyncio
import json

from kafka import KafkaProducer
from status import send_status

import petacq

parser = argparse.ArgumentParser(description="Sends status and records of petacqd to Kafka.")
parser.add_argument("--servers", default="localhost:9092", help="HOST:PORT[,HOST:PORT...]")
parser.add_argument("--prefix", default="petacq")
parser.add_argument("--kind", default="coincidences", choices=["coincidences", "singles", "triples"])
parser.add_argument("--prescale", type=int, default=100, help="every N-th record")
given = parser.parse_args()
daemon = petacq.Daemon()


async def main():
    producer = KafkaProducer(bootstrap_servers=given.servers.split(","), linger_ms=20)

    async def send(topic, value, **more):  # in a thread, since it waits while the buffer of the producer is full
        await asyncio.to_thread(producer.send, f"{given.prefix}.{topic}", value=value, **more)

    sending = asyncio.create_task(send_status(daemon, lambda status: send("status", json.dumps(status).encode())))
    async for part in (tap := petacq.Tap(kind=given.kind, prescale=given.prescale, reconnect_s=1)):
        headers = {"first": tap.first_record, "missing": tap.missing, "dtype": part.dtype.descr}
        coded = [(name, str(value).encode()) for name, value in headers.items()]
        await send(f"records.{given.kind}", part.tobytes(), key=tap.run.encode(), headers=coded)
    sending.cancel()
    producer.close()


asyncio.run(main())
