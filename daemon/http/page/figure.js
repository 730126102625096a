// Figures drawn on a canvas: colours from few to many, a raster of values, axes.
"use strict";

const most_ticks = 6;

function rgb(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}

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
function high_of(values, share) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor((sorted.length - 1) * share)];
}

/** Draws one pixel for each value, the first row at the bottom; `high` has the last colour of the ramp. Where a value is
 *  NaN there is nothing. */
function draw_raster(canvas, columns, rows, values, high) {
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const table = ramp_table().map((rgb_) => Uint8ClampedArray.of(...rgb_, 255));
  for (let y = 0; y < rows; ++y) {
    for (let x = 0; x < columns; ++x) {
      const value = values[x + y * columns];
      if (Number.isNaN(value)) continue;
      const share = high > 0 ? value / high : 0;
      image.data.set(table[Math.min(255, Math.max(0, Math.round(share * 255)))], 4 * (x + (rows - 1 - y) * columns));
    }
  }
  context.putImageData(image, 0, 0);
}

/** A step of 1, 2 or 5 times a power of ten, so that a range has few ticks. */
function tick_step(range, most) {
  const power = 10 ** Math.floor(Math.log10(range / most));
  return power * ([1, 2, 5].find((n) => range / (n * power) <= most) || 10);
}

/** Pixels of a canvas to one of the page. Paper is finer than a screen; by a power of two, or Chromium prints a canvas too small. */
function pixel_ratio() {
  return document.documentElement.classList.contains("paper") ? 4 : window.devicePixelRatio || 1;
}

/** Axes of the size of the canvas. x and y: {from, to, title, step}; without a step there are up to six ticks.
 *  `paint(context, left, top, width, height)` draws between them. */
function draw_figure(canvas, x, y, paint) {
  const scale = pixel_ratio();
  const [full_width, full_height] = [Math.max(160, canvas.clientWidth), Math.max(120, canvas.clientHeight)];
  canvas.width = Math.round(full_width * scale);
  canvas.height = Math.round(full_height * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const em = 0.8 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const [left, top, width, height] = [4 * em, em, full_width - 5 * em, full_height - 4.5 * em];
  context.imageSmoothingEnabled = false;
  paint(context, left, top, width, height);
  context.strokeStyle = colour("ink-soft");
  context.strokeRect(left, top, width, height);
  context.font = `${em}px ${getComputedStyle(document.body).fontFamily}`;
  context.fillStyle = colour("ink");
  const ticks = (axis) => {
    const step = axis.step || tick_step(axis.to - axis.from, most_ticks);
    const all = [];
    for (let t = Math.ceil(axis.from / step) * step; t <= axis.to + 1e-9 * step; t += step) all.push(Math.round(t / step) * step);
    return all;
  };
  const label = (t) => scaled(Number(t.toPrecision(6)), 1000, prefixes).replace("-", "−");
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const t of ticks(x)) {
    const at = left + (t - x.from) / (x.to - x.from) * width;
    context.fillRect(at - 0.5, top + height, 1, 0.3 * em);
    context.fillText(label(t), at, top + height + 0.5 * em);
  }
  context.fillText(x.title, left + width / 2, top + height + 1.9 * em);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const t of ticks(y)) {
    const at = top + height - (t - y.from) / (y.to - y.from) * height;
    context.fillRect(left - 0.3 * em, at - 0.5, 0.3 * em, 1);
    context.fillText(label(t), left - 0.5 * em, at);
  }
  context.save();
  context.translate(0.7 * em, top + height / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(y.title, 0, 0);
  context.restore();
}

/** The values as colours between axes; arguments as above. */
function draw_picture(canvas, columns, rows, values, high, x, y) {
  const picture = document.createElement("canvas");
  draw_raster(picture, columns, rows, values, high);
  draw_figure(canvas, x, y, (context, ...box) => context.drawImage(picture, ...box));
}

/** Calls `draw` when the colours of the page or its width change, and before and after it is printed. */
function redraw_with(draw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  window.addEventListener("resize", draw);
}
