// The charts of the live page, drawn by Chart.js if it is installed, and the map of the crystals.
"use strict";

const history_s = 600;
const columns = ["uptime_s", "prompts_per_s", "net_trues_per_s", "delayeds_per_s", "singles_per_s", "lost_fraction"];

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
    for (let i = 0; i < document.uptime_s.length; ++i)
      this.rows.push(columns.map((name) => document[name][i]));
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

function timeLabel(seconds) {
  if (seconds === 0) return "now";
  return seconds % 60 === 0 ? "−" + -seconds / 60 + " min" : "−" + -seconds + " s";
}

function lineChart(id, series, x, y) {
  const datasets = series.map(([label, name, dash], i) => ({
    label,
    colour: name,
    order: -i,  // dashed lines on top, so that both are visible where nearly all prompts are trues
    borderDash: dash || [],
    data: [],
    borderWidth: 2,
    pointRadius: 0,
    pointHitRadius: 8,
    spanGaps: false,
  }));
  return new Chart(document.getElementById(id), {
    type: "line",
    data: {datasets},
    options: {
      animation: false,
      parsing: false,
      normalized: true,
      responsive: true,
      maintainAspectRatio: false,
      interaction: {mode: "nearest", axis: "x", intersect: false},
      scales: {x: {type: "linear", ...x}, y: {beginAtZero: true, ...y}},
      plugins: {
        legend: {display: series.length > 1, position: "bottom", labels: {
          // At this width the dashes of opposite edges of the box meet.
          boxWidth: 32, boxHeight: 0, padding: 14, sort: (a, b) => a.datasetIndex - b.datasetIndex}},
        tooltip: {callbacks: {title: (items) => (x.title ? items[0].parsed.x + " keV" : timeLabel(Math.round(items[0].parsed.x)))}},
      },
    },
  });
}

