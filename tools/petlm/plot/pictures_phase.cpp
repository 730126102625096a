// Rates by the phase of a breath or heart beat.
#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {
namespace {

constexpr Margins margins = {84, legend_height};

std::vector<double> rates(const PictureData& data, const Counts& counts,
                          const std::vector<std::uint64_t>& live_ticks) {
    std::vector<double> out;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double seconds = data.seconds(live_ticks[i]);
        out.push_back(seconds > 0 ? static_cast<double>(counts[i]) / seconds : 0);
    }
    return out;
}

void draw(cairo_t* cairo, const Theme& theme, const PictureData& data, std::size_t number) {
    const auto live = data.bins.phases[number].cycles.live_ticks(PhaseBins::count);
    const std::vector<double> prompts = rates(data, data.pairs.prompts.phases[number], live);
    const std::vector<double> delayeds = rates(data, data.pairs.delayeds.phases[number], live);
    std::vector<double> edges;
    for (std::uint32_t i = 0; i <= PhaseBins::count; ++i)
        edges.push_back(static_cast<double>(i) / PhaseBins::count);
    Plot plot(cairo, theme, {0, 0, picture_width, panel}, {"phase", 0, 1},
              count_axis("pairs per second", {prompts, delayeds}), margins);
    std::vector<LegendEntry> entries = {{"prompts", {theme.prompts}}};
    if (data.delayeds()) {
        entries.push_back({"delayeds", {theme.delayeds, false, true}});
        plot.steps(edges, delayeds, entries[1].pen);
    }
    plot.steps(edges, prompts, entries[0].pen);
    plot.legend(entries);
}

}  // namespace

std::string name_of_phases(unsigned channel) {
    return fmt::format("phase-{}", channel);
}

Picture counts_by_phase(const PictureData& data, std::size_t number) {
    const PhaseBins& bins = data.bins.phases[number];
    const double tick_s = data.scanner.tick_ps * 1e-12;
    const std::string cycles = fmt::format(
        "{} cycles of channel {}, {:.4g} s each (spread {:.2g} s)", grouped(bins.cycles.accepted().size()),
        bins.channel, bins.cycles.mean_period() * tick_s, bins.cycles.spread_of_period() * tick_s);
    Picture p;
    p.name = name_of_phases(bins.channel);
    p.title = fmt::format("Rates by phase, channel {}", bins.channel);
    p.caption = fmt::format("Coincidences by their phase in {}, per second of that phase.", cycles);
    if (bins.cycles.rejected() != 0) {
        p.caption += fmt::format(" {} cycles are left out: a trigger in them is missing.",
                                 grouped(bins.cycles.rejected()));
    }
    p.alt = fmt::format("Rates by phase in {}.", cycles);
    p.height = panel;
    p.draw = [&data, number](cairo_t* cairo, const Theme& theme) { draw(cairo, theme, data, number); };
    p.csv = [&data, number](OutputFile& out) {
        out.text("phase_from,phase_to,live_s,prompts,delayeds\n");
        const auto live = data.bins.phases[number].cycles.live_ticks(PhaseBins::count);
        for (std::uint32_t i = 0; i < PhaseBins::count; ++i) {
            print(out, "{},{},{:.9g},{},{}\n", static_cast<double>(i) / PhaseBins::count,
                  static_cast<double>(i + 1) / PhaseBins::count, data.seconds(live[i]),
                  data.pairs.prompts.phases[number][i], data.pairs.delayeds.phases[number][i]);
        }
    };
    return p;
}

}  // namespace petacq::petlm
