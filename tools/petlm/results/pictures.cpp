#include "tools/petlm/results/pictures.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/report/axes.hpp"
#include "tools/report/canvas.hpp"

namespace petacq::results {
namespace {

constexpr double height = 340;
constexpr double map_height = 400;
constexpr std::uint32_t pixels = 1120;

report::Axis axis_of(const std::string& title, const std::vector<Chart::Curve>& curves, bool of_x) {
    double low = 0;
    double high = 0;
    bool first = true;
    for (const auto& curve : curves) {
        for (const double value : of_x ? curve.x : curve.y) {
            if (!std::isfinite(value)) continue;
            low = first ? value : std::min(low, value);
            high = first ? value : std::max(high, value);
            first = false;
        }
    }
    const double room = 0.04 * (high > low ? high - low : std::max(std::abs(high), 1.0));
    // Curves of counts and rates are seen from zero.
    if (!of_x) low = std::min(low, 0.0);
    return {title, low - (of_x || low < 0 ? room : 0), high + room};
}

void draw_curves(const Chart& chart, cairo_t* cairo, const report::Theme& theme) {
    const std::array colours = {theme.prompts, theme.trues, theme.delayeds, theme.singles};
    report::Plot plot(cairo, theme, {0, 0, report::picture_width, height},
                      axis_of(chart.x_title, chart.curves, true), axis_of(chart.y_title, chart.curves, false),
                      {0, report::legend_height});
    for (const double mark : chart.marks)
        plot.vertical(mark);
    std::vector<report::LegendEntry> legend;
    for (std::size_t i = 0; i < chart.curves.size(); ++i) {
        const report::Pen pen = {colours.at(i)};
        plot.points(chart.curves[i].x, chart.curves[i].y, pen);
        legend.push_back({chart.curves[i].name, pen});
    }
    plot.legend(legend);
}

void draw_map(const Chart& chart, cairo_t* cairo, const report::Theme& theme) {
    report::Margins margins;
    margins.right = report::bar_width;
    report::Plot plot(cairo, theme, {0, 0, report::picture_width, map_height},
                      {chart.x_title, chart.x_from, chart.x_to}, {chart.y_title, chart.y_from, chart.y_to},
                      margins);
    report::Matrix matrix{chart.map.rows, chart.map.columns, chart.map.values};
    for (double& value : matrix.values)
        value = std::max(value, 0.0);
    const double most = std::max(1e-30, *std::max_element(matrix.values.begin(), matrix.values.end()));
    plot.heat(matrix, most);
    plot.colour_bar(most, chart.value_title);
}

}  // namespace

std::string png_of(const Chart& chart) {
    const bool is_map = chart.map.rows != 0;
    const report::Draw how = [&](cairo_t* cairo, const report::Theme& theme) {
        (is_map ? draw_map : draw_curves)(chart, cairo, theme);
    };
    return report::png_of(how, is_map ? map_height : height, report::light_theme(), chart.title, pixels);
}

}  // namespace petacq::results
