"""Publishes what petacqd does, and a sample of its records, over MQTT. Needs paho-mqtt 2; PETACQ_SOCKET names the control socket.

    PREFIX/status         every second, retained: state, health, run, rates
    PREFIX/records        each array of the tap: run, number of its first record, how many there are and are missing before, mean energy
    PREFIX/start, /stop   only with --control: the name of a run, or nothing; PREFIX/answer has the answer of petacqd
"""

import argparse
import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import paho.mqtt.client as mqtt
from status import send_status

import petacq

parser = argparse.ArgumentParser(description="Publishes status and records of petacqd over MQTT.")
parser.add_argument("--host", default="localhost")
parser.add_argument("--port", type=int, default=1883)
parser.add_argument("--prefix", default="petacq")
parser.add_argument("--prescale", type=int, default=100, help="every N-th coincidence")
parser.add_argument("--control", action="store_true", help="whoever may publish there may start and stop runs")
given = parser.parse_args()
daemon = petacq.Daemon()
commands = ThreadPoolExecutor(1)  # stop() waits until the run is on disk
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)


def publish(topic, document):
    client.publish(f"{given.prefix}/{topic}", json.dumps(document), retain=topic == "status")


def command(message):
    method = daemon.start if message.topic.endswith("/start") else daemon.stop
    try:
        publish("answer", method(message.payload.decode() or None))
    except (petacq.DaemonError, UnicodeDecodeError) as error:
        publish("answer", {"error": str(error)})


async def main():
    sending = asyncio.create_task(send_status(daemon, lambda status: publish("status", status)))
    async for part in (tap := petacq.Tap(prescale=given.prescale, reconnect_s=1)):
        said = {"run": tap.run, "first": tap.first_record, "count": len(part), "missing": tap.missing}
        publish("records", said | {"mean_keV": float(part["energy_a"].mean())})
    sending.cancel()


client.will_set(f"{given.prefix}/status", '{"state": "unknown"}', retain=True)
if given.control:
    client.on_connect = lambda *_: client.subscribe([(f"{given.prefix}/{verb}", 0) for verb in ("start", "stop")])
client.on_message = lambda _, __, message: commands.submit(command, message)
client.connect(given.host, given.port)
client.loop_start()
asyncio.run(main())
