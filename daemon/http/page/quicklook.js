// The live sinogram and the quick-look image of the run in progress. They change every few seconds, so they are
// requested less often than the figures of the page.
"use strict";

const quick_look_ms = 2500;
const most_ticks = 5;

/** A step of 1, 2 or 5 times a power of ten, so that a range has few ticks. */
function tick_step(range, most) {
  const power = 10 ** Math.floor(Math.log10(range / most));
  return power * ([1, 2, 5].find((n) => range / (n * power) <= most) || 10);
}

/** One pixel for each value, the first row at the bottom; `high` is the last colour of the ramp. */
function raster(columns, rows, values, high) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const table = ramp_table();
  for (let y = 0; y < rows; ++y) {
    for (let x = 0; x < columns; ++x) {
      const share = high > 0 ? values[x + y * columns] / high : 0;
      const at = 4 * (x + (rows - 1 - y) * columns);
      image.data.set([...table[Math.min(255, Math.max(0, Math.round(share * 255)))], 255], at);
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** A picture with axes. x and y: {from, to, title, step}; without a step there are about five ticks. */
function draw_picture(canvas, picture, x, y) {
  const scale = window.devicePixelRatio || 1;
  const size = Math.max(160, canvas.clientWidth);
  canvas.width = canvas.height = Math.round(size * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  const em = 0.8 * parseFloat(getComputedStyle(document.documentElement).fontSize);
  const [left, top, width, height] = [4 * em, em, size - 5 * em, size - 4.5 * em];
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, left, top, width, height);
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
  const label = (t) => String(Number(t.toPrecision(6))).replace("-", "−");
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

class QuickLook {
  constructor() {
    this.figure = document.getElementById("quick-look");
    this.reading = document.getElementById("quick-look-reading");
    this.sinogram = null;
    this.image = null;
    const again = () => this.draw();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    window.addEventListener("resize", again);
  }

  async update() {
    if (!document.hidden) {
      try {
        const [sinogram, image] = [await get("/sinogram"), await get("/image")];
        if (sinogram && image) {
          [this.sinogram, this.image] = [sinogram, image];
          this.figure.hidden = false;
          this.draw();
        }
      } catch (error) {
        // The page says that the daemon does not answer.
      }
    }
    setTimeout(() => this.update(), quick_look_ms);
  }

  draw() {
    if (!this.image) return;
    const {sinogram, image} = this;
    const radius = sinogram.radius_mm;
    draw_picture(document.getElementById("sinogram"),
      raster(sinogram.radial, sinogram.angles, sinogram.counts, high_of(sinogram.counts, 0.999)),
      {from: -radius, to: radius, title: "distance from the axis r, mm"}, {from: 0, to: 180, title: "angle φ, degrees", step: 45});
    const half = image.size * image.step_mm / 2;
    const high = image.values.reduce((most, value) => Math.max(most, value), 0);
    draw_picture(document.getElementById("image"), raster(image.size, image.size, image.values, high),
      {from: -half, to: half, title: "x, mm"}, {from: -half, to: half, title: "y, mm"});
    const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
    const less = image.delayeds > 0 ? `, less ${whole.format(image.delayeds)} delayeds in the image` : "";
    const missing = image.dropped > 0 ? `; ${whole.format(image.dropped)} coincidences not sampled` : "";
    this.reading.textContent =
      `Of run ${image.run}${image.running ? "" : ", which has ended"}: ${whole.format(image.prompts)} prompts${less}${missing}.`;
  }
}

// After all scripts.
document.addEventListener("DOMContentLoaded", () => new QuickLook().update());
