// The rates over time: every second of the last minutes, every half minute of the last day, and the runs.
"use strict";

const history_s = 600;
const day_s = 86400;
const shortest_view_s = 60;
const columns = ["uptime_s", "prompts_per_s", "net_trues_per_s", "delayeds_per_s", "singles_per_s", "lost_fraction", "triples_per_s", "delayed_triples_per_s"];

/** What the page keeps while the tab of the browser is open; null: nothing. */
function stored(name) {
  try {
    return JSON.parse(sessionStorage.getItem(`petacqd ${name}`));
  } catch (error) {
    return null;
  }
}

function store(name, value) {
  try {
    sessionStorage.setItem(`petacqd ${name}`, JSON.stringify(value));
  } catch (error) {
    // The browser keeps nothing.
  }
}

/** Rates of the last minutes by the daemon's clock, so that gaps in the connection do not distort them. */
class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.rows = [];
  }

  /** Takes the document /history. */
  fill(document) {
    this.clear();
    const own = document.uptime_s.findIndex((uptime) => uptime !== null);
    if (own < 0) return;
    // Those of an earlier daemon have no uptime: they are placed by the clock, and a gap is left between both.
    const began = document.time[own] - document.uptime_s[own];
    for (let i = 0; i < document.uptime_s.length; ++i) {
      const row = columns.map((name) => document[name][i]);
      if (i < own) row[0] = Math.min(document.time[i] - began, document.uptime_s[own]);
      if (i === own && own > 0) this.rows.push(columns.map((name) => (name === "uptime_s" ? row[0] : null)));
      this.rows.push(row);
    }
  }

  /** False if the daemon has restarted. */
  add(status) {
    const last = this.rows.length ? this.rows[this.rows.length - 1][0] : -1;
    if (status.uptime_s < last) return false;
    if (status.uptime_s > last) this.rows.push(columns.map((name) => (name === "uptime_s" ? status.uptime_s : status.rates[name] ?? null)));
    while (this.rows.length && this.rows[0][0] < status.uptime_s - history_s) this.rows.shift();
    return true;
  }

  /** Seconds from the oldest to the latest row. */
  span() {
    return this.rows.length ? this.rows[this.rows.length - 1][0] - this.rows[0][0] : 0;
  }

  /** Points for a chart; x: seconds, 0 is the latest. */
  points(name, scale = 1) {
    const column = columns.indexOf(name);
    const end = this.rows.length ? this.rows[this.rows.length - 1][0] : 0;
    return this.rows.map((row) => ({x: row[0] - end, y: row[column] === null ? null : row[column] * scale}));
  }
}

/** The document /history/day, by the daemon's clock. */
class Day {
  constructor() {
    this.document = null;
    this.ahead_s = 0;  // of the daemon's clock
  }

  fill(document_) {
    this.document = document_;
    this.ahead_s = document_.now - Date.now() / 1000;
  }

  now() {
    return Date.now() / 1000 + this.ahead_s;
  }

  /** Points for a chart; x: seconds, 0 is now. A gap stays a gap. */
  points(name, scale = 1) {
    if (!this.document) return [];
    const {time, step_s} = this.document;
    const now = this.now();
    const points = [];
    time.forEach((t, i) => {
      if (i > 0 && t - time[i - 1] > 1.5 * step_s) points.push({x: time[i - 1] + step_s - now, y: null});
      const y = this.document[name][i];
      points.push({x: t + step_s / 2 - now, y: y === null ? null : y * scale});
    });
    return points;
  }

  /** Marks as {at, run, text}; seconds, 0 is now. */
  marks() {
    const now = this.now();
    return (this.document?.marks || []).map(({time, run, text}) => ({at: time - now, run, text}));
  }

  /** Runs as {run, from, to, interrupted, failed}; seconds, 0 is now. */
  runs() {
    if (!this.document) return [];
    const now = this.now();
    return this.document.runs.map((run) => ({run: run.run, from: run.start - now, to: run.stop === null ? 0 : run.stop - now,
      interrupted: run.interrupted, failed: run.failed}));
  }
}

/** The part of the time that the charts show. */
class View {
  /** `changed`: called after each change by the user. */
  constructor(changed) {
    // Kept while the tab of the browser is open.
    const {span = null, until = null} = stored("view") || {};
    this.span = Number.isFinite(span) ? Math.min(Math.max(span, shortest_view_s), day_s) : null;  // seconds; null: what there is of the last minutes
    this.until = Number.isFinite(until) && until !== null && until > Date.now() / 1000 - day_s ? until : null;  // seconds since 1970; null: now, and stays it
    this.changed = changed;
    this.text = document.getElementById("view-text");
    for (const button of document.querySelectorAll("#view button")) {
      button.addEventListener("click", () => this.act(button.dataset.act, Number(button.dataset.span)));
    }
  }

  /** Seconds, 0 is now. */
  get end() {
    return this.until === null ? 0 : this.until - day.now();
  }

  act(what, span) {
    const now = this.span ?? history_s;
    const middle = this.end - now / 2;
    if (what === "span") this.set(span, 0);
    if (what === "earlier") this.set(now, this.end - now / 2);
    if (what === "later") this.set(now, this.end + now / 2);
    if (what === "in") this.set(now / 2, this.until === null ? 0 : middle + now / 4);
    if (what === "out") this.set(now * 2, this.until === null ? 0 : middle + now);
  }

  set(span, end) {
    this.span = Math.min(Math.max(span, shortest_view_s), day_s);
    const within = Math.min(Math.max(end, this.span - day_s), 0);
    this.until = within === 0 ? null : day.now() + within;
    if (this.span === history_s && within === 0) this.span = null;
    store("view", {span: this.span, until: this.until});
    this.changed();
  }

  /** Whether the rates of every second cover it. */
  recent() {
    return (this.span ?? history_s) - this.end <= history_s;
  }

  /** `shown`: seconds that the charts show. */
  show_text(shown) {
    const [from, to] = [day.now() + this.end - shown, day.now() + this.end];
    const part = (clock) => `${clock(from).slice(0, 5)} to ${clock(to).slice(0, 5)}`;
    const utc = `${part(utc_clock)} UTC`;
    const clocks = local_is_utc(to) ? utc : `${part(local_clock)} ${local_zone(to)} (${utc})`;
    const text = this.until === null ? `last ${about(shown)}` : clocks;
    if (this.text.textContent !== text) this.text.textContent = text;
    for (const button of document.querySelectorAll("#view button[data-span]"))
      button.setAttribute("aria-pressed", String(this.until === null && Number(button.dataset.span) === (this.span ?? history_s)));
  }
}
