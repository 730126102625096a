// The tables of the page: rates, sources, BDMs, stages.
"use strict";

const most_rows = 256;
const energy_row_keV = 48;
const most_time_rows = 60;
const time_row_s = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800];  // lengths of a row; 60 of the last are a day and more

const rates = [
  ["Prompts /s", "prompts_per_s"], ["Delayeds /s", "delayeds_per_s"], ["Net trues /s", "net_trues_per_s"],
  ["Randoms to prompts", "randoms_fraction", "percent"], ["Expected randoms /s", "expected_randoms_per_s"],
  ["NECR /s, estimate", "necr_per_s"], ["Scatter fraction", "necr_scatter_fraction", "percent"],
  ["Scatter fraction from", "necr_scatter_fraction_from", "text"],
  ["Triples /s", "triples_per_s"], ["Delayed triples /s", "delayed_triples_per_s"],
  ["Singles /s", "singles_per_s"], ["Singles of any energy /s", "singles_raw_per_s"],
  ["Singles in dropped multiples /s", "multiples_per_s"], ["Frames /s", "frames_per_s"],
  ["Datagrams /s", "datagrams_per_s"], ["Bytes /s", "bytes_per_s", "bytes"], ["Lost", "lost_fraction", "percent"],
  ["Over, s", "interval_s", "number"],
];
const source_columns = [
  ["Source", "name"], ["Health", "health", "text", true], ["State", "state", "text", true],
  ["Frames", "frames_per_s", "per_s"], ["Datagrams", "datagrams_per_s", "per_s"], ["Loss", "lost_fraction", "share"],
  ["Lost", "lost_per_s", "per_s"], ["Lost", "lost", "count"], ["Skew, µs", "skew_us", "fixed"],
  ["Last seen, s ago", "last_seen_s", "fixed"], ["Duplicate", "duplicate", "count"],
  ["Reordered", "reordered", "count"], ["Address", "address", "text", true], ["Reason", "reason", "text", true],
];
const module_columns = [
  ["BDM", "bdm"], ["Health", "health", "text", true], ["Singles", "singles_per_s", "per_s"],
  ["Mean, keV", "mean_keV", "fixed"], ["Peak, keV", "peak_keV", "fixed"],
  ["Photopeak, keV", "photopeak_keV", "fixed"], ["Mean dt, ns", "mean_dt_ns", "fixed"],
  ["Prompts per single", "prompts_per_single", "share"],
  ["Temperature, °C", "temperature_C", "fixed"], ["Dead time", "dead_time_fraction", "share"],
  ["Expected randoms", "expected_randoms_per_s", "per_s"],
];
const stage_columns = [["Stage", "name"], ["State", "state", "text", true], ["Busy", "utilisation", "share"]];

/** The formats of which all values of a column have one unit. */
const column_scales = {
  per_s: (values) => { const scale = column_scale(values, 1000, prefixes); return {...scale, unit: scale.name ? `, ${scale.name}/s` : " /s"}; },
  share: (values) => ({...column_scale(values.map((v) => v * 100)), factor: 0.01, unit: ", %"}),
  fixed: (values) => ({...column_scale(values), unit: ""}),
};

function make_rates() {
  const body = document.querySelector("#rates tbody");
  for (const [title, key, format] of rates) {
    const row = document.createElement("tr");
    row.append(cell("th", title), cell("td", field(`rates.${key}`, format || "rate"), format === "text"));
    // A sentence is the same for both times.
    if (format === "text") row.lastChild.colSpan = 2;
    else row.append(cell("td", field(`average.${key}`, format || "rate")));
    body.append(row);
  }
}

/** Shows `rows()`, arrays of texts, in the table below a chart if it is open. */
function show_figures(id, rows) {
  const body = document.getElementById(id);
  if (!body.closest("details").open) return;
  body.replaceChildren(...rows().map(([first, ...others]) => {
    const row = document.createElement("tr");
    row.append(cell("th", first), ...others.map((text) => cell("td", text)));
    return row;
  }));
}

