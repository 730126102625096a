// Energy and time resolution of the BDMs.
#include <algorithm>
#include <cmath>

#include "config/energy_bins.hpp"
#include "config/scanner/existing_modules.hpp"
#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {
namespace {

bool any_of(const Resolutions& r) {
    return std::any_of(r.modules.begin(), r.modules.end(), [](const auto& m) { return m.has_value(); });
}

/// In percent of its energy.
double percent(const Peak& peak) {
    return 100 * peak.fwhm / peak.place;
}

/// One value per BDM, 0 where it is not known.
template <class ValueOf>
std::vector<double> values_of(const Resolutions& r, const ValueOf& value_of) {
    std::vector<double> values;
    for (const auto& module : r.modules)
        values.push_back(module ? value_of(*module) : 0);
    return values;
}

/// Bars from 0, so that differences look as large as they are.
void draw(cairo_t* cairo, const Theme& theme, double top, const std::string& title,
          const std::vector<double>& values, const report::Colour& colour) {
    std::vector<double> edges;
    for (std::size_t i = 0; i <= values.size(); ++i)
        edges.push_back(static_cast<double>(i) - 0.5);
    Plot plot(cairo, theme, {0, top, picture_width, panel}, {"BDM", edges.front(), edges.back()},
              count_axis(title, {values}), {84, 12});
    plot.steps(edges, values, {colour, true});
}

}  // namespace

bool resolution_by_module_known(const PictureData& data) {
    return any_of(data.energy) || any_of(data.time);
}

Picture resolution_of_modules(const PictureData& data) {
    Picture p;
    p.name = "resolution";
    p.title = "Resolution of the BDMs";
    p.caption = "Full width at half maximum; 0 where it is not known.";
    if (any_of(data.energy)) p.caption += " Energy: of the photopeak, " + data.energy.from + '.';
    if (any_of(data.time)) {
        p.caption += " Time: of the pairs of which a photon is in the BDM, " + data.time.from +
                     ". The resolution of one photon is smaller by about the root of 2.";
    }
    p.alt = "Energy and time resolution by BDM.";
    std::size_t panels = 0;
    for (const Resolutions* r : {&data.energy, &data.time})
        panels += any_of(*r) ? 1 : 0;
    p.height = static_cast<double>(panels) * panel;
    p.draw = [&data](cairo_t* cairo, const Theme& theme) {
        double top = 0;
        if (any_of(data.energy)) {
            draw(cairo, theme, top, "energy resolution (%)", values_of(data.energy, percent), theme.singles);
            top += panel;
        }
        if (!any_of(data.time)) return;
        draw(cairo, theme, top, "time resolution (ps)",
             values_of(data.time, [](const Peak& peak) { return peak.fwhm; }), theme.prompts);
    };
    p.csv = [&data](OutputFile& out) {
        out.text("bdm,photopeak_keV,energy_fwhm_keV,energy_fwhm_keV_error,time_fwhm_ps,time_fwhm_ps_error\n");
        const auto known = [](const Resolutions& r, std::uint32_t bdm) {
            return bdm < r.modules.size() && r.modules[bdm] ? *r.modules[bdm]
                                                            : Peak{std::nan(""), std::nan(""), std::nan("")};
        };
        for (const std::uint32_t bdm : config::existing_modules(data.scanner.geometry)) {
            const Peak energy = known(data.energy, bdm);
            const Peak time = known(data.time, bdm);
            print(out, "{},{:.2f},{:.3f},{:.3f},{:.2f},{:.2f}\n", bdm, energy.place, energy.fwhm,
                  energy.error, time.fwhm, time.error);
        }
    };
    return p;
}

Resolutions energy_resolution_of(const PictureData& data) {
    Resolutions r;
    if (data.singles) {
        r.from = "by the singles in " + data.singles->from;
        r.whole = photopeak_of(data.singles->energy, data.singles->energy_bin_keV);
        for (const Counts& module : data.singles->modules)
            r.modules.push_back(photopeak_of(module, data.singles->energy_bin_keV));
    } else {
        r.from = "by the photons of prompts";
        r.whole = photopeak_of(data.pairs.prompts.energy, config::energy_bin_keV);
    }
    if (!r.whole) r.from = "unknown, for lack of a photopeak near 511 keV or of counts in it, " + r.from;
    return r;
}

Resolutions time_resolution_of(const PictureData& data) {
    Resolutions r;
    if (!data.bins.widths) {
        r.from = "unknown, because " + (data.scanner.rotation
                                            ? std::string("the scanner turns")
                                            : "there is no image, which would say where the source is");
        return r;
    }
    const TimeWidths& widths = *data.bins.widths;
    const std::vector<TimeCounts>& counts = data.pairs.prompts.widths;
    r.whole = time_peak_of(counts.front(), widths.bin_ps());
    for (std::size_t i = 1; i < counts.size(); ++i)
        r.modules.push_back(r.whole ? time_peak_of(counts[i], widths.bin_ps()) : std::nullopt);
    r.from =
        r.whole
            ? "by the time differences of prompts, less what the middle and the extent of the source in the "
              "image make"
            : "unknown: too few prompts, a coincidence window that cuts off the peak, or a source "
              "whose extent makes most of the width";
    return r;
}

}  // namespace petacq::petlm
