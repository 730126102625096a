// Energies and time differences.
#include <algorithm>
#include <cmath>

#include "config/energy_bins.hpp"
#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {
namespace {

constexpr std::size_t shown_bins = config::energy_bins - 1;  // the last bin is not on the axis
constexpr double pairs_bin_keV = config::energy_bin_keV;

std::vector<double> energy_edges(double bin_keV) {
    std::vector<double> edges;
    for (std::size_t i = 0; i <= shown_bins; ++i)
        edges.push_back(static_cast<double>(i) * bin_keV);
    return edges;
}

std::vector<double> spectrum(const Counts& counts) {
    return {counts.begin(), counts.begin() + shown_bins};
}

/// An axis around all counts, rounded to 50 keV.
Axis energy_axis(std::initializer_list<std::span<const double>> spectra, double bin_keV, bool from_zero) {
    std::size_t first = shown_bins;
    std::size_t last = 0;
    for (const auto& values : spectra) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (values[i] <= 0) continue;
            first = std::min(first, i);
            last = std::max(last, i + 1);
        }
    }
    if (last == 0 || from_zero) first = 0;
    if (last == 0) last = shown_bins;
    const double from = std::floor(static_cast<double>(first) * bin_keV / 50) * 50;
    const double to = std::ceil(static_cast<double>(last) * bin_keV / 50) * 50;
    return {"energy (keV)", from, to};
}

std::string peak_text(const std::vector<double>& values, double bin_keV) {
    const auto peak = std::max_element(values.begin(), values.end());
    if (peak == values.end() || *peak <= 0) return "There are none.";
    const double at = (static_cast<double>(peak - values.begin()) + 0.5) * bin_keV;
    return fmt::format("The fullest bin is at {:.0f} keV.", at);
}

void draw_window(Plot& plot, const PictureData& data) {
    if (data.energy_window() == nullptr) return;
    plot.vertical(data.energy_window()->lower_keV);
    plot.vertical(data.energy_window()->upper_keV);
}

std::string window_text(const PictureData& data) {
    if (data.energy_window() == nullptr) return "";
    return fmt::format(" Vertical lines: the energy window, {} to {} keV.", data.energy_window()->lower_keV,
                       data.energy_window()->upper_keV);
}

std::string gamma_window_text(const PictureData& data) {
    if (!data.triples) return "";
    const config::Gammas& rules = data.triples->rules;
    return fmt::format(" Further lines: the gamma window, {} to {} keV.", rules.lower_keV, rules.upper_keV);
}

/// The first two fields of a row of a CSV; the last bin reaches to infinity.
std::string energy_range(std::size_t bin, double bin_keV) {
    const double from = static_cast<double>(bin) * bin_keV;
    if (bin == shown_bins) return fmt::format("{},inf", from);
    return fmt::format("{},{}", from, from + bin_keV);
}

}  // namespace

Picture energy_of_singles(const PictureData& data) {
    const Singles& singles = *data.singles;
    const std::vector<double> values = spectrum(singles.energy);
    const double bin_keV = singles.energy_bin_keV;
    const std::string peak = peak_text(values, bin_keV);
    Picture p;
    p.name = "energy-singles";
    p.title = "Energy of the singles";
    p.caption = fmt::format(
        "{} of the run, in bins of {} keV (from {}). {}{}",
        singles.all_energies ? "All converted singles, whatever their energy," : "Singles that were saved",
        bin_keV, singles.from, peak, window_text(data) + gamma_window_text(data));
    p.alt = "Histogram of the energies of single photons in keV. " + peak;
    p.height = histogram_height;
    p.draw = [&data, values, bin_keV](cairo_t* cairo, const Theme& theme) {
        Plot plot(cairo, theme, {0, 0, picture_width, histogram_height},
                  energy_axis({values}, bin_keV, data.singles->all_energies),
                  count_axis(fmt::format("singles per {} keV", bin_keV), {values}));
        plot.steps(energy_edges(bin_keV), values, {theme.singles, true});
        draw_window(plot, data);
        if (data.triples) {
            plot.vertical(data.triples->rules.lower_keV);
            plot.vertical(data.triples->rules.upper_keV);
        }
    };
    p.csv = [&data, bin_keV](OutputFile& out) {
        out.text("from_keV,to_keV,singles\n");
        for (std::size_t i = 0; i < config::energy_bins; ++i)
            print(out, "{},{}\n", energy_range(i, bin_keV), data.singles->energy[i]);
    };
    return p;
}

