// Starting and stopping runs, if the daemon allows it. The token stays in the memory of the page.
"use strict";

class Control {
  constructor() {
    this.section = document.getElementById("control");
    this.answer = document.getElementById("control-answer");
    this.token = document.getElementById("control-token");
    this.question = document.getElementById("stop-question");
    document.getElementById("start-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.start();
    });
    document.getElementById("mark-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.mark();
    });
    document.getElementById("start-activity").addEventListener("input", ({target}) => this.need_time(target.value !== ""));
    document.getElementById("stop").addEventListener("click", () => this.ask());
    document.getElementById("stop-no").addEventListener("click", () => this.question.close());
    document.getElementById("stop-yes").addEventListener("click", () => {
      this.question.close();
      this.stop();
    });
  }

  /** Called with each status. */
  show(status) {
    const run = status.run ? status.run.id : null;
    // A question about a run that has ended meanwhile must not stop the next one.
    if (this.question.open && run !== this.run) this.question.close();
    this.run = run;
    document.getElementById("start").disabled = run !== null;
    document.getElementById("stop").disabled = document.getElementById("mark").disabled = run === null;
    document.getElementById("stop").textContent = run === null ? "Stop" : `Stop run ${run} …`;
  }

  start() {
    const value = (id) => document.getElementById(id).value.trim();
    const request = {run: value("start-run")};
    if (value("start-note")) request.note = value("start-note");
    if (value("start-minutes")) request.duration_s = 60 * Number(value("start-minutes"));
    if (value("start-nuclide")) request.nuclide = value("start-nuclide");
    if (value("start-activity")) {
      request.activity_MBq = Number(value("start-activity"));
      request.assay_utc = new Date(value("start-assay")).toISOString();
    }
    if (value("start-subject")) request.subject = value("start-subject");
    this.send("start", request, `Starting run ${request.run} …`).then((answer) => {
      if (!answer) return;
      this.say(`Run ${request.run} has started. The strip at the top says whether data arrive.`);
      for (const id of ["start-run", "start-note", "start-subject", "start-activity", "start-assay"]) document.getElementById(id).value = "";  // the next run is another one
      this.need_time(false);
    });
  }

  /** An activity needs its nuclide, and the time at which it was measured: by default now, on the clock of this browser. */
  need_time(wanted) {
    const assay = document.getElementById("start-assay");
    assay.required = document.getElementById("start-nuclide").required = wanted;
    if (!wanted || assay.value) return;
    const now = new Date();
    assay.value = new Date(now - now.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
  }

  mark() {
    const text = document.getElementById("mark-text").value.trim();
    this.send("mark", {text}, "Marking …").then((answer) => {
      if (!answer) return;
      this.say(`Run ${answer.run} is marked: ${text}.`);
      document.getElementById("mark-text").value = "";
    });
  }

  stop() {
    const run = this.run;
    this.send("stop", {run}, `Stopping run ${run} …`).then((answer) => {
      if (!answer) return;
      if (answer.failure) this.say(`Run ${run} has failed: ${answer.failure}.`, true);
      else if (!answer.ledger_closed) this.say(`Run ${run} is stopped and on disk, but its ledger does not close.`, true);
      else if (answer.verdict?.state === "bad") this.say(`Run ${run} is stopped and on disk, but its data are bad: ${answer.verdict.reasons[0].message}.`, true);
      else this.say(`Run ${run} is stopped and on disk.`);
    });
  }

  ask() {
    if (this.run === null || !this.has_token()) return;
    document.getElementById("stop-run").textContent = this.run;
    this.question.showModal();
    document.getElementById("stop-no").focus();
  }

  has_token() {
    if (this.token.value) return true;
    this.say("Type the token first: it is in the file http.control_token_file of the daemon.", true);
    this.token.focus();
    return false;
  }

  say(text, bad) {
    this.answer.textContent = text;
    this.answer.classList.toggle("bad", Boolean(bad));
  }

  /** The answer of the daemon; null if it did not do it. */
  async send(method, request, before) {
    if (!this.has_token()) return null;
    this.say(before);
    try {
      const answer = await fetch(`/control/${method}`, {method: "POST", body: JSON.stringify(request),
        headers: {"Content-Type": "application/json", "Authorization": `Bearer ${this.token.value.trim()}`}});
      if (answer.ok) return await answer.json();
      const why = answer.status === 401 ? "this is not the token in the file http.control_token_file of the daemon" : (await answer.json()).error;
      this.say(`Refused: ${why}.`, true);
    } catch (error) {
      this.say("The daemon did not answer. The strip at the top says whether a run is being recorded.", true);
    }
    return null;
  }
}
