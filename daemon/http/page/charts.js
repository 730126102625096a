// The charts of the live page, drawn by Chart.js if it is installed.
"use strict";

function timeLabel(seconds) {
  if (seconds === 0) return "now";
  return seconds % 60 === 0 ? "−" + -seconds / 60 + " min" : "−" + -seconds + " s";
}

/** The time of a place on the axis, to the second. */
function exact_place(seconds) {
  return view.recent() && view.until === null ? timeLabel(Math.round(seconds)) : `${utc_clock(day.now() + seconds)} UTC`;
}

/** For the axis: the local time, and UTC below it; with seconds if the charts show minutes. The last tick names the clock. */
function placeLabel(seconds, i, ticks) {
  const at = day.now() + seconds;
  const end = view.recent() ? 8 : 5;
  const utc = utc_clock(at).slice(0, end) + (i === ticks.length - 1 ? " UTC" : "");
  return local_is_utc(at) ? utc : [local_clock(at).slice(0, end), utc];
}

/** Of what a chart shows at a place: both clocks, and how long ago. */
function place_title(seconds) {
  const ago = seconds > -1 ? "now" : `${duration(Math.round(-seconds))} ago`;
  return [both_clocks(day.now() + seconds), ago];
}

/** The marks of the day near a place of a chart. */
function marks_near(chart, seconds) {
  const {x} = chart.scales;
  return day.marks().filter(({at}) => Math.abs(x.getPixelForValue(at) - x.getPixelForValue(seconds)) < 6).map(({text}) => `mark: ${text}`);
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
const largest = (values) => Math.max(...values);

/** Draws the runs, the marks, and the part that is being selected, behind the lines. */
const marks = {
  id: "marks",
  beforeDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales: {x}} = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(area.left, area.top, area.width, area.height);
    ctx.clip();
    ctx.font = `${Chart.defaults.font.size}px ${Chart.defaults.font.family}`;
    let free = area.left;  // labels must not cover each other
    for (const run of day.runs()) {
      if (run.to < x.min || run.from > x.max) continue;
      const left = x.getPixelForValue(run.from);
      const right = x.getPixelForValue(run.to);
      ctx.fillStyle = ctx.strokeStyle = colour(run.interrupted || run.failed ? "bad" : "trues");
      ctx.globalAlpha = 0.1;
      ctx.fillRect(left, area.top, right - left, area.height);
      ctx.globalAlpha = 0.8;
      ctx.fillRect(left, area.top, 1, area.height);
      if (run.to < 0) ctx.fillRect(right, area.top, 1, area.height);
      const ending = run.interrupted ? " (interrupted)" : run.failed ? " (failed)" : "";
      const text = run.run + ending;
      const width = ctx.measureText(text).width;
      const at = Math.max(Math.min(Math.max(left, area.left) + 3, area.right - width - 3), area.left + 3);
      if (at < free) continue;
      ctx.globalAlpha = 1;
      ctx.fillStyle = colour("ink-soft");
      ctx.fillText(text, at, area.top + Chart.defaults.font.size);
      free = at + width + 6;
    }
    let free_for_mark = area.left;
    for (const {at: place, text} of day.marks()) {
      if (place < x.min || place > x.max) continue;
      const at = x.getPixelForValue(place);
      ctx.globalAlpha = 1;
      ctx.strokeStyle = ctx.fillStyle = colour("ink");
      ctx.setLineDash([2, 2]);
      ctx.beginPath();
      ctx.moveTo(at, area.top);
      ctx.lineTo(at, area.bottom);
      ctx.stroke();
      ctx.setLineDash([]);
      const shown = text.length > 24 ? `${text.slice(0, 23)}…` : text;
      const width = ctx.measureText(shown).width;
      const left = Math.max(area.left + 3, Math.min(at + 3, area.right - width - 3));
      if (left < free_for_mark) continue;
      ctx.fillText(shown, left, area.top + 2.3 * Chart.defaults.font.size);
      free_for_mark = left + width + 6;
    }
    if (chart.selected) {
      ctx.globalAlpha = 0.25;
      ctx.fillStyle = colour("focus");
      ctx.fillRect(Math.min(...chart.selected), area.top, Math.abs(chart.selected[1] - chart.selected[0]), area.height);
    }
    ctx.restore();
  },
};

