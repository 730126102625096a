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
    document.getElementById("stop").addEventListener("click", () => this.ask());
    document.getElementById("stop-no").addEventListener("click", () => this.question.close());
    document.getElementById("stop-yes").addEventListener("click", () => {
      this.question.close();
      this.send("stop", {}, `Stopping run ${this.run} …`, `Run ${this.run} is stopped and on disk.`);
    });
  }

  /** Called with each status. */
  show(status) {
    const run = status.run ? status.run.id : null;
    // A question about a run that has ended meanwhile must not stop the next one.
    if (this.question.open && run !== this.run) this.question.close();
    this.run = run;
    document.getElementById("start").disabled = run !== null;
    document.getElementById("stop").disabled = run === null;
    document.getElementById("stop").textContent = run === null ? "Stop" : `Stop run ${run} …`;
  }

  start() {
    const value = (id) => document.getElementById(id).value.trim();
    const request = {run: value("start-run")};
    if (value("start-note")) request.note = value("start-note");
    if (value("start-minutes")) request.duration_s = 60 * Number(value("start-minutes"));
    this.send("start", request, `Starting run ${request.run} …`, `Run ${request.run} is being recorded.`)
      .then((done) => { if (done) document.getElementById("start-run").value = ""; });
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

  /** Whether the daemon did it. */
  async send(method, request, before, after) {
    if (!this.has_token()) return false;
    this.say(before);
    try {
      const answer = await fetch(`/control/${method}`, {method: "POST", body: JSON.stringify(request),
        headers: {"Content-Type": "application/json", "Authorization": `Bearer ${this.token.value.trim()}`}});
      if (answer.ok) {
        this.say(after);
        return true;
      }
      const why = answer.status === 401 ? "this is not the token in the file http.control_token_file of the daemon" : (await answer.json()).error;
      this.say(`Refused: ${why}.`, true);
    } catch (error) {
      this.say("The daemon did not answer. The strip at the top says whether a run is being recorded.", true);
    }
    return false;
  }
}
