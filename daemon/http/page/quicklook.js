// The live sinogram, the quick-look image and the histograms of gammas of the run in progress. They change every few
// seconds, so they are requested less often than the figures of the page.
"use strict";

const quick_look_ms = 2500;

class QuickLook {
  constructor() {
    this.figure = document.getElementById("quick-look");
    this.reading = document.getElementById("quick-look-reading");
    this.sinogram = null;
    this.image = null;
    this.gammas = null;
    redraw_with(() => this.draw());
  }

  async update() {
    if (!document.hidden) {
      try {
        const [sinogram, image] = [await get("/sinogram"), await get("/image")];
        // A daemon that has restarted has none until its first run.
        const known = sinogram !== null && image !== null;
        [this.sinogram, this.image] = known ? [sinogram, image] : [null, null];
        this.figure.hidden = !known;
        this.gammas = await get("/gammas");
        this.draw();
      } catch (error) {
        // The page says that the daemon does not answer.
      }
    }
    setTimeout(() => this.update(), quick_look_ms);
  }

  draw() {
    charts.showGammas(this.gammas);
    if (!this.image) return;
    const {sinogram, image} = this;
    const radius = sinogram.radius_mm;
    draw_picture(document.getElementById("sinogram"), sinogram.radial, sinogram.angles, sinogram.counts, high_of(sinogram.counts, 0.999),
      {from: -radius, to: radius, title: "distance from the axis r, mm"}, {from: 0, to: 180, title: "angle φ, degrees", step: 45});
    const half = image.size * image.step_mm / 2;
    draw_picture(document.getElementById("image"), image.size, image.size, image.values, high_of(image.values, 0.999),
      {from: -half, to: half, title: "x, mm"}, {from: -half, to: half, title: "y, mm"});
    const less = image.delayeds > 0 ? `, less ${count.format(image.delayeds)} delayeds in the image` : "";
    const missing = image.dropped > 0 ? `; ${count.format(image.dropped)} coincidences not sampled` : "";
    this.reading.textContent =
      `Of run ${image.run}${image.running ? "" : ", which has ended"}: ${count.format(image.prompts)} prompts${less}${missing}.`;
  }
}

// After all scripts.
document.addEventListener("DOMContentLoaded", () => new QuickLook().update());
