// Rates and loss over detector time.
#include <algorithm>

#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {
namespace {

/// A unit that suits the length of the run.
struct TimeUnit {
    const char* name;
    double seconds;
};

TimeUnit unit_of(double seconds) {
    if (seconds > 3 * 3600) return {"h", 3600};
    if (seconds > 600) return {"min", 60};
    if (seconds > 0.5) return {"s", 1};
    return {"ms", 1e-3};
}

}  // namespace

Axis time_axis(const PictureData& data) {
    const double length = data.seconds(data.end_ticks - data.bins.times.begin);
    const TimeUnit unit = unit_of(length);
    return {fmt::format("detector time ({})", unit.name), 0, length > 0 ? length / unit.seconds : 1};
}

double time_at(const PictureData& data, std::uint64_t ticks) {
    const TimeUnit unit = unit_of(data.seconds(data.end_ticks - data.bins.times.begin));
    const std::uint64_t begin = data.bins.times.begin;
    return (ticks >= begin ? data.seconds(ticks - begin) : -data.seconds(begin - ticks)) / unit.seconds;
}

namespace {

constexpr std::size_t max_rows = 400;

std::vector<double> edges_of(const PictureData& data, const LedgerRows& rows) {
    std::vector<double> edges = {time_at(data, rows.from_ticks.front())};
    for (const std::uint64_t to : rows.to_ticks)
        edges.push_back(time_at(data, to));
    return edges;
}

/// The end of bin `i`: the last one may be shorter.
std::uint64_t end_of(const PictureData& data, std::uint32_t i) {
    const TimeBins& bins = data.bins.times;
    const std::uint64_t begin = bins.begin + i * bins.width;
    if (i + 1 < bins.count) return begin + bins.width;
    return std::max(data.end_ticks, begin);
}

/// Number of bins drawn. A short last bin is left out: its few counts give no rate.
std::uint32_t drawn_bins(const PictureData& data) {
    const TimeBins& bins = data.bins.times;
    const std::uint64_t last = end_of(data, bins.count - 1) - (bins.begin + (bins.count - 1) * bins.width);
    return bins.count > 1 && last < bins.width / 4 ? bins.count - 1 : bins.count;
}

/// Pairs per second in each bin of time.
std::vector<double> rates(const PictureData& data, const Counts& counts) {
    std::vector<double> out;
    for (std::uint32_t i = 0; i < drawn_bins(data); ++i) {
        const std::uint64_t begin = data.bins.times.begin + i * data.bins.times.width;
        const double seconds = data.seconds(end_of(data, i) - begin);
        out.push_back(seconds > 0 ? static_cast<double>(counts[i]) / seconds : 0);
    }
    return out;
}

std::vector<double> bin_edges(const PictureData& data) {
    std::vector<double> edges = {time_at(data, data.bins.times.begin)};
    for (std::uint32_t i = 0; i < drawn_bins(data); ++i)
        edges.push_back(time_at(data, end_of(data, i)));
    return edges;
}

std::vector<double> row_rates(const PictureData& data, const LedgerRows& rows, const char* counter) {
    std::vector<double> out;
    const auto& counts = rows.counters.at(counter);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double seconds = data.seconds(rows.to_ticks[i] - rows.from_ticks[i]);
        out.push_back(seconds > 0 ? static_cast<double>(counts[i]) / seconds : 0);
    }
    return out;
}

bool knows_singles(const PictureData& data) {
    return data.ledger && data.ledger->has("frames.received") && data.ledger->has("frames.accepted");
}

void draw_pair_rates(cairo_t* cairo, const Theme& theme, const PictureData& data, double top) {
    const std::vector<double> prompts = rates(data, data.pairs.prompts.time);
    const std::vector<double> delayeds = rates(data, data.pairs.delayeds.time);
    std::vector<double> trues;
    for (std::size_t i = 0; i < prompts.size(); ++i)
        trues.push_back(prompts[i] - delayeds[i]);
    Plot plot(cairo, theme, {0, top, picture_width, panel}, time_axis(data),
              count_axis("pairs per second", {prompts, delayeds}), panel_margins);
    std::vector<LegendEntry> entries = {{"prompts", {theme.prompts}}};
    const std::vector<double> edges = bin_edges(data);
    if (data.delayeds()) {
        entries.push_back({"prompts \u2212 delayeds", {theme.trues}});
        entries.push_back({"delayeds", {theme.delayeds, false, true}});
        plot.steps(edges, delayeds, entries[2].pen);
        plot.steps(edges, trues, entries[1].pen);
    }
    plot.steps(edges, prompts, entries[0].pen);
    plot.legend(entries);
}

void draw_single_rates(cairo_t* cairo, const Theme& theme, const PictureData& data) {
    const LedgerRows rows = thinned(*data.ledger, max_rows);
    const std::vector<double> frames = row_rates(data, rows, "frames.received");
    const std::vector<double> accepted = row_rates(data, rows, "frames.accepted");
    Plot plot(cairo, theme, {0, 0, picture_width, panel}, time_axis(data),
              count_axis("per second", {frames, accepted}), panel_margins);
    const std::vector<LegendEntry> entries = {{"frames", {theme.prompts}},
                                              {"singles accepted", {theme.singles, false, true}}};
    plot.steps(edges_of(data, rows), frames, entries[0].pen);
    plot.steps(edges_of(data, rows), accepted, entries[1].pen);
    plot.legend(entries);
}

/// Counts of some counters as a percentage of others, row by row.
struct Shares {
    std::vector<double> percent;
    double most = 0;
    std::int64_t counted = 0;
    std::int64_t of = 0;
};

