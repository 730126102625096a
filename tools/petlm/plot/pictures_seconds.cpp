// Randoms, lost pairs and temperatures over detector time, from the seconds of a run.
#include <algorithm>
#include <cmath>

#include "tools/petlm/plot/pictures.hpp"

namespace petacq::petlm {
namespace {

bool any_known(const std::vector<double>& values) {
    return std::any_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

/// The values with 0 for unknown ones, which have no place in a picture.
std::vector<double> drawn(std::vector<double> values) {
    std::replace_if(
        values.begin(), values.end(), [](double v) { return !std::isfinite(v); }, 0.0);
    return values;
}

/// Draws each row from its start to its end; between rows there is nothing.
void draw_rows(Plot& plot, const PictureData& data, const std::vector<double>& values, const Pen& pen) {
    const SecondsRows& rows = *data.seconds_rows;
    std::vector<double> edges;
    std::vector<double> heights;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double from = time_at(data, rows.from_ticks[i]);
        if (edges.empty() || from > edges.back()) {
            if (!edges.empty()) heights.push_back(0);
            edges.push_back(from);
        }
        edges.push_back(time_at(data, rows.to_ticks[i]));
        heights.push_back(values[i]);
    }
    plot.steps(edges, heights, pen);
}

std::vector<double> per_second(const PictureData& data, const std::vector<double>& counts) {
    const SecondsRows& rows = *data.seconds_rows;
    std::vector<double> rates;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double seconds = data.seconds(rows.to_ticks[i] - rows.from_ticks[i]);
        rates.push_back(seconds > 0 ? counts[i] / seconds : 0);
    }
    return drawn(rates);
}

void draw_randoms(cairo_t* cairo, const Theme& theme, const PictureData& data) {
    const SecondsRows& rows = *data.seconds_rows;
    const std::vector<double> prompts = per_second(data, rows.prompts);
    const std::vector<double> measured = per_second(data, rows.of_delayeds);
    const std::vector<double> expected = per_second(data, rows.randoms);
    Plot plot(cairo, theme, {0, 0, picture_width, panel}, time_axis(data),
              count_axis("pairs per second", {prompts, measured, expected}), panel_margins);
    std::vector<LegendEntry> entries = {{"prompts", {theme.prompts}}};
    draw_rows(plot, data, prompts, entries.back().pen);
    if (any_known(rows.randoms)) {
        entries.push_back({"estimated randoms", {theme.singles}});
        draw_rows(plot, data, expected, entries.back().pen);
    }
    if (data.delayeds()) {
        entries.push_back({"weighted delayeds", {theme.delayeds, false, true}});
        draw_rows(plot, data, measured, entries.back().pen);
    }
    plot.legend(entries);
}

/// The part of the pairs that is lost, percent.
std::vector<double> lost_pairs(const SecondsRows& rows) {
    std::vector<double> percent;
    for (const double factor : rows.pile_up)
        percent.push_back(100 * (1 - 1 / factor));
    return percent;
}

void draw_losses(cairo_t* cairo, const Theme& theme, const PictureData& data) {
    const SecondsRows& rows = *data.seconds_rows;
    std::vector<double> blind;
    for (const double part : rows.dead_time)
        blind.push_back(100 * part);
    const std::vector<double> lost = lost_pairs(rows);
    double most = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        most = std::fmax(most, std::fmax(lost[i], blind[i]));  // whichever is known
    Plot plot(cairo, theme, {0, panel, picture_width, panel}, time_axis(data),
              {"share (%)", 0, most > 0 ? most * 1.12 : 1}, panel_margins);
    std::vector<LegendEntry> entries;
    if (any_known(lost)) {
        entries.push_back({"pairs lost to multiples", {theme.prompts, true}});
        draw_rows(plot, data, drawn(lost), entries.back().pen);
    }
    if (any_known(blind)) {
        entries.push_back({"time BDMs were blind", {theme.delayeds, false, true}});
        draw_rows(plot, data, drawn(blind), entries.back().pen);
    }
    if (entries.empty()) plot.note("not known");
    plot.legend(entries);
}

/// Whole degrees around all that is known; a few at least.
Axis temperature_axis(const SecondsRows& rows) {
    double low = std::nan("");
    double high = std::nan("");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        low = std::fmin(low, rows.coldest[i]);  // NaN: the other one
        high = std::fmax(high, rows.hottest[i]);
    }
    constexpr double least = 4;
    const double margin = std::max(0.1 * (high - low), (least - (high - low)) / 2);
    return {"temperature (\u00b0C)", std::floor(low - margin), std::ceil(high + margin)};
}

