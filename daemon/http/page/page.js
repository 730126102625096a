// The live page: requests the documents of the daemon every second and shows their values. An element with
// data-field="a.b" shows that value of the status document; data-format says how, `value` holds it unrounded.
"use strict";

const interval_ms = 1000;
const patience_ms = 5000;
const stale_ms = 10000;  // after this long without a new status the daemon counts as stuck
const most_sources = 256;

const count = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const rough = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});
const percent = new Intl.NumberFormat("en", {style: "percent", maximumSignificantDigits: 3});

function duration(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first < 0 || first === 3) return `${count.format(Math.floor(seconds))} s`;
  const [size, unit] = parts[first];
  const [lower, lowerUnit] = parts[first + 1];
  return `${count.format(Math.floor(seconds / size))} ${unit} ${Math.floor(seconds % size / lower)} ${lowerUnit}`;
}

function about(seconds) {
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([s]) => seconds >= s) || [1, "s"];
  return `${rough.format(seconds / size)} ${unit}`;
}

const formats = {
  text: String,
  count: (v) => count.format(v),
  compact,
  rate: (v) => (Math.abs(v) < 100 ? figures.format(v) : count.format(v)),
  number: (v) => figures.format(v),
  percent: (v) => percent.format(v),
  bytes: (v) => scaled(v, 1000, ["B", "kB", "MB", "GB", "TB", "PB"]),
  ms: (v) => `${figures.format(v)} ms`,
  mm: (v) => `${figures.format(v)} mm`,
  activity: (v) => `${figures.format(v)} MBq`,
  keys: (v) => Object.entries(v).map(([name, text]) => `${name}: ${text}`).join(", "),
  duration,
  about,
  utc: (v) => v.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"),
  truth: (v) => (v ? "yes" : "no"),
};

function find(document_, path) {
  return path.split(".").reduce((value, key) => (value === null || value === undefined ? null : value[key]), document_);
}

/** Unknown values show as a dash. */
function show(element, value) {
  const known = value !== null && value !== undefined && value !== "";
  const text = known ? formats[element.dataset.format || "text"](value) : "–";
  if (element.textContent !== text) element.textContent = text;
  element.setAttribute("value", known ? value : "");
}

function fill(root, document_) {
  for (const element of root.querySelectorAll("[data-field]")) {
    if (!element.dataset.field.startsWith("page.")) show(element, find(document_, element.dataset.field));
  }
}

function field(path, format) {
  const element = document.createElement("data");
  element.dataset.field = path;
  if (format) element.dataset.format = format;
  return element;
}

function cell(tag, content, text) {
  const element = document.createElement(tag);
  if (tag === "th") element.scope = "row";
  if (text) element.classList.add("text");
  element.append(content);
  return element;
}

function heading(table, titles) {
  const row = document.createElement("tr");
  for (const [title, text] of titles) {
    const th = cell("th", title, text);
    th.scope = "col";
    row.append(th);
  }
  table.tHead.replaceChildren(row);
}

