"""What the bridges say of a daemon, once a second."""

import asyncio

import petacq


def status_of(daemon):
    """State, health, run and rates; of a daemon that does not answer, why not."""
    try:
        now = daemon.status()
    except petacq.DaemonError as error:
        return {"state": "unreachable", "reason": str(error)}
    return {"state": now["state"], "health": now["health"]["state"], "run": now["run"] and now["run"]["id"], **now["rates"]}


async def send_status(daemon, send):
    """``send`` may be a coroutine function."""
    while True:
        sent = send(await asyncio.to_thread(status_of, daemon))
        if sent is not None:
            await sent
        await asyncio.sleep(1)