void draw_temperatures(cairo_t* cairo, const Theme& theme, const PictureData& data) {
    const SecondsRows& rows = *data.seconds_rows;
    std::vector<double> middles;
    for (std::size_t i = 0; i < rows.size(); ++i)
        middles.push_back((time_at(data, rows.from_ticks[i]) + time_at(data, rows.to_ticks[i])) / 2);
    Plot plot(cairo, theme, {0, 0, picture_width, panel}, time_axis(data), temperature_axis(rows),
              panel_margins);
    const std::vector<LegendEntry> entries = {
        {"mean", {theme.singles}}, {"hottest BDM", {theme.prompts}}, {"coldest BDM", {theme.delayeds}}};
    plot.points(middles, rows.temperature, entries[0].pen);
    plot.points(middles, rows.hottest, entries[1].pen);
    plot.points(middles, rows.coldest, entries[2].pen);
    plot.legend(entries);
}

}  // namespace

bool temperatures_known(const SecondsRows& rows) {
    return any_known(rows.temperature);
}

Picture temperature_over_time(const PictureData& data) {
    const SecondsRows& rows = *data.seconds_rows;
    Picture p;
    p.name = "temperature";
    p.title = "Temperature over time";
    p.caption =
        "The mean of all BDMs, and the BDMs that were hottest and coldest, in degrees C. The axis does not "
        "begin at 0. "
        "From seconds.plm.";
    p.alt = fmt::format("Temperature over time, {} rows.", rows.size());
    p.height = panel;
    p.draw = [&data](cairo_t* cairo, const Theme& theme) { draw_temperatures(cairo, theme, data); };
    p.csv = [&rows](OutputFile& out) {
        out.text("from_ticks,to_ticks,mean,hottest,coldest\n");
        for (std::size_t i = 0; i < rows.size(); ++i) {
            print(out, "{},{},{},{},{}\n", rows.from_ticks[i], rows.to_ticks[i], rows.temperature[i],
                  rows.hottest[i], rows.coldest[i]);
        }
    };
    return p;
}

Picture corrections_over_time(const PictureData& data) {
    const SecondsRows& rows = *data.seconds_rows;
    Picture p;
    p.name = "corrections";
    p.title = "Randoms and lost pairs over time";
    p.caption = "Above: prompts, and the random coincidences among them";
    p.caption += data.delayeds() ? ", from the delayeds with their weight" : "";
    p.caption += any_known(rows.randoms) ? ", and as the noise-free estimate" : "";
    p.caption += ". Below: ";
    p.caption += any_known(rows.pile_up) ? "pairs that the multiples policy dropped, by the pile-up factor"
                                         : "the pile-up factor is not known";
    p.caption += any_known(rows.dead_time) ? "; the mean dead time of the BDMs" : "";
    p.caption += ". From seconds.plm.";
    p.alt = fmt::format("Randoms and lost pairs over time, {} rows.", rows.size());
    p.height = 2 * panel;
    p.draw = [&data](cairo_t* cairo, const Theme& theme) {
        draw_randoms(cairo, theme, data);
        draw_losses(cairo, theme, data);
    };
    p.csv = [&rows](OutputFile& out) {
        out.text("from_ticks,to_ticks,prompts,delayeds,weighted_delayeds,randoms,pile_up,dead_time\n");
        for (std::size_t i = 0; i < rows.size(); ++i) {
            print(out, "{},{},{},{},{},{},{},{}\n", rows.from_ticks[i], rows.to_ticks[i], rows.prompts[i],
                  rows.delayeds[i], rows.of_delayeds[i], rows.randoms[i], rows.pile_up[i], rows.dead_time[i]);
        }
    };
    return p;
}

}  // namespace petacq::petlm