/** Rows of a spectrum, coarser than the chart. */
function energy_rows(energy, bin) {
  const group = Math.round(energy_row_keV / bin);
  const rows = [];
  for (let i = 0; i < energy.length; i += group)
    rows.push([String(i * bin), count.format(energy.slice(i, i + group).reduce((a, b) => a + b, 0))]);
  return rows;
}

/** Rows of the lines of a chart between two places of its axis, the latest first. A row combines the values of one of
 *  at most `most_time_rows` parts of equal length, up to its time. */
function time_rows(lines, from, to, combine) {
  const step = time_row_s.find((s) => to - from <= s * most_time_rows);
  const parts = new Map();
  lines.forEach((points, i) => {
    for (const {x, y} of points) {
      if (y === null || x <= from || x > to) continue;
      const part = Math.floor((to - x) / step);
      if (!parts.has(part)) parts.set(part, lines.map(() => []));
      parts.get(part)[i].push(y);
    }
  });
  return [...parts].sort(([a], [b]) => a - b).map(([part, values]) =>
    [exact_place(to - part * step), ...values.map((some) => (some.length ? formats.rate(combine(some)) : "–"))]);
}

/** 0 is the worst. A source that is silent or has a wrong time comes before those that lose a little. */
function trouble({health, state}) {
  if (health === "failed") return 0;
  if (health !== "degraded") return 3;
  return state === undefined || state === "active" ? 2 : 1;
}

/** A click on a heading sorts a table by that column, the next one the other way round, the third as it was. What was
 *  chosen is kept while the tab of the browser is open. */
class Sorting {
  /** `changed`: called after each choice. */
  constructor(table, name, titles, changed) {
    this.table = table;
    this.name = name;
    this.changed = changed;
    this.column = null;
    this.descending = false;
    this.buttons = [...table.tHead.rows[0].cells].map((th, i) => {
      const button = document.createElement("button");
      button.className = "plain sort";
      button.addEventListener("click", () => this.choose(i));
      th.replaceChildren(button);
      return button;
    });
    titles.forEach((title, i) => this.set_title(i, title));
    const [column, descending] = stored(`sort ${name}`) || [];
    if (column in this.buttons) [this.column, this.descending] = [column, Boolean(descending)];
    this.mark();
  }

  set_title(i, title) {
    const button = this.buttons[i];
    if (button.textContent === title) return;
    button.textContent = title;
    button.setAttribute("aria-label", `Sort ${this.table.getAttribute("aria-label")} by ${title}, column ${i + 1}`);
    // Screen readers read a cell with its heading: with the unit, and without what a click does.
    button.parentElement.setAttribute("aria-label", title);
  }

  choose(i) {
    if (this.column !== i) [this.column, this.descending] = [i, false];
    else if (!this.descending) this.descending = true;
    else this.column = null;
    store(`sort ${this.name}`, [this.column, this.descending]);
    this.mark();
    this.changed();
  }

  mark() {
    this.buttons.forEach((button, i) => {
      const th = button.parentElement;
      if (i === this.column) th.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    });
  }

  /** Unknown values come last, in both directions. */
  compare(a, b) {
    if (this.column === null) return 0;
    const unknown = (value) => value === null || value === undefined || value === "";
    if (unknown(a) || unknown(b)) return Number(unknown(a)) - Number(unknown(b));
    const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", {numeric: true});
    return this.descending ? -order : order;
  }
}