const rates = [
  ["Prompts /s", "prompts_per_s"], ["Delayeds /s", "delayeds_per_s"], ["Net trues /s", "net_trues_per_s"],
  ["Randoms to prompts", "randoms_fraction", "percent"], ["Expected randoms /s", "expected_randoms_per_s"],
  ["NECR /s, estimate", "necr_per_s"], ["Assumed scatter fraction", "necr_scatter_fraction", "percent"],
  ["Singles /s", "singles_per_s"], ["Singles of any energy /s", "singles_raw_per_s"],
  ["Singles in dropped multiples /s", "multiples_per_s"], ["Frames /s", "frames_per_s"],
  ["Datagrams /s", "datagrams_per_s"], ["Bytes /s", "bytes_per_s", "bytes"], ["Lost", "lost_fraction", "percent"],
  ["Over, s", "interval_s", "number"],
];
const source_columns = [
  ["Source", "name"], ["Health", "health", "text", true], ["State", "state", "text", true],
  ["Frames /s", "frames_per_s", "rate"], ["Datagrams /s", "datagrams_per_s", "rate"], ["Loss", "lost_fraction", "percent"],
  ["Lost /s", "lost_per_s", "rate"], ["Lost", "lost", "count"], ["Skew, µs", "skew_us", "number"],
  ["Last seen, s ago", "last_seen_s", "number"], ["Duplicate", "duplicate", "count"],
  ["Reordered", "reordered", "count"], ["Address", "address", "text", true], ["Reason", "reason", "text", true],
];
const module_columns = [
  ["Module", "bdm"], ["Health", "health", "text", true], ["Singles /s", "singles_per_s", "rate"],
  ["Mean, keV", "mean_keV", "number"], ["Peak, keV", "peak_keV", "number"],
  ["Photopeak, keV", "photopeak_keV", "number"], ["Mean dt, ns", "mean_dt_ns", "number"],
  ["Prompts per single", "prompts_per_single", "percent"],
  ["Temperature, °C", "temperature_C", "number"], ["Dead time", "dead_time_fraction", "percent"],
  ["Expected randoms /s", "expected_randoms_per_s", "rate"],
];
const stage_columns = [["Stage", "name"], ["State", "state", "text", true], ["Busy", "utilisation", "percent"]];

function make_rates() {
  const body = document.querySelector("#rates tbody");
  for (const [title, key, format] of rates) {
    const row = document.createElement("tr");
    row.append(cell("th", title), cell("td", field(`rates.${key}`, format || "rate")),
      cell("td", field(`average.${key}`, format || "rate")));
    body.append(row);
  }
}

/** One row per item. Rows are reused, so that text does not move while it is being read. */
function table(id, items, columns, name) {
  const body = document.getElementById(id).tBodies[0];
  while (body.rows.length > items.length) body.deleteRow(-1);
  while (body.rows.length < items.length) {
    const row = document.createElement("tr");
    const index = body.rows.length;
    columns.forEach(([, key, format, text], i) => {
      row.append(cell(i === 0 ? "th" : "td", field(`${name}.${index}.${key}`, format), text));
    });
    body.append(row);
  }
  items.forEach((item, i) => body.rows[i].classList.toggle("unwell", item.health !== undefined && item.health !== "ok"));
}

let announced = null;

/** Screen readers announce it only when `kind` changes, since the numbers in a message change every second. */
function announce(kind, text) {
  if (kind !== announced) document.getElementById("announcement").textContent = text;
  announced = kind;
}

function show_health(health) {
  document.getElementById("health").dataset.state = health.state;
  const messages = health.reasons.map((reason) => reason.message);
  document.getElementById("reasons").replaceChildren(...messages.map((message) => {
    const item = document.createElement("li");
    item.textContent = message;
    return item;
  }));
  announce([health.state, ...health.reasons.map((reason) => reason.code)].join(), [`Health: ${health.state}`, ...messages].join(". "));
}

function show_status(status) {
  const named = (status.sources || []).slice(0, most_sources).map((s) => ({...s, name: s.id === null ? s.address : s.id}));
  const shown = {...status, sources: named};
  table("sources", named, source_columns, "sources");
  table("modules", status.modules || [], module_columns, "modules");
  table("stages", status.stages || [], stage_columns, "stages");
  const more = document.getElementById("sources-more");
  more.hidden = (status.sources || []).length <= most_sources;
  more.textContent = `The first ${most_sources} of ${(status.sources || []).length}.`;
  fill(document, shown);
  show_health(status.health);
  document.title = `${status.health.state === "ok" ? "" : status.health.state.toUpperCase() + " – "}petacqd ${status.scanner}`;
  const time = document.getElementById("data-time");
  time.dateTime = last_data.toISOString();
  time.textContent = last_data.toLocaleTimeString("en-GB");
}

