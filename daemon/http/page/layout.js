// Where the crystals are on the map: the document /scanner as pixels.
"use strict";

const most_pixels = 2400;  // of a side of the map

/** A ring has one pixel for each crystal. Other scanners are drawn to scale, unrolled around the axis, layer above layer. */
class CrystalLayout {
  /** `layer`: the only one that is shown; null: all. */
  constructor(scanner, layer = null) {
    this.scanner = scanner;
    this.ring = scanner.ring;
    this.layers = Math.max(...scanner.types.map((type) => type.layers.length));
    this.unit_of = new Uint32Array(scanner.crystals);
    let next = 0;
    for (let i = 0; i < scanner.unit_of_crystals.length; i += 2) {
      this.unit_of.fill(scanner.unit_of_crystals[i], next, next + scanner.unit_of_crystals[i + 1]);
      next += scanner.unit_of_crystals[i + 1];
    }
    this.boxes = [];  // of the modules: {module, layer, left, bottom, right, top}, in pixels
    if (this.ring) this.place_ring();
    else this.place_modules(layer === null ? [...Array(this.layers).keys()] : [layer]);
  }

  place_ring() {
    const {crystals, rings, crystals_per_module: {around, along}} = this.ring;
    [this.columns, this.rows] = [crystals, rings];
    this.crystal = Int32Array.from({length: crystals * rings}, (_, i) => i);
    this.scanner.modules.forEach((_, module) => {
      const [i, j] = [module % (crystals / around), Math.floor(module / (crystals / around))];
      this.boxes.push({module, layer: 0, left: i * around, bottom: j * along, right: (i + 1) * around, top: (j + 1) * along});
    });
  }

  place_modules(layers) {
    const {types, modules, map} = this.scanner;
    const sizes = types.flatMap((type) => type.layers).flatMap((layer) => [...layer.y_size_mm, ...layer.z_size_mm]);
    const gap = 0.06 * map.height_mm;
    const height = layers.length * (map.height_mm + gap) - gap;
    // Two pixels for the smallest crystal, if that is not too many.
    const step = Math.max(sizes.reduce((a, b) => Math.min(a, b)) / 2, map.width_mm / most_pixels, height / most_pixels);
    this.columns = Math.max(1, Math.ceil(map.width_mm / step));
    this.rows = Math.max(1, Math.ceil(height / step));
    this.crystal = new Int32Array(this.columns * this.rows).fill(-1);
    layers.forEach((layer, shown) => {
      const up = shown * (map.height_mm + gap);
      modules.forEach((module, number) => {
        if (layer >= types[module.type].layers.length) return;
        const box = {module: number, layer, left: this.columns, bottom: this.rows, right: 0, top: 0};
        this.for_crystals(module, types[module.type].layers[layer], (crystal, left, bottom, right, top) => {
          const [from_x, from_y] = [Math.round(left / step), Math.round((bottom + up) / step)];
          const to_x = Math.min(this.columns, Math.max(from_x + 1, Math.round(right / step)));
          const to_y = Math.min(this.rows, Math.max(from_y + 1, Math.round((top + up) / step)));
          for (let y = from_y; y < to_y; ++y) this.crystal.fill(crystal, y * this.columns + from_x, y * this.columns + to_x);
          box.left = Math.min(box.left, from_x);
          box.bottom = Math.min(box.bottom, from_y);
          box.right = Math.max(box.right, to_x);
          box.top = Math.max(box.top, to_y);
        });
        this.boxes.push(box);
      });
    });
  }

  /** Calls use(crystal, left, bottom, right, top) with the places of the crystals of a layer of a module on the map, mm. */
  for_crystals({first, map}, layer, use) {
    const side = (axis, y_size, z_size) => (Math.abs(map.y[axis]) * y_size + Math.abs(map.z[axis]) * z_size) / 2;
    layer.y_mm.forEach((y, column) => layer.z_mm.forEach((z, row) => {
      const at = (axis) => map.front_mm[axis] + y * map.y[axis] + z * map.z[axis];
      const half = [0, 1].map((axis) => side(axis, layer.y_size_mm[column], layer.z_size_mm[row]));
      use(first + layer.first + column * layer.column_step + row * layer.row_step,
        at(0) - half[0], at(1) - half[1], at(0) + half[0], at(1) + half[1]);
    }));
  }

