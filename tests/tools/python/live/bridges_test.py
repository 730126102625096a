"""The example bridges: against a real daemon and real servers, mosquitto, nats-server and the one in p4p. There is no Kafka to test
against: its client is one that writes down what it is asked to send."""

import ast
import asyncio
import contextlib
import importlib.util
import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import time
import unittest

import numpy as np
import support

import petacq

BRIDGES = support.SOURCE / "tools" / "python" / "examples" / "bridges"
FAKE_KAFKA = """
import ast, json, sys

class KafkaProducer:
    def __init__(self, bootstrap_servers, linger_ms):
        assert bootstrap_servers == ["a:1", "b:2"], bootstrap_servers

    def send(self, topic, value=None, key=None, headers=()):
        assert all(type(part) is bytes for part in (value, key or b"", *(coded for _, coded in headers)))
        print(json.dumps([topic, value.hex(), key and key.decode(), {name: coded.decode() for name, coded in headers}]), flush=True)
"""


def needs(module, server=None):
    """Skips a test without a Python package or a program."""
    missing = importlib.util.find_spec(module) is None or (server and shutil.which(server) is None)
    return unittest.skipIf(missing, f"{module}{' or ' + server if server else ''} is not installed")


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(condition):
    """Waits for it."""
    end = time.monotonic() + support.PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError("it did not come")
        time.sleep(0.01)
    return found


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Bridges(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(support.Daemon(self._testMethodName, tap={"socket": "b.tap"}))
        self.daemon = petacq.Daemon(self.server.socket)
        until(lambda: self.daemon.status()["state"] == "idle")

    def program(self, *command, **options):
        process = subprocess.Popen(list(map(str, command)), **options)
        self.addCleanup(process.wait, support.PATIENCE_S)
        self.addCleanup(process.kill)
        return process

    def bridge(self, name, *options, path="", **more):
        """It is connected to the tap before this returns."""
        source = os.pathsep.join(filter(None, (str(path), str(support.SOURCE / "tools/python/src"))))
        env = {**self.server.env, "PYTHONPATH": source, **more.pop("env", {})}
        process = self.program(sys.executable, BRIDGES / name, "--prescale", 5, *options, env=env, **more)
        until(lambda: self.daemon.status()["tap"]["clients"] == 1 or process.poll() is not None)
        self.assertIsNone(process.poll())

    def run_of(self, name, start, stop):
        """The coincidences of a run that ``start`` and ``stop`` make."""
        start(name)
        subprocess.run(self.server.simulation(0.2), check=True, timeout=support.PATIENCE_S)
        stop()
        return petacq.open_run(self.server.data / name).coincidences[::5]

    def by_petctl(self, name):
        return self.run_of(name, self.daemon.start, self.daemon.stop)

    @needs("paho", "mosquitto")
    def test_mqtt(self):
        import paho.mqtt.client as mqtt

        port = free_port()
        configuration = support.scratch() / "mosquitto.conf"
        configuration.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        self.program("mosquitto", "-c", configuration, stderr=subprocess.DEVNULL)
        until(lambda: answers(port))
        came = {"status": queue.Queue(), "records": queue.Queue(), "answer": queue.Queue()}
        subscribed = queue.Queue()
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2)
        client.on_message = lambda _, __, m: came[m.topic.removeprefix("pet/")].put(json.loads(m.payload))
        client.on_subscribe = lambda *_: subscribed.put(True)
        client.connect("127.0.0.1", port)
        client.loop_start()
        self.addCleanup(client.loop_stop)
        client.subscribe([(f"pet/{topic}", 0) for topic in came])
        subscribed.get(timeout=support.PATIENCE_S)
        self.bridge("to_mqtt.py", "--port", port, "--prefix", "pet", "--control")

        def ask(verb, name=""):
            client.publish(f"pet/{verb}", name)
            return came["answer"].get(timeout=support.PATIENCE_S)

        self.assertEqual(came["status"].get(timeout=support.PATIENCE_S)["state"], "idle")  # it is connected, too
        expected = self.run_of("mqtt", lambda name: self.assertEqual(ask("start", name)["run"], "mqtt"), lambda: ask("stop"))
        count, energy = 0, 0.0
        while count < len(expected):
            said = came["records"].get(timeout=support.PATIENCE_S)
            self.assertEqual((said["run"], said["first"], said["missing"]), ("mqtt", 5 * count, 0))
            count += said["count"]
            energy += said["count"] * said["mean_keV"]
        self.assertAlmostEqual(energy / count, expected["energy_a"].astype(float).mean(), places=2)
        self.assertIn("no run is in progress", ask("stop")["error"])

    @needs("nats", "nats-server")
    def test_nats(self):
        import nats

        folder = support.scratch() / "nats"
        folder.mkdir()
        self.program("nats-server", "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder, stderr=subprocess.DEVNULL)
        ports = until(lambda: next((file for file in folder.glob("*.ports") if file.stat().st_size), None))
        (url,) = json.loads(ports.read_text())["nats"]

        async def listen():
            client = await nats.connect(url)
            records = await client.subscribe("petacq.records.coincidences")
            status = await client.subscribe("petacq.status")
            await client.flush()
            await asyncio.to_thread(self.bridge, "to_nats.py", "--server", url, "--control")
            first = json.loads((await status.next_msg(support.PATIENCE_S)).data)
            self.assertEqual((first["state"], first["run"]), ("idle", None))

            async def ask(verb, text=b""):
                return json.loads((await client.request(f"petacq.{verb}", text, timeout=support.PATIENCE_S)).data)

            self.assertEqual((await ask("start", b"nats"))["run"], "nats")
            await asyncio.to_thread(subprocess.run, self.server.simulation(0.2), check=True)
            self.assertTrue((await ask("stop"))["ledger_closed"])
            self.assertIn("no run is in progress", (await ask("stop"))["error"])
            expected, parts = petacq.open_run(self.server.data / "nats").coincidences[::5], []
            while sum(map(len, parts)) < len(expected):
                message = await records.next_msg(support.PATIENCE_S)
                self.assertEqual((message.headers["run"], message.headers["missing"]), ("nats", "0"))
                parts.append(np.frombuffer(message.data, np.dtype(ast.literal_eval(message.headers["dtype"]))))
            np.testing.assert_array_equal(np.concatenate(parts), expected)
            await client.close()

        asyncio.run(listen())

    @needs("p4p")
    def test_epics(self):
        from p4p.client.thread import Context, RemoteError

        udp, tcp = free_port(socket.SOCK_DGRAM), free_port()
        env = {"EPICS_PVAS_INTF_ADDR_LIST": "127.0.0.1", "EPICS_PVAS_SERVER_PORT": str(tcp), "EPICS_PVAS_BROADCAST_PORT": str(udp)}
        self.bridge("to_epics.py", "--control", env=env)
        names = {"EPICS_PVA_NAME_SERVERS": f"127.0.0.1:{tcp}", "EPICS_PVA_AUTO_ADDR_LIST": "NO", "EPICS_PVA_BROADCAST_PORT": str(udp)}
        client = self.enterContext(Context("pva", conf=names, useenv=False))

        def get(name):
            return client.get(f"PETACQ:{name}", timeout=support.PATIENCE_S)

        def put(name, value=""):
            client.put(f"PETACQ:{name}", value, timeout=support.PATIENCE_S)

        until(lambda: get("STATE") == "idle")
        expected = self.run_of("epics", lambda name: put("START", name), lambda: put("STOP"))
        until(lambda: get("ENERGIES").sum() == len(expected))
        counts = np.histogram(expected["energy_a"], 150, (0, 1500))[0]
        np.testing.assert_array_equal(get("ENERGIES"), counts)
        self.assertEqual((get("RUN"), get("MISSED")), ("", 0))
        with self.assertRaisesRegex(RemoteError, "no run is in progress"):
            put("STOP")

    def test_kafka_with_a_client_that_is_none(self):
        folder = support.scratch() / "kafka"
        folder.mkdir()
        (folder / "kafka.py").write_text(FAKE_KAFKA)
        with open(folder / "sent", "wb") as out:
            self.bridge("to_kafka.py", "--servers", "a:1,b:2", path=folder, stdout=out)
            expected = self.by_petctl("kafka")

            def sent(topic):
                lines = (folder / "sent").read_text().split("\n")[:-1]
                return [said[1:] for said in map(json.loads, lines) if said[0] == topic]

            def records():
                return b"".join(bytes.fromhex(value) for value, _, _ in sent("petacq.records.coincidences"))

            until(lambda: len(records()) >= expected.nbytes)
        self.assertEqual(records(), expected.tobytes())
        self.assertEqual({key for _, key, _ in sent("petacq.records.coincidences")}, {"kafka"})
        for _, _, headers in sent("petacq.records.coincidences"):
            self.assertEqual(np.dtype(ast.literal_eval(headers["dtype"])), petacq.COINCIDENCE)
            self.assertEqual(headers["missing"], "0")
        self.assertEqual(json.loads(bytes.fromhex(sent("petacq.status")[0][0]))["state"], "idle")


class Short(unittest.TestCase):
    def test_each_has_at_most_60_lines(self):
        bridges = sorted(BRIDGES.glob("*.py"))
        self.assertEqual([bridge.name for bridge in bridges], ["status.py", "to_epics.py", "to_kafka.py", "to_mqtt.py", "to_nats.py"])
        for bridge in bridges:
            self.assertLessEqual(len(bridge.read_text().splitlines()), 60, bridge.name)


if __name__ == "__main__":
    unittest.main()
