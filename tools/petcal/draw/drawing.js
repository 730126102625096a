// Draws the scanner of `scene` in the canvas of the page: boxes of detector units and, on demand, their crystals.
// Plain canvas: the faces that look at the viewer, the furthest first.
"use strict";

const scene = JSON.parse(document.getElementById("scene").textContent);
const canvas = document.getElementById("drawing");
const context = canvas.getContext("2d");
const about = document.getElementById("about");
const legend = document.getElementById("legend");
const choose = { colour: document.getElementById("colour"), crystals: document.getElementById("crystals"),
                 numbers: document.getElementById("numbers") };
const MOST_CRYSTALS = 20000;

const combine = (base, ...terms) => base.map((v, i) => terms.reduce((sum, [factor, axis]) => sum + factor * axis[i], v));
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

// Corners as those of SceneBox: bit 0 high along y, bit 1 high along z, bit 2 the back.
function cornersOf(module, y, z, depth) {
  return [0, 1, 2, 3, 4, 5, 6, 7].map(i => combine(module.front, [depth[i >> 2 & 1], module.outward],
                                                   [y[i & 1], module.along_y], [z[i >> 1 & 1], module.along_z]));
}
const FACES = [[[0, 1, 3, 2], "outward", -1], [[4, 5, 7, 6], "outward", 1], [[0, 2, 6, 4], "along_y", -1],
               [[1, 3, 7, 5], "along_y", 1], [[0, 1, 5, 4], "along_z", -1], [[2, 3, 7, 6], "along_z", 1]];

const layerOf = (module, layer) => scene.types[module.type].layers[layer];
const depthOf = layer => [layer.front, layer.front + layer.length];
const edge = (row, i, side) => row.centres[i] + side * row.sizes[i] / 2;

const boxes = scene.boxes.map(([module, layer, bdm, du, board, firstColumn, lastColumn, firstRow, lastRow]) => {
  const place = scene.modules[module];
  const crystals = layerOf(place, layer);
  return { place, module, layer, bdm, du, board, type: place.type, firstColumn, lastColumn, firstRow, lastRow,
           corners: cornersOf(place, [edge(crystals.y, firstColumn, -1), edge(crystals.y, lastColumn, 1)],
                              [edge(crystals.z, firstRow, -1), edge(crystals.z, lastRow, 1)], depthOf(crystals)) };
});

function crystalsOf(box) {
  if (box.crystals) return box.crystals;
  const layer = layerOf(box.place, box.layer);
  const [first, perColumn, perRow] = box.place.numbers[box.layer];
  box.crystals = [];
  for (let column = box.firstColumn; column <= box.lastColumn; ++column) {
    for (let row = box.firstRow; row <= box.lastRow; ++row) {
      box.crystals.push({ ...box, crystals: null, crystal: first + column * perColumn + row * perRow, column, row,
                          corners: cornersOf(box.place, [edge(layer.y, column, -1), edge(layer.y, column, 1)],
                                             [edge(layer.z, row, -1), edge(layer.z, row, 1)], depthOf(layer)) });
    }
  }
  return box.crystals;
}

const KINDS = {
  module: { of: box => box.module, name: n => `module ${n}` },
  bdm: { of: box => box.bdm, name: n => `BDM ${n}` },
  board: { of: box => box.board, name: n => n === null ? "no board listed" : `board ${scene.boards[n]}` },
  type: { of: box => box.type, name: n => scene.types[n].name },
  layer: { of: box => box.layer, name: n => `layer ${n}` },
};

// As colour_of() of the pictures.
function colourOf(number, shade) {
  if (number === null) return `rgb(${[154, 165, 177].map(v => Math.round(v * shade))})`;
  const hue = (0.58 + 0.618034 * number) % 1 * 6;
  const part = offset => {
    const at = (offset + hue) % 6;
    return Math.round(255 * shade * (0.85 - 0.5 * Math.min(Math.max(Math.min(at, 4 - at), 0), 1)));
  };
  return `rgb(${part(5)}, ${part(3)}, ${part(1)})`;
}

const view = { turn: -0.6, tilt: -0.45, zoom: 1, x: 0, y: 0 };
let selected = null;   // a box whose crystals are drawn
let dragging = null;
let drawn = [];        // polygons of the last drawing, the nearest last
let numbers = [];      // labels of the last drawing: the middle, half the width, and the box that each names
let asked = false;

// Axes of the screen in the scanner: right, down, and towards the viewer.
function axes() {
  const [c, s, ct, st] = [Math.cos(view.turn), Math.sin(view.turn), Math.cos(view.tilt), Math.sin(view.tilt)];
  return { right: [c, 0, s], down: [st * s, -ct, -st * c], towards: [-ct * s, -st, ct * c] };
}

function projection() {
  const { right, down, towards } = axes();
  const scale = 0.45 * Math.min(canvas.width, canvas.height) / scene.reach * view.zoom;
  return { towards, at: p => [canvas.width / 2 + view.x + scale * dot(p, right),
                              canvas.height / 2 + view.y + scale * dot(p, down)] };
}

