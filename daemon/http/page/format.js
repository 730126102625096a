// How the page writes values. An element with data-field="a.b" shows that value of the status document; data-format
// says how, `value` holds it unrounded.
"use strict";

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

const prefixes = ["", "k", "M", "G", "T"];
const figures = new Intl.NumberFormat("en", {maximumSignificantDigits: 4});
const rough = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});

/** 12,345 is "12.3 k". */
function scaled(value, step, units) {
  let unit = 0;
  while (Math.abs(value) >= step && unit < units.length - 1) {
    value /= step;
    ++unit;
  }
  return `${rough.format(value)} ${units[unit]}`.trimEnd();
}

function compact(value) {
  return scaled(value, 1000, prefixes);
}

const count = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const percent = new Intl.NumberFormat("en", {style: "percent", maximumSignificantDigits: 3});

function duration(exact) {
  const seconds = Math.round(exact);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => seconds >= size);
  if (first < 0 || first === 3) return `${count.format(seconds)} s`;
  const [size, unit] = parts[first];
  const [lower, lowerUnit] = parts[first + 1];
  return `${count.format(Math.floor(seconds / size))} ${unit} ${Math.floor(seconds % size / lower)} ${lowerUnit}`;
}

function about(seconds) {
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([s]) => seconds >= s) || [1, "s"];
  return `${rough.format(seconds / size)} ${unit}`;
}

/** "04:05:06" in UTC, as in the log and in the files of a run. */
function utc_clock(seconds) {
  return new Date(seconds * 1000).toISOString().slice(11, 19);
}

const local_parts = {hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23"};
const local_clock_format = new Intl.DateTimeFormat("en-GB", local_parts);
const local_format = new Intl.DateTimeFormat("en-GB", {...local_parts, year: "numeric", month: "2-digit", day: "2-digit"});
const zone_format = new Intl.DateTimeFormat("en-GB", {timeZoneName: "short"});

/** "05:05:06" where the browser is. */
function local_clock(seconds) {
  return local_clock_format.format(seconds * 1000);
}

/** Whether the clock of the browser shows UTC. */
function local_is_utc(seconds) {
  return new Date(seconds * 1000).getTimezoneOffset() === 0;
}

/** "CET", or "GMT+1" where the zone has no short name. */
function local_zone(seconds) {
  return zone_format.formatToParts(seconds * 1000).find(({type}) => type === "timeZoneName").value;
}

/** "05:05:06 CET, 04:05:06 UTC", or UTC alone where that is the same. */
function both_clocks(seconds) {
  const utc = `${utc_clock(seconds)} UTC`;
  return local_is_utc(seconds) ? utc : `${local_clock(seconds)} ${local_zone(seconds)}, ${utc}`;
}

/** The local time of a UTC text, for people who point at it; "" where it is the same. */
function local_title(text) {
  const seconds = Date.parse(text) / 1000;
  if (!Number.isFinite(seconds) || local_is_utc(seconds)) return "";
  const part = Object.fromEntries(local_format.formatToParts(seconds * 1000).map(({type, value}) => [type, value]));
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second} ${local_zone(seconds)}`;
}

/** "1:02:03", so that the lengths of a column stand below each other. */
function clock_length(seconds) {
  const two = (n) => String(n).padStart(2, "0");
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}

/** How all values of a column are written: with one unit, and as many decimals as the largest needs for three digits.
 *  `factor`: the unit; `name`: its prefix. `step`, `units`: as for scaled(); absent: the unit stays. */
function column_scale(values, step, units) {
  const most = Math.max(0, ...values.filter((v) => Number.isFinite(v)).map(Math.abs));
  let unit = 0;
  let factor = 1;
  while (units && most >= factor * step && unit < units.length - 1) {
    factor *= step;
    ++unit;
  }
  const size = most / factor;
  const decimals = size > 0 ? Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size) + 1e-9))) : 0;
  return {factor, name: units ? units[unit] : "", decimals};
}

const fixed_formats = Array.from({length: 7}, (_, decimals) =>
  new Intl.NumberFormat("en", {minimumFractionDigits: decimals, maximumFractionDigits: decimals}));

/** A value of such a column. */
function in_column(value, {factor, decimals}) {
  return fixed_formats[decimals].format(value / factor);
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
  length: clock_length,
  about,
  utc: (v) => v.replace("T", " ").replace(/(\.\d+)?Z$/, " UTC"),
  commands: (v) => v,
  truth: (v) => (v ? "yes" : "no"),
};

function find(document_, path) {
  return path.split(".").reduce((value, key) => (value === null || value === undefined ? null : value[key]), document_);
}

/** Marks the commands in `text`. Text that does not change stays, so that it can be selected. */
function show_commands(element, text) {
  if (element.dataset.text === text) return;
  element.dataset.text = text;
  element.replaceChildren(...text.split("`").map((part, i) => {
    if (i % 2 === 0) return part;
    const command = document.createElement("code");
    command.textContent = part;
    return command;
  }));
}

/** Unknown values show as a dash. */
function show(element, value) {
  const known = value !== null && value !== undefined && value !== "";
  const text = known ? formats[element.dataset.format || "text"](value) : "–";
  if (element.dataset.format === "commands") show_commands(element, text);
  else if (element.textContent !== text) element.textContent = text;
  if (element.dataset.format === "utc" && known) element.title = local_title(value);
  element.setAttribute("value", known ? value : "");
}

function fill(root, document_) {
  for (const element of root.querySelectorAll("[data-field]")) {
    if (!element.dataset.field.startsWith("page.") && !element.dataset.scale) show(element, find(document_, element.dataset.field));
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

