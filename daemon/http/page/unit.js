// The flood map and the energy spectrum of a detector unit.
"use strict";

/** The first answer for a unit is null; after so many, the daemon counts no spectra. */
const most_unknown_units = 3;
/** In the spectrum of a unit of several layers. */
const layer_lines = [["solid line", []], ["dashed line", [8, 4]], ["dotted line", [2, 3]], ["line of dashes and dots", [8, 3, 2, 3]]];

/** Sums squares of n x n values. */
function coarse(values, size, n) {
  const small = size / n;
  const sums = new Array(small * small).fill(0);
  values.forEach((v, i) => { sums[Math.floor(i % size / n) + Math.floor(i / size / n) * small] += v; });
  return sums;
}

class UnitView {
  /** `choose(module, du)`: called when another module is selected here. */
  constructor(choose) {
    this.figure = document.getElementById("unit");
    this.bdm = document.getElementById("unit-bdm");
    this.du = document.getElementById("unit-du");
    this.module = 0;
    this.unit = null;
    this.unknown = 0;  // answers without figures, one after the other
    this.bdm.addEventListener("change", () => choose(Number(this.bdm.value)));
    this.du.addEventListener("change", () => this.show_module(this.module, Number(this.du.value)));
    redraw_with(() => this.draw());
  }

  /** `units`: [bdm, [du...]] of those that exist; `layout` knows the crystals. */
  set_units(units, layout) {
    this.units = new Map(units);
    this.layout = layout;
    this.unit = null;
    this.bdm.replaceChildren(...units.map(([bdm]) => new Option(bdm, bdm)));
    this.select(this.units.has(this.module) ? this.module : units[0][0], Number(this.du.value));
  }

  /** The module, and the unit if the module has it, else its first. */
  select(module, du) {
    this.module = module;
    const dus = this.units.get(module);
    this.bdm.value = String(module);
    this.du.replaceChildren(...dus.map((one) => new Option(one, one)));
    this.du.value = String(dus.includes(du) ? du : dus[0]);
  }

  show_module(module, du = Number(this.du.value)) {
    if (!this.units || !this.units.has(module)) return;
    this.select(module, du);
    this.unknown = 0;
    this.update().catch(() => {});  // the next second tries again
  }

  async update() {
    if (!this.units) return;
    const unit = await get(`/spectra/${this.module}/${this.du.value}`);
    this.unknown = unit === null ? this.unknown + 1 : 0;
    if (unit === null && this.unknown < most_unknown_units) return;
    this.figure.hidden = unit === null;
    document.getElementById("no-unit").hidden = unit !== null;
    if (unit === null) return;
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
    const sum_of = (some) => some.reduce((sum, row) => sum.map((count_, i) => count_ + row[i]), new Array(rows[0].length).fill(0));
    const energy = sum_of(rows);
    const layers = this.layers();
    const of_layers = layers.map((locals) => sum_of(locals.map((local) => rows[local])));
    const most = Math.max(5, ...energy);
    draw_figure(document.getElementById("unit-energy"), {from: 0, to: energy.length * bin, title: "energy, keV"},
      {from: 0, to: 1.05 * most, title: `frames in ${bin} keV`}, (context, left, top, width, height) => {
        context.fillStyle = colour("singles");
        energy.forEach((count_, i) => {
          const high = count_ / most / 1.05 * height;
          context.fillRect(left + i * width / energy.length, top + height - high, width / energy.length, high);
        });
        if (layers.length > 1) this.draw_layers(context, of_layers, (i) => left + i * width / energy.length, (n) => top + height - n / most / 1.05 * height);
      });
    const titles = ["from keV", "frames", ...(layers.length > 1 ? layers.map((_, layer) => `layer ${layer}`) : [])];
    document.getElementById("unit-columns").replaceChildren(...titles.map((title) => Object.assign(cell("th", title), {scope: "col"})));
    show_figures("unit-table", () => energy_rows(energy, bin).map((row, i) =>
      [...row, ...(layers.length > 1 ? of_layers.map((one) => energy_rows(one, bin)[i][1]) : [])]));
    document.getElementById("unit-reading").textContent =
      `BDM ${this.unit.bdm}, DU ${this.unit.du}: ${frames > 0 ? `${count.format(frames)} frames of the run in progress` : "no frames yet"}.`
      + (layers.length > 1 ? ` ${layers.map((locals, layer) => `Layer ${layer} (${layer_lines[layer % layer_lines.length][0]}): ${locals.length} crystals.`).join(" ")}` : "");
  }

  /** The local crystals of each layer of the unit; one list where all are in one layer. */
  layers() {
    const layers = [];
    this.unit.crystals.forEach((crystal, local) => (layers[this.layout.address(crystal).layer] ||= []).push(local));
    return layers.filter((locals) => locals);
  }

  draw_layers(context, of_layers, at_x, at_y) {
    of_layers.forEach((energy, layer) => {
      context.strokeStyle = colour("ink");
      context.lineWidth = 2;
      context.setLineDash(layer_lines[layer % layer_lines.length][1]);
      context.beginPath();
      energy.forEach((n, i) => { context.lineTo(at_x(i), at_y(n)); context.lineTo(at_x(i + 1), at_y(n)); });
      context.stroke();
    });
    context.setLineDash([]);
    context.lineWidth = 1;
  }
}