function shown() {
  if (choose.crystals.checked && !dragging) return boxes.flatMap(crystalsOf);
  return selected && !dragging ? boxes.flatMap(box => box === selected ? crystalsOf(box) : [box]) : boxes;
}

function draw() {
  asked = false;
  const style = getComputedStyle(document.body);
  const { towards, at } = projection();
  context.clearRect(0, 0, canvas.width, canvas.height);
  const kind = KINDS[choose.colour.value];
  [drawn, numbers] = [[], []];
  for (const box of shown()) {
    for (const [corners, axis, sign] of FACES) {
      const facing = sign * dot(box.place[axis], towards);
      if (facing <= 0.001) continue;
      const places = corners.map(i => box.corners[i]);
      const middle = combine([0, 0, 0], ...places.map(p => [0.25, p]));
      drawn.push({ box, axis, depth: dot(middle, towards), points: places.map(at),
                   fill: colourOf(kind.of(box), 0.62 + 0.38 * facing) });
    }
  }
  drawn.sort((a, b) => a.depth - b.depth);
  const scale = window.devicePixelRatio || 1;
  context.lineWidth = 0.6 * scale;
  for (const { points, fill } of drawn) {
    trace(context, points);
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = "rgba(0, 0, 0, 0.45)";
    context.stroke();
  }
  context.font = `${12 * scale}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  drawAxes(at, style.color);
  if (choose.numbers.checked) drawNumbers(kind, scale);
}

function drawAxes(at, colour) {
  const length = 0.35 * scene.reach;
  context.strokeStyle = context.fillStyle = colour;
  for (const [name, end] of [["x", [length, 0, 0]], ["y", [0, length, 0]], ["z", [0, 0, length]]]) {
    const [from, to] = [at([0, 0, 0]), at(end)];
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.stroke();
    context.fillText(name, to[0] + 0.08 * (to[0] - from[0]), to[1] + 0.08 * (to[1] - from[1]));
  }
}

// Places of a label in a face, the middle first.
const PARTS = [0.5, 0.3, 0.7, 0.15, 0.85];
const PLACES = PARTS.flatMap(u => PARTS.map(v => [(1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v]));

function trace(target, points) {
  target.beginPath();
  points.forEach(([x, y], i) => i ? target.lineTo(x, y) : target.moveTo(x, y));
  target.closePath();
}

// The label that belongs to each place of the canvas: the polygons once more, with labels for colours.
const onTop = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
function labelsOnTop(labels) {
  [onTop.canvas.width, onTop.canvas.height] = [canvas.width, canvas.height];
  drawn.forEach(({ points }, i) => {
    const code = labels[i].code;
    onTop.fillStyle = `rgb(${code & 255}, ${code >> 8 & 255}, ${code >> 16})`;
    trace(onTop, points);
    onTop.fill();
  });
  const codes = new Uint32Array(onTop.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return (x, y) => x < 0 || y < 0 || x >= canvas.width || y >= canvas.height ? 0
    : codes[Math.floor(y) * canvas.width + Math.floor(x)] & 0xffffff;
}

// One of each number, none over another, and each where its own box is seen. In detail the numbers are those of
// crystals. As the pictures: whole labels in the middle of front or back, then anywhere, then labels that are too large.
function drawNumbers(kind, scale) {
  const byType = choose.colour.value === "type";
  const known = new Map();
  const labels = drawn.map(({ box }) => {
    const number = kind.of(box);
    const crystal = box.crystal !== undefined;
    const key = crystal ? `c${box.crystal}` : byType ? `t${box.module}` : `b${number}`;
    if (!known.has(key)) {
      const text = crystal ? box.crystal : byType ? kind.name(number) : choose.colour.value === "board" ? scene.boards[number] : number;
      known.set(key, { code: known.size + 1, text: String(text), done: number === null });
    }
    return known.get(key);
  });
  const at = labelsOnTop(labels);
  const high = 7 * scale;
  const place = ({ points, box }, label, weights, inner) => {
    let [x, y] = [0, 0];
    for (let i = 0; i < 4; ++i) {
      x += weights[i] * points[i][0];
      y += weights[i] * points[i][1];
    }
    const own = (dx, dy) => at(x + inner * dx, y + inner * dy) === label.code;
    if (!own(0, 0)) return;
    label.half ??= context.measureText(label.text).width / 2 + 2 * scale;
    const half = label.half;
    if (![-1, 1].every(i => own(i * half, -high) && own(i * half, high))) return;
    if (numbers.some(p => Math.abs(p.x - x) < p.half + half && Math.abs(p.y - y) < 2 * high)) return;
    label.done = true;
    numbers.push({ x, y, half, box });
    context.fillStyle = "rgba(255, 255, 255, 0.8)";
    context.fillRect(x - half, y - high, 2 * half, 2 * high);
    context.fillStyle = "#1f2933";
    context.fillText(label.text, x, y);
  };
  // `inner`: this part of the width and height of a label must lie on its own box.
  for (const [outwardOnly, places, inner] of [[true, 1, 1], [false, PLACES.length, 1], [false, PLACES.length, 0.5]]) {
    for (let i = drawn.length - 1; i >= 0; --i) {
      if (outwardOnly && drawn[i].axis !== "outward") continue;
      for (let k = 0; k < places && !labels[i].done; ++k) place(drawn[i], labels[i], PLACES[k], inner);
    }
  }
}

function ask() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(draw);
}

function showLegend() {
  const kind = KINDS[choose.colour.value];
  const numbers = [...new Set(boxes.map(kind.of))].sort((a, b) => (a ?? -1) - (b ?? -1));
  legend.replaceChildren(...numbers.slice(0, 60).map(number => {
    const item = document.createElement("span");
    const swatch = document.createElement("span");
    swatch.style.cssText = `display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .8em;background:${colourOf(number, 1)}`;
    item.append(swatch, kind.name(number));
    return item;
  }));
  if (numbers.length > 60) legend.append(` and ${numbers.length - 60} more`);
}

function describe(box) {
  const type = scene.types[box.type];
  const module = `module ${box.module} (${type.name}${box.place.group ? ", group " + box.place.group : ""})`;
  const where = `${module}, layer ${box.layer} of ${layerOf(box.place, box.layer).material}, BDM ${box.bdm}, DU ${box.du}`;
  const board = scene.boards.length === 0 ? "" : `, ${KINDS.board.name(box.board)}`;
  if (box.crystal === undefined) {
    const [y, z] = [box.lastColumn - box.firstColumn + 1, box.lastRow - box.firstRow + 1];
    return `${where}${board}: ${y} × ${z} crystals`;
  }
  const front = combine([0, 0, 0], ...[0, 1, 2, 3].map(i => [0.25, box.corners[i]]));
  return `crystal ${box.crystal}: ${where}${board}, column ${box.column}, row ${box.row}, front at ` +
         `${front.map(v => v.toFixed(2)).join(", ")} mm`;
}

function boxAt(event) {
  const place = canvas.getBoundingClientRect();
  const x = (event.clientX - place.left) * canvas.width / place.width;
  const y = (event.clientY - place.top) * canvas.height / place.height;
  for (let i = drawn.length - 1; i >= 0; --i) {
    const { points, box } = drawn[i];
    let inside = false;
    for (let a = 0, b = 3; a < 4; b = a++) {
      const [[ax, ay], [bx, by]] = [points[a], points[b]];
      if (ay > y !== by > y && x < (bx - ax) * (y - ay) / (by - ay) + ax) inside = !inside;
    }
    if (inside) return box;
  }
  return null;
}

function resize() {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(canvas.clientHeight * scale);
  ask();
}

canvas.addEventListener("pointerdown", event => {
  canvas.setPointerCapture(event.pointerId);
  dragging = { x: event.clientX, y: event.clientY, moved: false, shift: event.shiftKey || event.button !== 0 };
});
canvas.addEventListener("pointermove", event => {
  if (!dragging) {
    const box = boxAt(event);
    about.textContent = box ? describe(box) : "";
    return;
  }
  const [dx, dy] = [event.clientX - dragging.x, event.clientY - dragging.y];
  if (!dragging.moved && Math.hypot(dx, dy) < 4) return;
  dragging.moved = true;
  dragging.x = event.clientX;
  dragging.y = event.clientY;
  const scale = window.devicePixelRatio || 1;
  if (dragging.shift) {
    view.x += dx * scale;
    view.y += dy * scale;
  } else {
    view.turn += dx * 0.008;
    view.tilt = Math.min(Math.max(view.tilt - dy * 0.008, -1.57), 1.57);
  }
  ask();
});
canvas.addEventListener("pointerup", event => {
  const click = dragging && !dragging.moved;
  dragging = null;
  if (click) {
    const box = boxAt(event);
    selected = box === null ? null : boxes.find(b => b.corners === box.corners || (b.crystals || []).includes(box));
    about.textContent = box ? describe(box) : "";
  }
  ask();
});
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  view.zoom = Math.min(Math.max(view.zoom * Math.exp(-event.deltaY * 0.001), 0.2), 60);
  ask();
}, { passive: false });
canvas.addEventListener("contextmenu", event => event.preventDefault());
canvas.addEventListener("keydown", event => {
  const step = { ArrowLeft: ["turn", -0.1], ArrowRight: ["turn", 0.1], ArrowUp: ["tilt", 0.1], ArrowDown: ["tilt", -0.1] };
  if (step[event.key]) view[step[event.key][0]] += step[event.key][1];
  else if (event.key === "+") view.zoom *= 1.2;
  else if (event.key === "-") view.zoom /= 1.2;
  else return;
  event.preventDefault();
  ask();
});
choose.colour.addEventListener("change", () => { showLegend(); ask(); });
choose.crystals.addEventListener("change", ask);
choose.numbers.addEventListener("change", ask);
choose.crystals.disabled = scene.crystals > MOST_CRYSTALS;
window.addEventListener("resize", resize);
showLegend();
resize();