Picture energy_of_pairs(const PictureData& data) {
    const std::vector<double> prompts = spectrum(data.pairs.prompts.energy);
    const std::vector<double> delayeds = spectrum(data.pairs.delayeds.energy);
    const std::string peak = peak_text(prompts, pairs_bin_keV);
    Picture p;
    p.name = "energy-pairs";
    p.title = "Energy of the photons in pairs";
    p.caption =
        fmt::format("Both photons of each coincidence, in bins of {} keV, from the list-mode. Prompts: {}{}",
                    pairs_bin_keV, peak, window_text(data));
    p.alt = "Histogram of the energies of the photons in coincidences in keV. Prompts: " + peak;
    p.height = histogram_height;
    p.draw = [&data, prompts, delayeds](cairo_t* cairo, const Theme& theme) {
        Plot plot(cairo, theme, {0, 0, picture_width, histogram_height},
                  energy_axis({prompts, delayeds}, pairs_bin_keV, false),
                  count_axis(fmt::format("photons per {} keV", pairs_bin_keV), {prompts, delayeds}),
                  {0, legend_height});
        const std::vector<LegendEntry> entries = {{"prompts", {theme.prompts, true}},
                                                  {"delayeds", {theme.delayeds, true, true}}};
        plot.steps(energy_edges(pairs_bin_keV), prompts, entries[0].pen);
        if (data.delayeds()) plot.steps(energy_edges(pairs_bin_keV), delayeds, entries[1].pen);
        draw_window(plot, data);
        plot.legend(std::span(entries).first(data.delayeds() ? 2 : 1));
    };
    p.csv = [&data](OutputFile& out) {
        out.text("from_keV,to_keV,prompts,delayeds\n");
        for (std::size_t i = 0; i < config::energy_bins; ++i)
            print(out, "{},{},{}\n", energy_range(i, pairs_bin_keV), data.pairs.prompts.energy[i],
                  data.pairs.delayeds.energy[i]);
    };
    return p;
}

Picture time_differences(const PictureData& data) {
    const DifferenceBins bins = data.bins.differences;
    const double tick_ns = data.scanner.tick_ps * 1e-3;
    std::vector<double> edges;
    for (std::size_t i = 0; i <= bins.count(); ++i) {
        const double middle = static_cast<double>(bins.least) + static_cast<double>(i);
        edges.push_back((middle - 0.5) * bins.width * tick_ns);
    }
    const std::vector<double> prompts = doubles(data.pairs.prompts.difference);
    const std::vector<double> delayeds = doubles(data.pairs.delayeds.difference);
    const std::uint64_t beyond = data.pairs.prompts.beyond_window + data.pairs.delayeds.beyond_window;
    Picture p;
    p.name = "time-differences";
    p.title = "Time differences";
    p.caption =
        fmt::format("Time of the crystal with the larger number less that of the other, in bins of {} ps. ",
                    bins.width * data.scanner.tick_ps);
    if (data.delayeds())
        p.caption += "The delayeds, shifted back by their delay, are the level of the randoms. ";
    p.caption += fmt::format(
        "{}: \u00b1{} ticks of {} ps.",
        data.coverage.rules.coincidence ? "Coincidence window" : "Range (the file names no window)",
        bins.window, data.scanner.tick_ps);
    if (beyond != 0) p.caption += fmt::format(" {} pairs are further apart and not shown.", grouped(beyond));
    p.alt =
        "Histogram of the time differences of the two photons of each coincidence in nanoseconds: prompts"
        " over delayeds.";
    p.height = histogram_height;
    p.draw = [&data, edges, prompts, delayeds](cairo_t* cairo, const Theme& theme) {
        Plot plot(
            cairo, theme, {0, 0, picture_width, histogram_height},
            {"time difference (ns)", edges.front(), edges.back()},
            count_axis(fmt::format("pairs per {} ps", data.bins.differences.width * data.scanner.tick_ps),
                       {prompts, delayeds}),
            {0, legend_height});
        const std::vector<LegendEntry> entries = {{"prompts", {theme.prompts, true}},
                                                  {"delayeds", {theme.delayeds, true, true}}};
        plot.steps(edges, prompts, entries[0].pen);
        if (data.delayeds()) plot.steps(edges, delayeds, entries[1].pen);
        plot.legend(std::span(entries).first(data.delayeds() ? 2 : 1));
    };
    p.csv = [&data, bins](OutputFile& out) {
        out.text("from_ticks,to_ticks,prompts,delayeds\n");
        for (std::size_t i = 0; i < bins.count(); ++i) {
            const std::int64_t middle = (bins.least + static_cast<std::int64_t>(i)) * bins.width;
            print(out, "{},{},{},{}\n", middle - bins.width / 2, middle + bins.width / 2,
                  data.pairs.prompts.difference[i], data.pairs.delayeds.difference[i]);
        }
    };
    return p;
}

}  // namespace petacq::petlm