/** All charts; none without the library. */
class Charts {
  constructor() {
    this.all = [];
    if (typeof Chart === "undefined") {
      document.body.classList.add("no-charts");
      document.getElementById("no-charts").hidden = false;
      return;
    }
    const text = getComputedStyle(document.documentElement);
    Chart.defaults.font.family = text.fontFamily;
    Chart.defaults.font.size = 0.75 * parseFloat(text.fontSize);
    const time = {min: -history_s, max: 0, ticks: {maxRotation: 0, autoSkip: false, callback: timeLabel}};
    const count = {ticks: {maxTicksLimit: 6, callback: (value) => scaled(value, 1000, prefixes)}};
    this.coincidences = lineChart("coincidences",
      [["Prompts", "prompts"], ["Net trues", "trues", [8, 6]], ["Delayeds", "delayeds", [3, 3]]], time, count);
    this.singles = lineChart("singles", [["Singles", "singles"]], time, count);
    this.loss = lineChart("loss", [["Lost, %", "lost"]], time, {suggestedMax: 0.01, ticks: {maxTicksLimit: 6}});
    this.spectrum = lineChart("spectrum", [["Singles", "singles"]],
      {min: 0, title: {display: true, text: "keV"}, ticks: {stepSize: 200, maxRotation: 0}}, count);
    this.all = [this.coincidences, this.singles, this.loss, this.spectrum];
    this.paint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  /** Applies the colours of the page. */
  paint() {
    for (const chart of this.all) {
      chart.options.color = colour("ink");
      for (const scale of Object.values(chart.options.scales)) {
        scale.ticks = {...scale.ticks, color: colour("ink-soft")};
        scale.grid = {color: colour("line"), borderColor: colour("line")};
        if (scale.title) scale.title.color = colour("ink-soft");
      }
      for (const dataset of chart.data.datasets) {
        dataset.borderColor = colour(dataset.colour);
        dataset.backgroundColor = colour(dataset.colour);
      }
      chart.update();
    }
  }

  showHistory(history) {
    if (!this.all.length) return;
    // Shows two to ten minutes.
    const span = Math.min(history_s, Math.max(1, Math.ceil(history.span() / 120)) * 120);
    const put = (chart, ...lines) => {
      lines.forEach((points, i) => { chart.data.datasets[i].data = points; });
      chart.options.scales.x.min = -span;
      chart.options.scales.x.ticks.stepSize = span / 2;
      chart.update();
    };
    put(this.coincidences, history.points("prompts_per_s"), history.points("net_trues_per_s"), history.points("delayeds_per_s"));
    put(this.singles, history.points("singles_per_s"));
    put(this.loss, history.points("lost_fraction", 100));
  }

  showSpectrum(counts, bin) {
    if (!this.all.length) return;
    // The last bin holds all higher energies.
    this.spectrum.data.datasets[0].data = counts.slice(0, -1).map((y, i) => ({x: (i + 0.5) * bin, y}));
    this.spectrum.options.scales.x.max = Math.floor(counts.length * bin / 200) * 200;
    this.spectrum.update();
  }
}

/** The unrolled ring: one pixel for each crystal. */
/** 256 colours, from few to many. */
function ramp_table() {
  const ramp = [0, 1, 2].map((i) => rgb(colour("ramp-" + i)));
  return Array.from({length: 256}, (_, i) => {
    const t = i / 255 * 2;
    const from = ramp[t < 1 ? 0 : 1];
    const to = ramp[t < 1 ? 1 : 2];
    return from.map((c, k) => c + (to[k] - c) * (t < 1 ? t : t - 1));
  });
}

/** A few hot places must not make all others look dark. */
function high_of(counts, share) {
  const sorted = Float64Array.from(counts).sort();
  return Math.max(1, sorted[Math.floor((sorted.length - 1) * share)]);
}

/** Draws the spectra of a detector unit. */
function draw_unit(unit) {
  const size = unit.position_size;
  const flood = document.getElementById("flood");
  if (flood.width !== size) flood.width = flood.height = size;
  const table = ramp_table();
  const high = high_of(unit.flood, 0.999);
  let context = flood.getContext("2d");
  const image = context.createImageData(size, size);
  unit.flood.forEach((n, i) => {
    const x = i % size;
    const y = Math.floor(i / size);
    image.data.set([...table[Math.min(255, Math.round(n / high * 255))], 255], 4 * (x + (size - 1 - y) * size));
  });
  context.putImageData(image, 0, 0);
  const energy = unit.energy_per_crystal.reduce((sum, row) => sum.map((n, bin) => n + row[bin]));
  const canvas = document.getElementById("unit-energy");
  const most = Math.max(1, ...energy);
  context = canvas.getContext("2d");
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = colour("ramp-2");
  const width = canvas.width / energy.length;
  energy.forEach((n, bin) => {
    const height = n / most * canvas.height;
    context.fillRect(bin * width, canvas.height - height, width, height);
  });
}

class CrystalMap {
  constructor() {
    this.canvas = document.getElementById("map");
    this.reading = document.getElementById("map-reading");
    this.place = null;
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.counts) return;
      const box = this.canvas.getBoundingClientRect();
      this.point(Math.floor((event.clientX - box.left) / box.width * this.around),
        this.along - 1 - Math.floor((event.clientY - box.top) / box.height * this.along));
    });
    this.canvas.addEventListener("pointerleave", () => { if (document.activeElement !== this.canvas) this.point(null); });
    this.canvas.addEventListener("blur", () => this.point(null));
    this.canvas.addEventListener("keydown", (event) => {
      const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
      if (!(event.key in steps) || !this.counts) return;
      event.preventDefault();
      const [x, y] = this.place || [0, 0];
      // Shift moves by a module.
      const [around, along] = event.shiftKey ? [this.module.around, this.module.along] : [1, 1];
      const [right, up] = steps[event.key];
      this.point((x + right * around + this.around) % this.around, Math.min(Math.max(y + up * along, 0), this.along - 1));
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(document_, counts) {
    this.around = document_.crystals_in_ring;
    this.along = document_.rings;
    this.module = document_.crystals_per_module;
    this.counts = counts;
    this.draw();
    if (this.place) this.point(...this.place);
  }

  point(x, y) {
    const before = this.place;
    this.place = x === null ? null : [x, y];
    if (this.place) {
      const module = Math.floor(x / this.module.around) + Math.floor(y / this.module.along) * (this.around / this.module.around);
      this.reading.textContent = `Ring ${y}, crystal ${x}, module ${module}: ${this.counts[x + y * this.around].toLocaleString("en")} singles`;
    } else {
      this.reading.textContent = "Around the ring from left to right, along the axis from bottom to top.";
    }
    if (String(before) !== String(this.place)) this.draw();
  }

  draw() {
    if (!this.counts) return;
    if (this.canvas.width !== this.around) this.canvas.width = this.around;
    if (this.canvas.height !== this.along) this.canvas.height = this.along;
    const high = high_of(this.counts, 0.998);
    document.getElementById("map-high").textContent = (this.counts.some((n) => n > high) ? "≥ " : "") + high.toLocaleString("en");
    const table = ramp_table();
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(this.around, this.along);
    for (let y = 0; y < this.along; ++y) {
      for (let x = 0; x < this.around; ++x) {
        const pixel = table[Math.min(255, Math.round(this.counts[x + y * this.around] / high * 255))];
        const at = 4 * (x + (this.along - 1 - y) * this.around);
        image.data.set([...pixel, 255], at);
      }
    }
    if (this.place) {
      const [x, y] = this.place;
      image.data.set([...rgb(colour("delayeds")), 255], 4 * (x + (this.along - 1 - y) * this.around));
    }
    context.putImageData(image, 0, 0);
  }
}

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}
