// The map of the crystals.
"use strict";

/** The unrolled ring: one pixel for each crystal. */
class CrystalMap {
  /** `choose(module)`: what a click and the Enter key do. */
  constructor(choose) {
    this.canvas = document.getElementById("map");
    this.grid = document.getElementById("map-grid");
    this.reading = document.getElementById("map-reading");
    this.place = null;
    this.chosen = null;  // module
    const choose_place = () => { if (this.place) choose(this.module_at(...this.place)); };
    this.canvas.addEventListener("click", (event) => { this.point_at(event); choose_place(); });
    new ResizeObserver(() => this.draw_grid()).observe(this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.point_at(event));
    this.canvas.addEventListener("pointerleave", () => { if (document.activeElement !== this.canvas) this.point(null); });
    this.canvas.addEventListener("blur", () => this.point(null));
    this.canvas.addEventListener("keydown", (event) => {
      if (event.key === "Enter") return choose_place();
      const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]};
      if (!(event.key in steps) || !this.counts) return;
      event.preventDefault();
      const [x, y] = this.place || [0, 0];
      // Shift moves by a module.
      const [around, along] = event.shiftKey ? [this.module.around, this.module.along] : [1, 1];
      const [right, up] = steps[event.key];
      this.point((x + right * around + this.around) % this.around, Math.min(Math.max(y + up * along, 0), this.along - 1));
      document.getElementById("map-spoken").textContent = this.reading.textContent;
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.draw(); this.draw_grid(); });
  }

  module_at(x, y) {
    return Math.floor(x / this.module.around) + Math.floor(y / this.module.along) * (this.around / this.module.around);
  }

  /** Marks a module. */
  mark(module) {
    this.chosen = module;
    this.draw_grid();
  }

  show(document_, counts) {
    const same = this.around === document_.crystals_in_ring && this.along === document_.rings;
    this.around = document_.crystals_in_ring;
    this.along = document_.rings;
    this.module = document_.crystals_per_module;
    this.counts = counts;
    this.draw();
    if (!same) this.draw_grid();
    if (this.place) this.point(...this.place);
  }

  point_at(event) {
    if (!this.counts) return;
    const box = this.canvas.getBoundingClientRect();
    const within = (value, size) => Math.min(Math.max(value, 0), size - 1);
    this.point(within(Math.floor((event.clientX - box.left) / box.width * this.around), this.around),
      within(this.along - 1 - Math.floor((event.clientY - box.top) / box.height * this.along), this.along));
  }

  point(x, y) {
    const before = this.place;
    this.place = x === null ? null : [x, y];
    if (this.place) {
      this.reading.textContent = `Ring ${y}, crystal ${x}, module ${this.module_at(x, y)}: ${this.counts[x + y * this.around].toLocaleString("en")} singles`;
    } else {
      this.reading.textContent = "Around the ring from left to right, along the axis from bottom to top. A click shows the spectrum of a module.";
    }
    if (String(before) !== String(this.place)) this.draw_grid();
  }

  draw() {
    if (!this.counts) return;
    const high = Math.max(1, high_of(this.counts, 0.998));
    document.getElementById("map-high").textContent = (this.counts.some((n) => n > high) ? "≥ " : "") + high.toLocaleString("en");
    draw_raster(this.canvas, this.around, this.along, this.counts, high);
  }

  /** A frame of two tones around a part of the map: one of them stands out from any colour of the map. */
  outline(context, name, x, y, width, height) {
    for (const [tone, line] of [["card", 6], [name, 2]]) {
      context.strokeStyle = colour(tone);
      context.lineWidth = line;
      context.strokeRect(x, y, width, height);
    }
  }

  /** What lies over the map: borders of the modules, the chosen module, the crystal that is pointed at; numbers of
   *  modules below, and of rings on the left. */
  draw_grid() {
    if (!this.module) return;
    const ratio = window.devicePixelRatio || 1;
    const frame = this.grid.parentElement.getBoundingClientRect();
    const box = this.canvas.getBoundingClientRect();
    this.grid.width = Math.round(frame.width * ratio);
    this.grid.height = Math.round(frame.height * ratio);
    const context = this.grid.getContext("2d");
    context.scale(ratio, ratio);
    const left = box.left - frame.left;
    const top = box.top - frame.top;
    const [columns_, rows] = [this.around / this.module.around, this.along / this.module.along];
    const at_x = (i) => left + i * box.width / columns_;
    const at_y = (j) => top + box.height - j * box.height / rows;
    context.strokeStyle = colour("grid");
    context.beginPath();
    for (let i = 0; i <= columns_; ++i) { context.moveTo(at_x(i), top); context.lineTo(at_x(i), top + box.height); }
    for (let j = 0; j <= rows; ++j) { context.moveTo(left, at_y(j)); context.lineTo(left + box.width, at_y(j)); }
    context.stroke();
    if (this.chosen !== null && this.chosen < columns_ * rows) {
      const [i, j] = [this.chosen % columns_, Math.floor(this.chosen / columns_)];
      this.outline(context, "delayeds", at_x(i), at_y(j + 1), at_x(1) - at_x(0), at_y(0) - at_y(1));
    }
    if (this.place) {
      const [x, y] = this.place;
      const [width, height] = [box.width / this.around, box.height / this.along];
      // Around the crystal, and within the canvas.
      const [from_x, to_x] = [left + x * width - 2, Math.min(left + (x + 1) * width + 2, frame.width - 3)];
      const [from_y, to_y] = [Math.max(top + (this.along - 1 - y) * height - 2, 3), top + (this.along - y) * height + 2];
      this.outline(context, "ink", from_x, from_y, to_x - from_x, to_y - from_y);
    }
    const size = 12;
    context.font = `${size}px ${getComputedStyle(this.canvas).fontFamily}`;
    context.fillStyle = colour("ink-soft");
    context.textAlign = "center";
    // Modules of the first row; each has room for its number, or every second, fifth, tenth one has it.
    const room = context.measureText("000").width + 4;
    const step = [1, 2, 5, 10, 20, 50, 100].find((n) => n * box.width / columns_ >= room) || 100;
    for (let i = 0; i < columns_; i += step) context.fillText(String(i), (at_x(i) + at_x(i + 1)) / 2, top + box.height + size + 2);
    context.textAlign = "right";
    const ring_height = box.height / this.along;
    const rings = [...Array(rows).keys()].map((j) => j * this.module.along).concat(this.along - 1);
    context.fillText("module", left - 5, top + box.height + size + 2);
    let free = Infinity;
    for (const ring of rings) {
      const y = Math.max(top + box.height - (ring + 0.5) * ring_height + size / 3, top + size);
      if (y > free) continue;
      context.fillText(String(ring), left - 5, y);
      free = y - size;
    }
    context.translate(size, top + box.height / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText("ring", 0, 0);
  }
}