/** Draws the windows of a spectrum, which are in `chart.windows`, behind its line: the one above the other, so that
 *  their names do not meet. */
const windows = {
  id: "windows",
  beforeDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales: {x}} = chart;
    ctx.save();
    ctx.font = `${Chart.defaults.font.size}px ${Chart.defaults.font.family}`;
    (chart.windows || []).forEach(({name, colour: tone, from, to}, i) => {
      const [left, right] = [from, to].map((at) => x.getPixelForValue(Math.min(at, x.max)));
      ctx.globalAlpha = 0.12;
      ctx.fillStyle = colour(tone);
      ctx.fillRect(left, area.top, right - left, area.height);
      ctx.globalAlpha = 1;
      ctx.fillStyle = colour("ink-soft");
      const at = Math.max(area.left, Math.min(left + 3, area.right - ctx.measureText(name).width));
      ctx.fillText(name, at, area.top + (i + 1) * 1.2 * Chart.defaults.font.size);
    });
    ctx.restore();
  },
};

/** Drawing over a chart with the mouse or a pen selects that part of the time. Fingers scroll the page. */
function zoomable(chart) {
  const canvas = chart.canvas;
  const place = (event) => event.clientX - canvas.getBoundingClientRect().left;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    chart.selected = [place(event), place(event)];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!chart.selected) return;
    chart.selected[1] = place(event);
    chart.draw();
  });
  canvas.addEventListener("pointerup", () => {
    if (!chart.selected) return;
    const [from, to] = chart.selected.map((x) => chart.scales.x.getValueForPixel(x)).sort((a, b) => a - b);
    const width = Math.abs(chart.selected[1] - chart.selected[0]);
    chart.selected = null;
    if (width > 8) view.set(to - from, to > -1 ? 0 : (from + to) / 2 + Math.max(to - from, shortest_view_s) / 2);
    chart.draw();
  });
  canvas.addEventListener("pointercancel", () => { chart.selected = null; });
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
    plugins: x.title ? [windows] : [marks],
    options: {
      animation: false,
      parsing: false,
      normalized: true,
      responsive: true,
      maintainAspectRatio: false,
      interaction: {mode: "nearest", axis: "x", intersect: false},
      scales: {x: {type: "linear", ...x}, y: {beginAtZero: true, grace: "12%", ...y}},
      plugins: {
        legend: {display: series.length > 1, position: "bottom", labels: {
          // At this width the dashes of opposite edges of the box meet.
          boxWidth: 32, boxHeight: 0, padding: 14, sort: (a, b) => a.datasetIndex - b.datasetIndex}},
        tooltip: {callbacks: {
          title: (items) => (x.title ? `${figures.format(items[0].parsed.x)} ${x.title.text}` : place_title(items[0].parsed.x)),
          footer: (items) => (x.title ? [] : marks_near(items[0].chart, items[0].parsed.x)),
        }},
      },
    },
  });
}

