// The list of runs, and the recent messages of the daemon.
"use strict";

function link(href, text) {
  const a = document.createElement("a");
  a.href = href;
  a.textContent = text;
  return a;
}

const run_keys = ["run", "state", "start_utc", "seconds", "prompts", "bytes", "ledger_closed", "report", "reason"];

/** `scale`: of the sizes. */
function run_row(run, scale) {
  const row = document.createElement("tr");
  const known = (value, format) => (value === null || value === undefined ? "–" : formats[format](value));
  row.classList.toggle("unwell", ["interrupted", "failed", "unreadable"].includes(run.state) || run.ledger_closed === false || run.verdict?.state === "bad");
  const judged = run.state === "complete" && run.verdict && run.verdict.state !== "good";
  const state = judged ? `${run.state}, ${run.verdict.state}` : run.state;
  const reason = judged ? run.verdict.reasons.map((one) => one.message).join("; ") : run.reason;
  const report = run.report ? link(`/reports/${encodeURIComponent(run.run)}/report.html`, "report") : "–";
  if (run.report) report.setAttribute("aria-label", `Report of run ${run.run}`);
  const bytes = cell("td", typeof run.bytes === "number" ? in_column(run.bytes, scale) : "–");
  const began = cell("td", known(run.start_utc, "utc"), true);
  if (run.start_utc) began.title = local_title(run.start_utc);
  row.append(cell("th", run.run), cell("td", known(state, "text"), true), began,
    cell("td", known(run.seconds, "length")), cell("td", known(run.prompts, "count")), bytes,
    cell("td", known(run.ledger_closed, "truth"), true), cell("td", report, true), cell("td", known(reason, "text"), true));
  return row;
}

function message_item(event) {
  const item = document.createElement("li");
  item.dataset.level = event.level;
  const time = document.createElement("time");
  time.dateTime = event.time;
  time.textContent = formats.utc(event.time);
  time.title = local_title(event.time);
  const level = document.createElement("strong");
  level.textContent = event.level;
  item.append(time, " ", level, " ", event.text);
  return item;
}

/** The latest first. */
function show_marks(marks) {
  document.getElementById("marks").hidden = marks.length === 0;
  document.getElementById("mark-list").replaceChildren(...marks.slice().reverse().map(({time, run, text}) => {
    const item = document.createElement("li");
    const when = document.createElement("time");
    when.dateTime = new Date(time * 1000).toISOString();
    when.textContent = both_clocks(time);
    const of = document.createElement("strong");
    of.textContent = run;
    item.append(when, " ", of, " ", text);
    return item;
  }));
}

let shown_runs = "";
let listed_runs = [];
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
  listed_runs = runs.runs.slice().reverse();
  show_run_rows();
  document.getElementById("runs-earlier").textContent = runs.earlier > 0 ? `${count.format(runs.earlier)} earlier runs: petctl runs.`
    : runs.runs.length === 0 ? "No runs yet." : "";
}

function show_run_rows() {
  const scale = column_scale(listed_runs.map((run) => run.bytes).filter((bytes) => typeof bytes === "number"), 1000, ["B", "kB", "MB", "GB", "TB"]);
  if (scale.name === "B") scale.decimals = 0;
  runs_sorting.set_title(5, `Size, ${scale.name}`);
  const key = run_keys[runs_sorting.column];
  const rows = listed_runs.map((run, i) => ({run, i})).sort((a, b) => (key ? runs_sorting.compare(a.run[key], b.run[key]) : 0) || a.i - b.i);
  document.querySelector("#runs tbody").replaceChildren(...rows.map(({run}) => run_row(run, scale)));
}

const runs_table = document.getElementById("runs");
const runs_sorting = new Sorting(runs_table, "runs", [...runs_table.tHead.rows[0].cells].map((th) => th.textContent), show_run_rows);

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