function show_singles(document_) {
  const select = document.getElementById("spectrum-of");
  const now = document_.since_start;
  if (!now) return;
  for (let i = select.options.length - 1; i < now.energy_per_module.length; ++i) select.add(new Option(`module ${i}`, i));
  const counts = document_.interval || now;
  const energy = select.value === "all" ? counts.energy : counts.energy_per_module[select.value];
  charts.showSpectrum(energy, document_.energy_bin_keV);
  show_spectrum_table(energy, document_.energy_bin_keV);
  const time = document.querySelector("input[name=map-time]:checked").value;
  map.show(document_, (document_[time] || now).per_crystal);
  show(document.querySelector("[data-field='page.silent_crystals']"), now.per_crystal.filter((n) => n === 0).length);
  show(document.querySelector("[data-field='page.crystals']"), now.per_crystal.length);
}

/** Rows of 48 keV, coarser than the chart. */
function show_spectrum_table(energy, bin) {
  const body = document.getElementById("spectrum-table");
  if (!body.closest("details").open) return;
  const group = 12;
  const rows = [];
  for (let i = 0; i < energy.length; i += group) {
    const row = document.createElement("tr");
    row.append(cell("th", String(i * bin)), cell("td", count.format(energy.slice(i, i + group).reduce((a, b) => a + b, 0))));
    rows.push(row);
  }
  body.replaceChildren(...rows);
}

/** Shows the selected detector unit, if the daemon counts spectra. */
async function update_unit() {
  const bdm = document.getElementById("unit-bdm");
  const du = document.getElementById("unit-du");
  const unit = await get(`/spectra/${bdm.value || 0}/${du.value || 0}`);
  if (unit === null) return;
  document.getElementById("unit").hidden = false;
  for (const [select, n] of [[bdm, unit.modules], [du, unit.units]]) {
    for (let i = select.options.length; i < n; ++i) select.add(new Option(i, i));
  }
  draw_unit(unit);
  const frames = unit.flood.reduce((a, b) => a + b, 0);
  document.getElementById("unit-reading").textContent =
    `Module ${unit.bdm}, unit ${unit.du}: ${count.format(frames)} frames of the run in progress, x to the right, y upwards; ` +
    `energies from 0 to ${count.format(unit.energy_bin_keV * unit.energy_per_crystal[0].length)} keV.`;
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
const past = new History();
let past_known = false;

/** `why`: the reason why there is none; empty otherwise. */
function show_connection(why) {
  const good = !why;
  const line = document.getElementById("connection");
  document.body.classList.toggle("stale", !good);
  document.documentElement.dataset.connection = good ? "live" : "lost";
  line.hidden = good;
  if (good) return;
  const text = last_data ? `No data since ${last_data.toLocaleTimeString("en-GB")}: ${why}.` : `No data: ${why}.`;
  if (line.textContent !== text) line.textContent = text;
  document.getElementById("health").dataset.state = "lost";
  announce("lost", text);
  document.title = "NO DATA – petacqd";
}

/** Why there is no data; empty when there is. */
async function update() {
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
  charts.showHistory(past);
  if (document.hidden) return "";
  singles = await get("/singles");
  show_singles(singles);
  await update_unit();
  return "";
}

async function run() {
  const began = performance.now();
  try {
    show_connection(await update());
  } catch (error) {
    past_known = false;
    show_connection("the daemon does not answer");
  }
  document.documentElement.dataset.updates = Number(document.documentElement.dataset.updates || 0) + 1;
  setTimeout(run, Math.max(100, interval_ms - (performance.now() - began)));
}

const charts = new Charts();
const map = new CrystalMap();
make_rates();
heading(document.getElementById("sources"), source_columns.map(([title, , , text], i) => [title, text || i === 0]));
heading(document.getElementById("modules"), module_columns.map(([title, , , text], i) => [title, text || i === 0]));
heading(document.getElementById("stages"), stage_columns.map(([title, , , text], i) => [title, text || i === 0]));
for (const input of document.querySelectorAll("#spectrum-of, input[name=map-time]"))
  input.addEventListener("change", () => singles && show_singles(singles));
document.querySelector("details").addEventListener("toggle", () => singles && show_singles(singles));
run();