/** All charts and the tables below them; only the tables without the library. */
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
    const time = {min: -history_s, max: 0, ticks: {maxRotation: 0, autoSkip: false, align: "inner", callback: placeLabel}};
    const count = {ticks: {maxTicksLimit: 6, callback: (value) => scaled(value, 1000, prefixes)}};
    this.coincidences = lineChart("coincidences",
      [["Prompts", "prompts"], ["Net trues", "trues", [8, 6]], ["Delayeds", "delayeds", [3, 3]]], time, count);
    this.singles = lineChart("singles", [["Singles", "singles"]], time, count);
    this.loss = lineChart("loss", [["Lost, %", "lost"]], time, {suggestedMax: 0.01, ticks: {maxTicksLimit: 6}});
    this.spectrum = lineChart("spectrum", [["Singles", "singles"]],
      {min: 0, title: {display: true, text: "keV"}, ticks: {stepSize: 200, maxRotation: 0, autoSkipPadding: 8}},
      {...count, grace: "25%", title: {display: true, text: "singles, last second"}});  // above its line are the names of windows
    const both = [["Triples", "prompts"], ["Delayed triples", "delayeds", [3, 3]]];
    this.triples = lineChart("triples", both, time, count);
    const of_gammas = (id, text, y) => lineChart(id, both, {title: {display: true, text}, ticks: {maxTicksLimit: 6, maxRotation: 0}},
      {...y, title: {display: true, text: "triples of the run"}});
    const power_of_ten = (value) => (Number.isInteger(Math.log10(value)) ? scaled(value, 1000, prefixes) : null);
    this.gamma_times = of_gammas("gamma-times", "ns", {type: "logarithmic", min: 0.5, ticks: {callback: power_of_ten}});
    this.gamma_energies = of_gammas("gamma-energies", "keV", count);
    this.all = [this.coincidences, this.singles, this.loss, this.spectrum, this.triples, this.gamma_times, this.gamma_energies];
    for (const chart of [this.coincidences, this.singles, this.loss, this.triples]) zoomable(chart);
    this.paint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  /** Draws them as large as they are now. */
  fit() {
    for (const chart of this.all) {
      chart.options.devicePixelRatio = pixel_ratio();
      chart.resize();
    }
    this.paint();
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

  /** `history`: the last minutes. */
  showHistory(history) {
    // Shows two to ten minutes by itself.
    const span = view.span ?? Math.min(history_s, Math.max(1, Math.ceil(history.span() / 120)) * 120);
    view.show_text(span);
    const recent = view.recent();
    const end = view.end;
    const line = (name, scale) => {
      const latest = history.points(name, scale);
      const earlier = day.points(name, scale);
      if (recent && latest.length) {  // what an earlier daemon has left comes before every second of this one
        const before = earlier.filter((point) => point.x < latest[0].x);
        return before.concat(before.length ? {x: latest[0].x, y: null} : [], latest);
      }
      const last = earlier.length ? earlier[earlier.length - 1].x : -Infinity;
      return earlier.concat(latest.filter((point) => point.x > last));
    };
    const put = (name, combine, ...lines) => {
      show_figures(`${name}-table`, () => time_rows(lines, end - span, end, combine));
      const chart = this[name];
      if (!chart) return;
      lines.forEach((points, i) => { chart.data.datasets[i].data = points; });
      chart.options.scales.x.min = end - span;
      chart.options.scales.x.max = end;
      chart.options.scales.x.ticks.stepSize = span / 2;
      chart.update();
    };
    put("coincidences", mean, line("prompts_per_s"), line("net_trues_per_s"), line("delayeds_per_s"));
    put("singles", mean, line("singles_per_s"));
    put("loss", largest, line("lost_fraction", 100));
    put("triples", mean, line("triples_per_s"), line("delayed_triples_per_s"));
  }

  /** `windows`: {name, colour, from, to}; keV. */
  showSpectrum(counts, bin, energy_windows) {
    if (!this.all.length) return;
    this.spectrum.windows = energy_windows;
    // The last bin holds all higher energies.
    this.spectrum.data.datasets[0].data = counts.slice(0, -1).map((y, i) => ({x: (i + 0.5) * bin, y}));
    const end = counts.length * bin;
    const last = Math.max(end, ...energy_windows.map(({to}) => (to < 2 * end ? Math.ceil(to / 200) * 200 : 0)));
    this.spectrum.options.scales.x.max = Math.floor(last / 200) * 200;
    this.spectrum.update();
  }

  /** The document /gammas; null: none. */
  showGammas(gammas) {
    this.showTriplesBy("gamma_times", gammas?.times, "ns");
    this.showTriplesBy("gamma_energies", gammas?.energies, "keV");
  }

  showTriplesBy(name, histogram, unit) {
    const lines = ["triples", "delayed_triples"].map((of) => histogram?.[of] || []);
    const start = (i) => histogram[`from_${unit}`] + i * histogram[`bin_${unit}`];
    show_figures(`${name.replace("_", "-")}-table`,
      () => lines[0].map((n, i) => [figures.format(start(i)), count.format(n), count.format(lines[1][i])]));
    const chart = this[name];
    if (!chart) return;
    lines.forEach((counts, k) => {
      chart.data.datasets[k].data = counts.map((y, i) => ({x: start(i + 0.5), y}));
    });
    if (histogram) Object.assign(chart.options.scales.x, {min: start(0), max: start(lines[0].length)});
    chart.update();
  }
}
