// The list of runs, and the recent messages of the daemon.
"use strict";

function link(href, text) {
  const a = document.createElement("a");
  a.href = href;
  a.textContent = text;
  return a;
}

function run_row(run) {
  const row = document.createElement("tr");
  const known = (value, format) => (value === null || value === undefined ? "–" : formats[format](value));
  row.classList.toggle("unwell", ["interrupted", "failed", "unreadable"].includes(run.state) || run.ledger_closed === false || run.verdict?.state === "bad");
  const judged = run.state === "complete" && run.verdict && run.verdict.state !== "good";
  const state = judged ? `${run.state}, ${run.verdict.state}` : run.state;
  const reason = judged ? run.verdict.reasons.map((one) => one.message).join("; ") : run.reason;
  const report = run.report ? link(`/reports/${encodeURIComponent(run.run)}/report.html`, "report") : "–";
  if (run.report) report.setAttribute("aria-label", `Report of run ${run.run}`);
  row.append(cell("th", run.run), cell("td", known(state, "text"), true), cell("td", known(run.start_utc, "utc"), true),
    cell("td", known(run.seconds, "duration")), cell("td", known(run.prompts, "count")), cell("td", known(run.bytes, "bytes")),
    cell("td", known(run.ledger_closed, "truth"), true), cell("td", report, true), cell("td", known(reason, "text"), true));
  return row;
}

function message_item(event) {
  const item = document.createElement("li");
  item.dataset.level = event.level;
  const time = document.createElement("time");
  time.dateTime = event.time;
  time.textContent = formats.utc(event.time);
  const level = document.createElement("strong");
  level.textContent = event.level;
  item.append(time, " ", level, " ", event.text);
  return item;
}

let shown_runs = "";
let shown_messages = "";

/** Rebuilds a list only if it has changed, so that text that is being read or selected stays. */
function show_messages(log) {
  const messages = log.events.slice().reverse();
  const text = JSON.stringify(messages);
  if (text === shown_messages) return;
  shown_messages = text;
  document.getElementById("messages").replaceChildren(...messages.map(message_item));
}

function show_runs(runs) {
  const text = JSON.stringify(runs);
  if (text === shown_runs) return;
  shown_runs = text;
  document.querySelector("#runs tbody").replaceChildren(...runs.runs.slice().reverse().map(run_row));
  document.getElementById("runs-earlier").textContent = runs.earlier > 0 ? `${count.format(runs.earlier)} earlier runs: petctl runs.`
    : runs.runs.length === 0 ? "No runs yet." : "";
}

/** Never fails. A disk that hangs lists no runs, and must not stop the rest of the page. */
async function show_records() {
  try {
    show_messages(await get("/log"));
    show_runs(await get("/runs"));
  } catch (error) {
    shown_runs = "";
    document.getElementById("runs-earlier").textContent = "The list is not up to date: the daemon cannot read the runs, or does not answer.";
  }
}
