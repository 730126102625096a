// The flood map and the energy spectrum of a detector unit.
"use strict";

/** The first answer for a unit is null; after so many, the daemon counts no spectra. */
const most_unknown_units = 3;

/** Sums squares of n x n values. */
function coarse(values, size, n) {
  const small = size / n;
  const sums = new Array(small * small).fill(0);
  values.forEach((v, i) => { sums[Math.floor(i % size / n) + Math.floor(i / size / n) * small] += v; });
  return sums;
}

class UnitView {
  /** `choose(module)`: called when another module is selected here. */
  constructor(choose) {
    this.figure = document.getElementById("unit");
    this.bdm = document.getElementById("unit-bdm");
    this.du = document.getElementById("unit-du");
    this.module = 0;
    this.unit = null;
    this.unknown = 0;  // answers without figures, one after the other
    this.bdm.addEventListener("change", () => choose(Number(this.bdm.value)));
    this.du.addEventListener("change", () => this.show_module(this.module));
    redraw_with(() => this.draw());
  }

  show_module(module) {
    this.module = module;
    this.bdm.value = String(module);
    this.unknown = 0;
    this.update().catch(() => {});  // the next second tries again
  }

  async update() {
    const unit = await get(`/spectra/${this.module}/${this.du.value || 0}`);
    this.unknown = unit === null ? this.unknown + 1 : 0;
    if (unit === null && this.unknown < most_unknown_units) return;
    this.figure.hidden = unit === null;
    document.getElementById("no-unit").hidden = unit !== null;
    if (unit === null) return;
    for (const [select, n] of [[this.bdm, unit.modules], [this.du, unit.units]]) {
      for (let i = select.options.length; i < n; ++i) select.add(new Option(i, i));
    }
    this.bdm.value = String(this.module);
    this.unit = unit;
    this.draw();
  }

  draw() {
    if (!this.unit) return;
    const {flood, position_size: size, energy_bin_keV: bin, energy_per_crystal: rows} = this.unit;
    const frames = flood.reduce((a, b) => a + b, 0);
    // Coarse while there are few, so that the crystals show early.
    const n = [1, 2, 4].find((side) => frames * side * side >= size * size || side === 4);
    const sums = coarse(flood, size, n);
    draw_picture(document.getElementById("flood"), size / n, size / n, sums, high_of(sums, 0.999),
      {from: 0, to: size, title: "position x"}, {from: 0, to: size, title: "position y"});
    const energy = rows.reduce((sum, row) => sum.map((count_, i) => count_ + row[i]));
    const most = Math.max(5, ...energy);
    draw_figure(document.getElementById("unit-energy"), {from: 0, to: energy.length * bin, title: "energy, keV"},
      {from: 0, to: 1.05 * most, title: `frames in ${bin} keV`}, (context, left, top, width, height) => {
        context.fillStyle = colour("singles");
        energy.forEach((count_, i) => {
          const high = count_ / most / 1.05 * height;
          context.fillRect(left + i * width / energy.length, top + height - high, width / energy.length, high);
        });
      });
    show_figures("unit-table", () => energy_rows(energy, bin));
    document.getElementById("unit-reading").textContent =
      `Module ${this.unit.bdm}, unit ${this.unit.du}: ${frames > 0 ? `${count.format(frames)} frames of the run in progress` : "no frames yet"}.`;
  }
}
