// Frames before the calibration: flood maps and energy spectra of spectra.h5.
#include <algorithm>
#include <cmath>

#include "config/energy_bins.hpp"
#include "config/scanner/existing_modules.hpp"
#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {
namespace {

constexpr std::size_t max_cells_across = 1024;

/// Modules side by side, so that the map of all units is about as wide as high.
std::size_t modules_in_row(const config::Geometry& g) {
    const double units = g.bdm_count * g.du_count;
    const auto modules = static_cast<std::size_t>(std::lround(std::sqrt(units) / g.du_count));
    return std::clamp<std::size_t>(modules, 1, g.bdm_count);
}

/// The map of one unit with at most `cells` cells to a side, from 0 to 1.
Matrix thumbnail(const std::uint32_t* flood, std::size_t size, std::size_t cells) {
    const std::size_t together = (size + cells - 1) / cells;
    const std::size_t side = (size + together - 1) / together;
    Matrix out{side, side, std::vector<double>(side * side)};
    for (std::size_t y = 0; y < size; ++y) {
        for (std::size_t x = 0; x < size; ++x)
            out.values[y / together * side + x / together] += flood[y * size + x];
    }
    const double most = max_of(out);
    for (double& v : out.values)
        v = std::min(1.0, v / most);
    return out;
}

}  // namespace

Picture flood_maps(const PictureData& data) {
    const config::Geometry& g = data.scanner.geometry;
    const std::size_t modules = modules_in_row(g);
    const std::size_t across = modules * g.du_count;
    const std::size_t down = (g.bdm_count + modules - 1) / modules;
    const std::size_t cells = std::max<std::size_t>(8, max_cells_across / std::max(across, down) - 1);
    const std::size_t positions = std::size_t{g.position_size} * g.position_size;
    Matrix all;
    std::size_t side = 0;
    std::size_t silent = 0;
    std::size_t units = 0;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        const bool exists = g.crystals_of_unit(unit) > 0;
        if (exists) ++units;
        const std::uint32_t* const flood = data.spectra->floods.data() + unit * positions;
        if (exists && std::all_of(flood, flood + positions, [](std::uint32_t n) { return n == 0; })) ++silent;
        const Matrix one = thumbnail(flood, g.position_size, cells);
        if (all.values.empty()) {
            side = one.rows + 1;  // an empty line between two
            all = {down * side, across * side, std::vector<double>(down * side * across * side)};
        }
        const std::size_t row = unit / across * side;
        const std::size_t column = unit % across * side;
        for (std::size_t i = 0; i < one.values.size(); ++i)
            all.values[(row + i / one.columns) * all.columns + column + i % one.columns] = one.values[i];
    }
    Picture p;
    p.name = "flood-maps";
    p.title = "Flood maps of the DUs";
    p.caption = fmt::format(
        "Positions x (to the right) and y (upwards) of the frames of each DU, whatever their energy (from "
        "spectra.h5), each map in the colours of its own counts. {} BDMs of {} DUs in a row; BDM 0 "
        "is at the bottom left. {} DUs have none.",
        modules, g.du_count, grouped(silent));
    if (units < g.unit_count())
        p.caption += fmt::format(" {} places in the rows are of DUs that the scanner does not have.",
                                 grouped(g.unit_count() - units));
    p.alt = fmt::format("Flood maps of {} DUs. {} have no counts.", units, grouped(silent));
    const auto wide = static_cast<double>(across);
    const auto high = static_cast<double>(down);
    p.height = std::clamp(420.0 * high / wide, 120.0, 900.0) + 58;
    p.draw = [=, all = std::move(all), height = p.height](cairo_t* cairo, const Theme& theme) {
        Plot plot(cairo, theme, {0, 0, picture_width, height}, {"DU in its row", 0, wide}, {"row", 0, high},
                  {0, 12, bar_width});
        plot.heat(all, 1);
        plot.colour_bar(1, "of the brightest");
    };
    return p;
}

Picture energy_of_modules(const PictureData& data) {
    const config::Geometry& g = data.scanner.geometry;
    constexpr std::size_t bins = config::energy_bins;
    Counts counts(g.bdm_count * bins);
    for (std::uint32_t bdm = 0; bdm < g.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < g.du_count; ++du) {
            for (std::uint32_t local = 0; local < g.crystals_of_unit(bdm * g.du_count + du); ++local) {
                const std::size_t crystal = g.crystal(bdm, du, local);
                for (std::size_t bin = 0; bin < bins; ++bin)
                    counts[bdm * bins + bin] += data.spectra->energies[crystal * bins + bin];
            }
        }
    }
    Picture p;
    p.name = "energy-modules";
    p.title = "Energy spectra of the BDMs";
    p.caption =
        "Frames with a position inside a crystal, by the energy that the calibration gives, for each BDM "
        "(from spectra.h5). The last bin holds all higher energies.";
    const std::vector<std::uint32_t> modules = config::existing_modules(g);
    p.alt = fmt::format("Energy spectra of {} BDMs, one above the other.", modules.size());
    p.height = 360;
    show_map(p, {g.bdm_count, bins, doubles(counts)},
             {"energy (keV)", 0, static_cast<double>(bins) * config::energy_bin_keV},
             {"BDM", 0, static_cast<double>(g.bdm_count)}, "frames");
    p.csv = [counts, modules](OutputFile& out) {
        out.text("module,from_keV,to_keV,frames\n");
        constexpr auto width = static_cast<std::size_t>(config::energy_bin_keV);
        for (const std::uint32_t bdm : modules) {
            for (std::size_t bin = 0; bin < bins; ++bin) {
                print(out, "{},{},{},{}\n", bdm, bin * width,
                      bin + 1 < bins ? std::to_string((bin + 1) * width) : "inf", counts[bdm * bins + bin]);
            }
        }
    };
    return p;
}

}  // namespace petacq::petlm
