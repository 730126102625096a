// When the gammas of triples came, and their energies.
#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {
namespace {

using Histogram = sinogram::GammaHistograms::Histogram;

/// The edges of the bins, in `unit` of their values.
std::vector<double> edges_of(const Histogram& histogram, double unit) {
    std::vector<double> edges;
    for (std::size_t i = 0; i <= histogram.triples.size(); ++i)
        edges.push_back((histogram.from + static_cast<double>(i) * histogram.bin) * unit);
    return edges;
}

/// A picture of both kinds of triples over `axis`. `delayed`: delayed gammas were looked for.
Picture picture_of(const Histogram& histogram, bool delayed, std::vector<double> edges,
                   const std::string& axis, const std::string& counted) {
    Picture p;
    p.height = histogram_height;
    p.draw = [triples = doubles(histogram.triples), late = doubles(histogram.delayed), delayed,
              edges = std::move(edges), axis, counted](cairo_t* cairo, const Theme& theme) {
        Plot plot(cairo, theme, {0, 0, picture_width, histogram_height}, {axis, edges.front(), edges.back()},
                  count_axis(counted, {triples, late}), {0, legend_height});
        const std::vector<LegendEntry> entries = {{"triples", {theme.prompts, true}},
                                                  {"delayed triples", {theme.delayeds, true, true}}};
        plot.steps(edges, triples, entries[0].pen);
        if (delayed) plot.steps(edges, late, entries[1].pen);
        plot.legend(std::span(entries).first(delayed ? 2 : 1));
    };
    return p;
}

/// A row for each bin.
std::function<void(OutputFile&)> csv_of(const Histogram& histogram, const char* unit) {
    return [&histogram, unit](OutputFile& out) {
        print(out, "from_{},to_{},triples,delayed_triples\n", unit, unit);
        for (std::size_t i = 0; i < histogram.triples.size(); ++i) {
            const double from = histogram.from + static_cast<double>(i) * histogram.bin;
            print(out, "{},{},{},{}\n", from, from + histogram.bin, histogram.triples[i],
                  histogram.delayed[i]);
        }
    };
}

const char* delayed_text(const Triples& triples) {
    return triples.rules.delay_ticks
               ? " The delayed triples, of gammas that came the delay of the gammas later, "
                 "are the level of chance."
               : "";
}

}  // namespace

Picture lifetimes(const PictureData& data) {
    const Triples& triples = *data.triples;
    const Histogram& histogram = triples.histograms.times();
    const double tick_ns = data.scanner.tick_ps * 1e-3;
    const double bin_ns = histogram.bin * tick_ns;
    Picture p =
        picture_of(histogram, triples.rules.delay_ticks.has_value(), edges_of(histogram, tick_ns),
                   "time from the gamma to the pair (ns)", fmt::format("triples per {:.4g} ns", bin_ns));
    p.name = "lifetimes";
    p.title = "Time from the gamma to the pair";
    p.caption = fmt::format(
        "Triples of prompts by the time from the gamma to the middle between the two singles of its pair, in "
        "bins of {:.4g} ns: the lifetime of the positron, but for the ways of the photons.{} "
        "petlm lifetime fits lifetimes.",
        bin_ns, delayed_text(triples));
    p.alt = "Histogram of the times from the gamma to the pair of each triple in nanoseconds.";
    p.csv = csv_of(histogram, "ticks");
    return p;
}

Picture energy_of_gammas(const PictureData& data) {
    const Triples& triples = *data.triples;
    const Histogram& histogram = triples.histograms.energies();
    Picture p = picture_of(histogram, triples.rules.delay_ticks.has_value(), edges_of(histogram, 1),
                           "energy (keV)", fmt::format("triples per {} keV", histogram.bin));
    p.name = "energy-gammas";
    p.title = "Energy of the gammas";
    p.caption = fmt::format(
        "Triples of prompts by the energy of their gamma, in bins of {} keV, over the gamma "
        "window, {} to {} keV.{}",
        histogram.bin, triples.rules.lower_keV, triples.rules.upper_keV, delayed_text(triples));
    p.alt = "Histogram of the energies of the gammas of triples in keV.";
    p.csv = csv_of(histogram, "keV");
    return p;
}

}  // namespace petacq::petlm
