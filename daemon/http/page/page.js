// The live page: requests the documents of the daemon every second and shows them.
"use strict";

const interval_ms = 1000;
const patience_ms = 5000;
const stale_ms = 10000;  // after this long without a new status the daemon counts as stuck
const day_interval_ms = 30000;
const records_interval_ms = 5000;

let announced = null;

/** Screen readers announce it only when `kind` changes, since the numbers in a message change every second. */
function announce(kind, text) {
  if (kind !== announced) {
    document.getElementById("announcement").textContent = text;
    if (announced && notifying()) new Notification(document.title, {body: text, tag: "petacqd"});
  }
  announced = kind;
}

const notify = document.getElementById("notify");
const notifying = () => notify.getAttribute("aria-pressed") === "true";

// Browsers ask the user, and allow it only in a secure context.
if (!window.isSecureContext || !("Notification" in window)) {
  notify.disabled = true;
  notify.title = "Browsers show notifications only for pages of https:// and http://localhost";
}
notify.addEventListener("click", async () => {
  const wanted = !notifying() && await Notification.requestPermission() === "granted";
  notify.setAttribute("aria-pressed", String(wanted));
});

const symbols = {recording: "●", not_recording: "■", waiting_for_data: "○", interrupted: "▲", failed: "✕", no_data: "✕", unknown: "?"};

/** The strip and the title of the page say whether data are being recorded. `state`: of symbols. */
function show_strip(state, word, text) {
  const strip = document.getElementById("recording");
  strip.dataset.state = state;
  document.getElementById("recording-symbol").textContent = symbols[state] || symbols.unknown;
  for (const [name, value] of [["word", word], ["text", text]]) {
    if (value !== undefined) show(strip.querySelector(`[data-field="recording.${name}"]`), value);
  }
}

/** What the other host of a pair does. */
function peer_words({state, run, recording, failure, not_heard_s}) {
  if (state === "unreachable") return `not heard for ${duration(not_heard_s)}: ${failure}`;
  if (run === null) return "has no run";
  if (state === "recording") return `records run ${run}`;
  if (state === "other_run") return `has another run, ${run}`;
  return `has run ${run}, and records nothing (${recording.replaceAll("_", " ")})`;
}

function show_peer(peer) {
  document.getElementById("recording-peer").hidden = !peer;
  if (peer) document.getElementById("peer-words").textContent = peer_words(peer);
}

function show_recording(status) {
  const recording = status.recording;
  if (!recording) return;
  document.getElementById("recording").dataset.health = status.health.state;
  document.getElementById("health").dataset.recording = recording.state;
  show_strip(recording.state);
  document.getElementById("recording-note").hidden = !recording.note;
  show_peer(status.peer);
  const run = recording.run_id ? ` ${recording.run_id}` : "";
  const health = status.health.state === "ok" ? "" : ` – ${status.health.state.toUpperCase()}`;
  document.title = `${symbols[recording.state] || symbols.unknown} ${recording.word}${run}${health} – petacqd ${status.scanner}`;
}

/** What follows from a reason stands right below it. The reasons begin with causes. */
function by_cause(reasons) {
  const first = {};  // by code: that of the first cause
  const groups = {};
  for (const {code, follows_from: cause} of reasons) first[code] = first[cause] || code;
  for (const reason of reasons) (groups[first[reason.code]] ||= []).push(reason);
  return Object.values(groups).flat();
}

function show_health(health) {
  document.getElementById("health").dataset.state = health.state;
  const list = document.getElementById("reasons");
  const reasons = by_cause(health.reasons);
  while (list.children.length > reasons.length) list.lastElementChild.remove();
  reasons.forEach((reason, i) => {
    const item = list.children[i] || list.appendChild(document.createElement("li"));
    show_commands(item, reason.message);
    item.classList.toggle("follows", Boolean(reason.follows_from));
  });
}