  /** {module, layer, column, row} of a crystal. */
  address(crystal) {
    if (this.ring) {
      const {crystals, crystals_per_module: {around, along}} = this.ring;
      const [x, y] = [crystal % crystals, Math.floor(crystal / crystals)];
      return {module: Math.floor(x / around) + Math.floor(y / along) * (crystals / around), layer: 0, column: x % around, row: y % along};
    }
    // Numbers rise module by module, layer by layer.
    const {modules, types} = this.scanner;
    let [low, high] = [0, modules.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (modules[middle].first <= crystal) low = middle;
      else high = middle;
    }
    const layers = types[modules[low].type].layers;
    const in_module = crystal - modules[low].first;
    const layer = layers.length - 1 - [...layers].reverse().findIndex((one) => one.first <= in_module);
    const left = in_module - layers[layer].first;
    const rows = layers[layer].z_mm.length;
    return {module: low, layer, column: Math.floor(left / rows), row: left % rows};
  }

  bdm_of(crystal) {
    return Math.floor(this.unit_of[crystal] / this.scanner.units_per_module);
  }
  du_of(crystal) {
    return this.unit_of[crystal] % this.scanner.units_per_module;
  }

  /** Of the crystal at a pixel; -1: there is none. */
  at(x, y) {
    return this.crystal[x + y * this.columns];
  }

  /** The pixel of the next crystal from a place in a direction; with `far`, the next that is of another module. */
  next(x, y, right, up, far) {
    const here = this.at(x, y);
    const module = here < 0 ? -1 : this.address(here).module;
    let [to_x, to_y] = [x, y];
    for (let i = 0; i < this.columns + this.rows; ++i) {
      to_x = (to_x + right + this.columns) % this.columns;
      to_y += up;
      if (to_y < 0 || to_y >= this.rows) break;
      const crystal = this.at(to_x, to_y);
      if (crystal < 0 || crystal === here) continue;
      if (!far || this.address(crystal).module !== module) return [to_x, to_y];
    }
    return [x, y];
  }

  /** Around the pixels of a crystal next to one of them. */
  box_of(x, y) {
    const crystal = this.at(x, y);
    const box = {left: x, bottom: y, right: x + 1, top: y + 1};
    while (box.left > 0 && this.at(box.left - 1, y) === crystal) --box.left;
    while (box.right < this.columns && this.at(box.right, y) === crystal) ++box.right;
    while (box.bottom > 0 && this.at(x, box.bottom - 1) === crystal) --box.bottom;
    while (box.top < this.rows && this.at(x, box.top) === crystal) ++box.top;
    return box;
  }

  /** Around the crystals of a BDM, one box for each layer of a module that has some. */
  boxes_of(bdm) {
    return this.boxes.map((module) => {
      const box = {left: module.right, bottom: module.top, right: module.left, top: module.bottom};
      for (let y = module.bottom; y < module.top; ++y) {
        for (let x = module.left; x < module.right; ++x) {
          const crystal = this.at(x, y);
          if (crystal < 0 || this.bdm_of(crystal) !== bdm) continue;
          box.left = Math.min(box.left, x);
          box.bottom = Math.min(box.bottom, y);
          box.right = Math.max(box.right, x + 1);
          box.top = Math.max(box.top, y + 1);
        }
      }
      return box;
    }).filter((box) => box.right > box.left);
  }

  /** [bdm, [du...]] of the units that exist. */
  units() {
    const units = new Map();
    for (let i = 0; i < this.scanner.unit_of_crystals.length; i += 2) {
      const unit = this.scanner.unit_of_crystals[i];
      const [bdm, du] = [Math.floor(unit / this.scanner.units_per_module), unit % this.scanner.units_per_module];
      if (!units.has(bdm)) units.set(bdm, new Set());
      units.get(bdm).add(du);
    }
    return [...units].map(([bdm, dus]) => [bdm, [...dus].sort((a, b) => a - b)]).sort((a, b) => a[0] - b[0]);
  }
}
