"""A run is converted with the calibration that the operator put in use before it."""


def linked(story_events, until_ns, calibrations):
    """SHA-256 of the calibration that the configuration named at a time, and when it began to."""
    at, number = 0, 0
    for event in story_events:
        if event.what == "calibration" and event.ms * 10**6 <= until_ns:
            at, number = event.ms * 10**6, event.number(0)
    return calibrations[number], at


def possible(life, story, asked_ns, calibrations):
    """Those that a run that was asked for at this time may have."""
    begin = linked(story.events, life.begin_ns, calibrations)[0]
    found, pending = {begin}, {}
    for at, kind, text in life.events:
        if at > asked_ns:
            break
        if kind == "request" and '"reload"' in text:
            pending[life.document(text)["id"]] = at
        if kind != "answer":
            continue
        answer = life.document(text)
        sent = pending.pop(answer.get("id"), None)
        if sent is None or "result" not in answer:
            continue
        # What it took, at once or when the run before has ended.
        in_use = answer["result"]["calibration"]
        found = {(in_use["next"] or in_use)["sha256"]}
    # Those that may have been read meanwhile.
    for sent in pending.values():
        found.add(linked(story.events, sent, calibrations)[0])
        found |= {calibrations[e.number(0)] for e in story.events if e.what == "calibration" and sent <= e.ms * 10**6 <= asked_ns + 10**9}
    return found


def failures(run, life, asked_ns, calibrations):
    if run.description is None:
        return []
    used, allowed = run.description["calibration_sha256"], possible(life, run.story, asked_ns, calibrations)
    return [] if used in allowed else [f"calibration: run {run.name}: {used[:8]}, expected {sorted(s[:8] for s in allowed)}"]