/** The BDMs whose times are off, and what puts them right. */
function show_synchrony(synchrony) {
  const off = ((synchrony && synchrony.modules) || []).filter((module) => module.state === "out_of_step");
  const line = document.getElementById("out-of-step");
  line.hidden = off.length === 0;
  if (off.length === 0) return;
  const late = off.map(({bdm, source, offset_ns: ns}) =>
    `BDM ${bdm}${source === null ? "" : ` (source ${source})`} ${Math.abs(ns).toFixed(1)} ns ${ns < 0 ? "early" : "late"}`);
  const ticks = off.map(({bdm, add_ticks: add}) => `--bdm-ticks ${bdm}:${add}`);
  show_commands(line, `Out of step: ${late.join(", ")}. To apply to the calibration: \`petcal apply ${ticks.join(" ")}\``);
}

/** A change of recording or health. */
function announce_status({recording, health}) {
  const words = recording ? `${recording.word} ${recording.run_id || ""}`.trim() + ". " : "";
  announce([words, health.state, ...health.reasons.map((reason) => reason.code)].join(),
    words + [`Health: ${health.state}`, ...health.reasons.map((reason) => reason.message)].join(". "));
}

/** {name, colour, from, to}: the windows of energy of pairs and of gammas, as far as there are any. */
function windows_of({lower_keV, upper_keV, gammas_lower_keV, gammas_upper_keV}) {
  return [{name: "pairs", colour: "prompts", from: lower_keV, to: upper_keV},
    {name: "gammas", colour: "trues", from: gammas_lower_keV, to: gammas_upper_keV}].filter(({from, to}) => from !== null && to !== null);
}

function show_status(status) {
  const named = (status.sources || []).map((s) => ({...s, name: s.id === null ? s.address : s.id}));
  sources_table.show(named);
  modules_table.show(status.modules || []);
  stages_table.show(status.stages || []);
  fill(document, {...status, sources: named});
  for (const table of [sources_table, modules_table, stages_table]) table.write();
  energy_windows = windows_of(status.common);
  for (const element of document.querySelectorAll(".of-triples")) element.hidden = status.rates.triples_per_s === null;
  document.getElementById("no-run").hidden = status.run !== null;
  show_recording(status);
  show_health(status.health);
  show_synchrony(status.synchrony);
  announce_status(status);
  control.show(status);
  const time = document.getElementById("data-time");
  time.dateTime = last_data.toISOString();
  time.textContent = formats.utc(time.dateTime);
  time.title = local_title(time.dateTime);
}

/** Shows the spectra of a BDM, and a DU of it; null: the spectrum of all. */
function choose_module(module, du) {
  map.mark(module);
  if (module !== null) unit.show_module(module, du);
  if (singles) show_singles(singles);
}

/** The map of another scanner begins anew. */
function show_scanner(scanner) {
  map.set_scanner(scanner);
  const units = map.layout.units();
  unit.set_units(units, map.layout);
  document.getElementById("spectrum-of").replaceChildren(new Option("all BDMs", "all"), ...units.map(([bdm]) => new Option(`BDM ${bdm}`, bdm)));
  if (!units.some(([bdm]) => bdm === map.chosen)) map.mark(null);
}

function show_singles(document_) {
  const select = document.getElementById("spectrum-of");
  const now = document_.since_start;
  if (!now) return;
  select.value = map.chosen ?? "all";
  const counts = document_.interval || now;
  const energy = select.value === "all" ? counts.energy : counts.energy_per_module[select.value];
  charts.showSpectrum(energy, document_.energy_bin_keV, energy_windows);
  show_figures("spectrum-table", () => energy_rows(energy, document_.energy_bin_keV));
  const time = document.querySelector("input[name=map-time]:checked").value;
  map.show((document_[time] || now).per_crystal);
  show(document.querySelector("[data-field='page.silent_crystals']"), now.per_crystal.filter((n) => n === 0).length);
  show(document.querySelector("[data-field='page.crystals']"), now.per_crystal.length);
}