/** A table with one row per item, those in trouble first, that can be filtered. */
class RankedTable {
  /** `name`: id of the table, and the field of the status document. `choose(item)`: what a click on the first cell
   *  of a row does; absent: nothing. */
  constructor(name, columns, choose) {
    this.name = name;
    this.columns = columns;
    this.choose = choose;
    this.table = document.getElementById(name);
    this.body = this.table.tBodies[0];
    this.rows = new Map();  // by index in the status document
    this.items = [];
    heading(this.table, columns.map(([title, , , text], i) => [title, text || i === 0]));
    this.sorting = new Sorting(this.table, name, columns.map(([title]) => title), () => { this.show(this.items); this.write(); });
    this.filter = document.getElementById(name + "-filter");
    this.found = document.getElementById(name + "-found");
    if (this.filter) this.filter.addEventListener("input", () => { this.show(this.items); this.write(); });
  }

  /** The values of all rows. */
  write() {
    fill(this.body, {[this.name]: this.items});
    this.columns.forEach(([title, key, format], i) => {
      const make = column_scales[format];
      if (!make) return;
      const scale = make(this.items.map((item) => item[key]).filter((value) => typeof value === "number"));
      this.sorting.set_title(i, title + scale.unit);
      for (const [index, row] of this.rows) {
        if (!row.isConnected || index >= this.items.length) continue;
        const element = row.cells[i].firstElementChild;
        const value = this.items[index][key];
        const known = typeof value === "number";
        const text = known ? in_column(value, scale) : "–";
        if (element.textContent !== text) element.textContent = text;
        element.setAttribute("value", known ? value : "");
        element.dataset.scale = scale.factor;
        element.dataset.decimals = scale.decimals;
      }
    });
  }

  /** Whether each word of the filter is in a text of the item. */
  matches(item, words) {
    if (!words.length) return true;
    const texts = this.columns.filter(([, , , text], i) => text || i === 0)
      .map(([title, key], i) => `${i === 0 ? title + " " : ""}${item[key] ?? ""}`.toLowerCase());
    return words.every((word) => texts.some((text) => text.split(/\s+/).includes(word) || (!/^\d+$/.test(word) && text.includes(word))));
  }

  make_row(index) {
    const row = document.createElement("tr");
    this.columns.forEach(([, key, format, text], i) => {
      const value = field(`${this.name}.${index}.${key}`, column_scales[format] ? "number" : format);
      if (column_scales[format]) value.dataset.scale = 1;  // write() shows it
      if (i > 0 || !this.choose) return row.append(cell(i === 0 ? "th" : "td", value, text));
      const button = document.createElement("button");
      button.className = "plain";
      button.title = "Show its spectrum";
      button.append(value);
      button.addEventListener("click", () => this.choose(this.items[index]));
      row.append(cell("th", button));
    });
    return row;
  }

  /** Rows are reused and move only if the trouble changes, so that text stays where it is being read. */
  show(items) {
    this.items = items;
    const words = this.filter ? this.filter.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    const matching = items.map((item, index) => ({item, index, rank: trouble(item)})).filter(({item}) => this.matches(item, words));
    const by_trouble = (a, b) => a.rank - b.rank || a.index - b.index;
    const key = this.columns[this.sorting.column]?.[1];
    const shown = matching.sort((a, b) => (key ? this.sorting.compare(a.item[key], b.item[key]) : 0) || by_trouble(a, b)).slice(0, most_rows);
    const rows = shown.map(({item, index}) => {
      if (!this.rows.has(index)) this.rows.set(index, this.make_row(index));
      const row = this.rows.get(index);
      row.classList.toggle("unwell", item.health === "degraded");
      row.classList.toggle("failed", item.health === "failed");
      return row;
    });
    const moved = rows.length !== this.body.rows.length || rows.some((row, i) => this.body.rows[i] !== row);
    if (moved) {
      const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
      this.body.replaceChildren(...rows);
      if (focused && focused.isConnected) focused.focus({preventScroll: true});
    }
    if (!this.found) return;
    const text = items.length === 0 ? "none yet" : rows.length < items.length ? `${rows.length} of ${items.length} shown` : "";
    if (this.found.textContent !== text) this.found.textContent = text;
  }
}
