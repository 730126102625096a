// How the page writes values. An element with data-field="a.b" shows that value of the status document; data-format
// says how, `value` holds it unrounded.
"use strict";

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

const prefixes = ["", "k", "M", "G", "T"];
const figures = new Intl.NumberFormat("en", {maximumSignificantDigits: 4});

/** 12,345 is "12.35 k". */
function scaled(value, step, units) {
  let unit = 0;
  while (Math.abs(value) >= step && unit < units.length - 1) {
    value /= step;
    ++unit;
  }
  return `${figures.format(value)} ${units[unit]}`.trimEnd();
}

function compact(value) {
  return Math.abs(value) < 10000 ? figures.format(value) : scaled(value, 1000, prefixes);
}

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

/** "04:05:06". All times of the page are UTC, as in the log and in the files of a run. */
function utc_clock(seconds) {
  return new Date(seconds * 1000).toISOString().slice(11, 19);
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