async function get(path) {
  const answer = await fetch(path, {cache: "no-store", signal: AbortSignal.timeout(patience_ms)});
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

let last_data = null;  // when the status last changed
let last_uptime = null;
let moved = 0;
let singles = null;
let energy_windows = [];
const past = new History();
let past_known = false;
let control_known = false;
let scanner_known = false;
let next_day = 0;
let next_records = 0;
let last_runs = "";

/** `why`: the reason why there is none; empty otherwise. */
function show_connection(why) {
  const good = !why;
  const line = document.getElementById("connection");
  document.body.classList.toggle("stale", !good);
  document.documentElement.dataset.connection = good ? "live" : "lost";
  line.hidden = good;
  if (good) return;
  const text = last_data ? `No data since ${both_clocks(last_data / 1000)}: ${why}.` : `No data: ${why}.`;
  if (line.textContent !== text) line.textContent = text;
  show_health({state: "lost", reasons: []});
  delete document.getElementById("recording").dataset.health;
  show(document.querySelector("[data-field='health.state']"), "unknown");
  announce("lost", text);
  for (const id of ["recording-note", "recording-peer"]) document.getElementById(id).hidden = true;
  show_strip("unknown", "UNKNOWN", `${text} Whether a run is being recorded is not known.`);
  document.title = "? UNKNOWN – petacqd";
}

/** Why there is no data; empty when there is. */
async function update() {
  if (!control_known) {
    const {allowed} = await get("/control");
    for (const id of ["control", "to-control"]) document.getElementById(id).hidden = !allowed;
    control_known = true;
  }
  if (!scanner_known) {
    show_scanner(await get("/scanner"));
    scanner_known = true;
  }
  const status = await get("/status");
  if (!past_known) {
    past.fill(await get("/history"));
    past_known = true;
  }
  if (status.uptime_s !== last_uptime) {
    last_uptime = status.uptime_s;
    last_data = new Date();
    moved = performance.now();
  }
  if (performance.now() - moved > stale_ms) return "the daemon answers, but its figures stand still";
  if (!past.add(status)) past_known = false;
  show_status(status);
  if (document.hidden) return "";
  await update_slowly(status);
  charts.showHistory(past);
  singles = await get("/singles");
  show_singles(singles);
  await unit.update();
  return "";
}

/** What changes slowly: the day, the runs, the log. */
async function update_slowly({run, interrupted}) {
  const now = performance.now();
  const runs = JSON.stringify([run && run.id, run && run.marks && run.marks.count, interrupted]);
  if (runs !== last_runs) next_day = next_records = 0;
  last_runs = runs;
  if (now > next_day) {
    day.fill(await get("/history/day"));
    show_marks(day.document.marks || []);
    next_day = now + day_interval_ms;
  }
  if (now < next_records) return;
  next_records = now + records_interval_ms;
  show_records();
}

async function run() {
  const began = performance.now();
  try {
    show_connection(await update());
  } catch (error) {
    past_known = control_known = scanner_known = false;
    next_day = next_records = 0;
    show_connection("the daemon does not answer");
  }
  document.documentElement.dataset.updates = Number(document.documentElement.dataset.updates || 0) + 1;
  setTimeout(run, Math.max(100, interval_ms - (performance.now() - began)));
}

const day = new Day();
const view = new View(() => charts.showHistory(past));
const charts = new Charts();
const map = new CrystalMap(choose_module);
const unit = new UnitView(choose_module);
const control = new Control();
const sources_table = new RankedTable("sources", source_columns);
const modules_table = new RankedTable("modules", module_columns, (module) => choose_module(module.bdm));
const stages_table = new RankedTable("stages", stage_columns);
make_rates();
for (const [name, paper] of [["beforeprint", true], ["afterprint", false]]) {
  window.addEventListener(name, () => {
    document.documentElement.classList.toggle("paper", paper);
    charts.fit();
    window.dispatchEvent(new Event("resize"));
  });
}
document.getElementById("spectrum-of").addEventListener("change", (event) => choose_module(event.target.value === "all" ? null : Number(event.target.value)));
for (const input of document.querySelectorAll("input[name=map-time]")) input.addEventListener("change", () => singles && show_singles(singles));
for (const details of document.querySelectorAll("details")) {
  details.addEventListener("toggle", () => {
    charts.showHistory(past);
    if (singles) show_singles(singles);
    unit.draw();
  });
}
run();