Shares shares(const LedgerRows& rows, std::initializer_list<const char*> part,
              std::initializer_list<const char*> whole) {
    Shares out;
    const auto sum = [&](std::initializer_list<const char*> names, std::size_t row) {
        std::int64_t counted = 0;
        for (const char* name : names) {
            if (rows.has(name)) counted += rows.counters.at(name)[row];
        }
        return counted;
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t counted = sum(part, i);
        const std::int64_t of = sum(whole, i);
        out.percent.push_back(of > 0 ? 100 * static_cast<double>(counted) / static_cast<double>(of) : 0);
        out.most = std::max(out.most, out.percent.back());
        out.counted += counted;
        out.of += of;
    }
    return out;
}

void draw_share(cairo_t* cairo, const Theme& theme, const PictureData& data, double top,
                const std::string& title,
                std::initializer_list<std::pair<LegendEntry, const Shares*>> lines) {
    double most = 0;
    for (const auto& [entry, values] : lines)
        most = std::max(most, values->most);
    Plot plot(cairo, theme, {0, top, picture_width, panel}, time_axis(data),
              {title, 0, most > 0 ? most * 1.12 : 1}, panel_margins);
    const std::vector<double> edges = edges_of(data, thinned(*data.ledger, max_rows));
    std::vector<LegendEntry> entries;
    for (const auto& [entry, values] : lines) {
        plot.steps(edges, values->percent, entry.pen);
        entries.push_back(entry);
    }
    if (most == 0) plot.note("none");
    plot.legend(entries);
}

std::string of_text(const Shares& s) {
    return fmt::format("{} of {}", grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(s.counted, 0))),
                       grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(s.of, 0))));
}

}  // namespace

Picture rates_over_time(const PictureData& data) {
    const bool both = knows_singles(data);
    Picture p;
    p.name = "rates";
    p.title = "Rates over time";
    p.caption = fmt::format("{} in bins of {:.4g} s of detector time, by the times of the records.",
                            both ? "coincidences" : "Coincidences", data.seconds(data.bins.times.width));
    if (both)
        p.caption =
            "Above: frames through the pipeline and singles accepted, from ledger.csv. Below: " + p.caption;
    if (data.delayeds()) p.caption += " Prompts less delayeds are trues and scattered.";
    p.alt = fmt::format("Rates over time: {} prompts and {} delayeds in {:.6g} s.",
                        grouped(data.pairs.prompts.pairs), grouped(data.pairs.delayeds.pairs),
                        data.seconds(data.end_ticks - data.bins.times.begin));
    p.height = both ? 2 * panel : panel;
    p.draw = [&data, both](cairo_t* cairo, const Theme& theme) {
        if (both) draw_single_rates(cairo, theme, data);
        draw_pair_rates(cairo, theme, data, both ? panel : 0);
    };
    p.csv = [&data](OutputFile& out) {
        out.text("from_ticks,to_ticks,prompts,delayeds\n");
        for (std::uint32_t i = 0; i < data.bins.times.count; ++i) {
            print(out, "{},{},{},{}\n", data.bins.times.begin + i * data.bins.times.width, end_of(data, i),
                  data.pairs.prompts.time[i], data.pairs.delayeds.time[i]);
        }
    };
    return p;
}

Picture loss_over_time(const PictureData& data) {
    const LedgerRows rows = thinned(*data.ledger, max_rows);
    const bool loss_known = rows.has("datagrams.lost");
    const Shares lost = shares(rows, {"datagrams.lost"}, {"datagrams.accepted", "datagrams.lost"});
    const Shares dropped = shares(rows, {"datagrams.dropped_kernel", "datagrams.dropped_no_buffer"},
                                  {"datagrams.accepted", "datagrams.lost"});
    const Shares late = shares(rows, {"frames.late", "frames.time_jump"}, {"frames.received"});
    const Shares invalid =
        shares(rows, {"frames.bad_marker", "frames.bad_address", "frames.bad_time"}, {"frames.received"});
    Picture p;
    p.name = "loss";
    p.title = "Loss over time";
    p.caption = loss_known
                    ? fmt::format("Above: datagrams lost, {} sent.", of_text(lost))
                    : std::string("Above: datagrams lost are unknown: their numbers do not show them.");
    p.caption += fmt::format(
        " Dropped: lost by this host because a socket queue was full or no batch was free, {}. Below: frames "
        "that were "
        "late or far from the time of their source, {}; invalid: wrong marker, address or time, {}. From "
        "ledger.csv.",
        of_text(dropped), of_text(late), of_text(invalid));
    // A power cut or a full disk may have cost the last rows.
    const double missing_s = data.seconds(data.end_ticks - std::min(rows.to_ticks.back(), data.end_ticks));
    if (!data.ledger_trouble.empty() || missing_s > 1.5) {
        p.caption += fmt::format(" It ends {:.6g} s before the end of the data.", missing_s);
    }
    p.alt = fmt::format("Loss over time. Datagrams lost: {}. Frames late: {}.",
                        loss_known ? of_text(lost) : "not known", of_text(late));
    p.height = 2 * panel;
    p.draw = [&data, lost, dropped, late, invalid](cairo_t* cairo, const Theme& theme) {
        draw_share(cairo, theme, data, 0, "datagrams (%)",
                   {{{"lost", {theme.prompts, true}}, &lost},
                    {{"dropped", {theme.delayeds, false, true}}, &dropped}});
        draw_share(cairo, theme, data, panel, "frames (%)",
                   {{{"late", {theme.prompts, true}}, &late},
                    {{"invalid", {theme.delayeds, false, true}}, &invalid}});
    };
    return p;
}

}  // namespace petacq::petlm
