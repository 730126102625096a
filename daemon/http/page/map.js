// The map of the crystals.
"use strict";

/** The scanner unrolled around its axis. */
class CrystalMap {
  /** `choose(bdm, du)`: what a click and the Enter key do. */
  constructor(choose) {
    this.canvas = document.getElementById("map");
    this.grid = document.getElementById("map-grid");
    this.reading = document.getElementById("map-reading");
    this.layer = document.getElementById("map-layer");
    this.layout = null;
    this.place = null;  // pixel
    this.chosen = null;  // BDM
    this.chosen_boxes = [];
    const choose_place = () => {
      const crystal = this.place ? this.layout.at(...this.place) : -1;
      if (crystal >= 0) choose(this.layout.bdm_of(crystal), this.layout.du_of(crystal));
    };
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
      this.step(...steps[event.key], event.shiftKey);
      document.getElementById("map-spoken").textContent = this.reading.textContent;
    });
    this.layer.addEventListener("change", () => this.show_layer());
    redraw_with(() => { this.draw(); this.draw_grid(); });
  }

  /** `scanner`: the document /scanner. */
  set_scanner(scanner) {
    this.scanner = scanner;
    const layers = Math.max(...scanner.types.map((type) => type.layers.length));
    this.layer.replaceChildren(new Option("all layers", "all"), ...[...Array(layers).keys()].map((i) => new Option(`layer ${i}`, i)));
    this.layer.parentElement.hidden = layers === 1;
    this.show_layer();
  }

  show_layer() {
    this.layout = new CrystalLayout(this.scanner, this.layer.value === "all" ? null : Number(this.layer.value));
    this.point(null);
    this.mark(this.chosen);
    this.draw();
  }

  /** Moves by a crystal, or by a module. In a ring, Shift keeps the place in the module. */
  step(right, up, shift) {
    const {layout} = this;
    if (!this.place) this.place = [0, 0];
    const [x, y] = this.place;
    if (layout.ring) {
      const {around, along} = shift ? layout.ring.crystals_per_module : {around: 1, along: 1};
      return this.point((x + right * around + layout.columns) % layout.columns, Math.min(Math.max(y + up * along, 0), layout.rows - 1));
    }
    this.point(...layout.next(x, y, right, up, shift));
  }

  /** Marks a BDM. */
  mark(bdm) {
    this.chosen = bdm;
    this.chosen_boxes = bdm === null || !this.layout ? [] : this.layout.boxes_of(bdm);
    this.draw_grid();
  }

  /** `counts`: by crystal. */
  show(counts) {
    this.counts = counts;
    this.draw();
    if (this.place) this.point(...this.place);
  }

  point_at(event) {
    if (!this.counts) return;
    const box = this.canvas.getBoundingClientRect();
    const within = (value, size) => Math.min(Math.max(value, 0), size - 1);
    const {columns, rows} = this.layout;
    this.point(within(Math.floor((event.clientX - box.left) / box.width * columns), columns),
      within(rows - 1 - Math.floor((event.clientY - box.top) / box.height * rows), rows));
  }

  point(x, y) {
    const before = this.place;
    this.place = x === null ? null : [x, y];
    this.reading.textContent = this.place ? this.text_of(this.layout.at(x, y))
      : `Around the ${this.layout && !this.layout.ring ? "axis" : "ring"} from left to right, along the axis from bottom to top. A click shows the spectrum of a BDM.`;
    if (String(before) !== String(this.place)) this.draw_grid();
  }

  text_of(crystal) {
    if (crystal < 0) return "Between the crystals.";
    const {layout} = this;
    const counts = `${this.counts[crystal].toLocaleString("en")} singles`;
    const {module, layer, column, row} = layout.address(crystal);
    if (layout.ring) return `Ring ${Math.floor(crystal / layout.columns)}, crystal ${crystal % layout.columns}, BDM ${module}: ${counts}`;
    return `Module ${module}, layer ${layer}, column ${column}, row ${row} (crystal ${crystal}, BDM ${layout.bdm_of(crystal)}, DU ${layout.du_of(crystal)}): ${counts}`;
  }

  draw() {
    if (!this.counts || !this.layout) return;
    const high = Math.max(1, high_of(this.counts, 0.998));
    document.getElementById("map-high").textContent = (this.counts.some((n) => n > high) ? "≥ " : "") + high.toLocaleString("en");
    const values = Float64Array.from(this.layout.crystal, (crystal) => (crystal < 0 ? NaN : this.counts[crystal]));
    draw_raster(this.canvas, this.layout.columns, this.layout.rows, values, high);
  }

  /** A frame of two tones around a part of the map: one of them stands out from any colour of the map. */
  outline(context, name, x, y, width, height) {
    for (const [tone, line] of [["card", 6], [name, 2]]) {
      context.strokeStyle = colour(tone);
      context.lineWidth = line;
      context.strokeRect(x, y, width, height);
    }
  }

  /** What lies over the map: borders of the modules, the chosen module, the crystal that is pointed at; numbers. */
  draw_grid() {
    if (!this.layout) return;
    const ratio = pixel_ratio();
    const frame = this.grid.parentElement.getBoundingClientRect();
    const box = this.canvas.getBoundingClientRect();
    this.grid.width = Math.round(frame.width * ratio);
    this.grid.height = Math.round(frame.height * ratio);
    const context = this.grid.getContext("2d");
    context.scale(ratio, ratio);
    const left = box.left - frame.left;
    const top = box.top - frame.top;
    const {columns, rows, boxes} = this.layout;
    const at_x = (x) => left + x * box.width / columns;
    const at_y = (y) => top + box.height - y * box.height / rows;
    const around = (b) => [at_x(b.left), at_y(b.top), at_x(b.right) - at_x(b.left), at_y(b.bottom) - at_y(b.top)];
    context.strokeStyle = colour("grid");
    context.beginPath();
    for (const module of boxes) context.rect(...around(module));
    context.stroke();
    for (const part of this.chosen_boxes) this.outline(context, "delayeds", ...around(part));
    if (this.place && this.layout.at(...this.place) >= 0) {
      const [x, y, width, height] = around(this.layout.box_of(...this.place));
      // Around the crystal, and within the canvas.
      const [from_x, to_x] = [x - 2, Math.min(x + width + 2, frame.width - 3)];
      const [from_y, to_y] = [Math.max(y - 2, 3), y + height + 2];
      this.outline(context, "ink", from_x, from_y, to_x - from_x, to_y - from_y);
    }
    const size = 12;
    context.font = `${size}px ${getComputedStyle(this.canvas).fontFamily}`;
    context.fillStyle = colour("ink-soft");
    if (this.layout.ring) this.number_ring(context, size, at_x, at_y);
    else this.number_modules(context, size, at_x, at_y);
  }

  /** BDMs of the first row below, which are the modules of a ring; rings on the left. */
  number_ring(context, size, at_x, at_y) {
    const {columns, rows, ring: {crystals_per_module: module}} = this.layout;
    const [left, bottom] = [at_x(0), at_y(0)];
    context.textAlign = "center";
    // Each module has room for its number, or every second, fifth, tenth one has it.
    const room = context.measureText("000").width + 4;
    const width = at_x(module.around) - left;
    const step = [1, 2, 5, 10, 20, 50, 100].find((n) => n * width >= room) || 100;
    for (let i = 0; i < columns / module.around; i += step) context.fillText(String(i), left + (i + 0.5) * width, bottom + size + 2);
    context.textAlign = "right";
    const rings = [...Array(rows / module.along).keys()].map((j) => j * module.along).concat(rows - 1);
    context.fillText("BDM", left - 5, bottom + size + 2);
    let free = Infinity;
    for (const ring of rings) {
      const y = Math.max(at_y(ring + 0.5) + size / 3, at_y(rows) + size);
      if (y > free) continue;
      context.fillText(String(ring), left - 5, y);
      free = y - size;
    }
    context.translate(size, (bottom + at_y(rows)) / 2);
    context.rotate(-Math.PI / 2);
    context.textAlign = "center";
    context.fillText("ring", 0, 0);
  }

  /** Each module has its number in its middle, where there is room; layers have theirs on the left. */
  number_modules(context, size, at_x, at_y) {
    context.textAlign = "center";
    context.lineWidth = 3;
    context.strokeStyle = colour("card");
    context.fillStyle = colour("ink");
    const layers = new Map();  // lowest and highest pixel
    for (const {module, layer, left, bottom, right, top} of this.layout.boxes) {
      const [low, high] = layers.get(layer) || [bottom, top];
      layers.set(layer, [Math.min(low, bottom), Math.max(high, top)]);
      const text = String(module);
      if (context.measureText(text).width + 4 > at_x(right) - at_x(left) || size + 2 > at_y(bottom) - at_y(top)) continue;
      const place = [(at_x(left) + at_x(right)) / 2, (at_y(bottom) + at_y(top)) / 2 + size / 3];
      context.strokeText(text, ...place);
      context.fillText(text, ...place);
    }
    if (this.layout.layers === 1) return;
    context.textAlign = "right";
    for (const [layer, [low, high]] of layers) context.fillText(`layer ${layer}`, at_x(0) - 5, (at_y(low) + at_y(high)) / 2);
  }
}
