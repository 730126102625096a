#include "tools/report/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

namespace petacq::report {
namespace {

constexpr double tick_size = 12.5;
constexpr double axis_title_size = 13.5;
constexpr double tick_length = 5;
constexpr double bar_thickness = 14;
constexpr double enough_ticks = 16;

void set_colour(cairo_t* cairo, const Colour& c) {
    cairo_set_source_rgba(cairo, c.red, c.green, c.blue, c.alpha);
}

double widest_label(cairo_t* cairo, const Ticks& ticks) {
    cairo_set_font_size(cairo, tick_size);
    double width = 0;
    for (const double at : ticks.at)
        width = std::max(width, text_width(cairo, ticks.label(at)));
    return width;
}

/// Text that runs upwards, with its middle at the point.
void show_upwards(cairo_t* cairo, const std::string& text, double x, double y) {
    cairo_save(cairo);
    cairo_translate(cairo, x, y);
    cairo_rotate(cairo, -std::acos(0.0));
    show_text(cairo, text, 0, 0, 0.5);
    cairo_restore(cairo);
}

/// viridis at equal distances: its lightness rises evenly, and colour-blind readers can tell its colours
/// apart.
Colour heat_colour(double part) {
    constexpr std::array<std::array<double, 3>, 9> anchors = {{{0.267, 0.005, 0.329},
                                                               {0.283, 0.141, 0.458},
                                                               {0.254, 0.265, 0.530},
                                                               {0.207, 0.372, 0.553},
                                                               {0.164, 0.471, 0.558},
                                                               {0.128, 0.567, 0.551},
                                                               {0.267, 0.679, 0.441},
                                                               {0.627, 0.802, 0.246},
                                                               {0.993, 0.906, 0.144}}};
    const double at = std::clamp(part, 0.0, 1.0) * (anchors.size() - 1);
    const auto low = std::min(static_cast<std::size_t>(at), anchors.size() - 2);
    const double more = at - static_cast<double>(low);
    const auto mix = [&](std::size_t c) {
        return anchors[low][c] + more * (anchors[low + 1][c] - anchors[low][c]);
    };
    return {mix(0), mix(1), mix(2)};
}

std::uint32_t pixel_of(const Colour& c) {
    const auto byte = [](double v) { return static_cast<std::uint32_t>(std::lround(v * 255)); };
    return byte(c.red) << 16U | byte(c.green) << 8U | byte(c.blue);
}

/// Fills a box with coloured cells; `part` gives the colour of a cell (row from the bottom, column), 0 to 1,
/// or NaN for `none`.
/// Viewers of SVG smooth what they enlarge, so cells are stored as large pixels.
void show_heat(cairo_t* cairo, const Box& box, const Colour& none, std::size_t columns, std::size_t rows,
               const std::function<double(std::size_t, std::size_t)>& part) {
    constexpr double wanted = 2;  // pixels for each unit of the picture
    const auto times = [](double length, std::size_t cells) {
        return std::max<std::size_t>(
            1, static_cast<std::size_t>(std::lround(wanted * length / static_cast<double>(cells))));
    };
    Cells cells{columns, rows, {}};
    cells.colours.reserve(columns * rows);
    for (std::size_t row = rows; row-- > 0;) {
        for (std::size_t column = 0; column < columns; ++column) {
            const double here = part(row, column);
            cells.colours.push_back(pixel_of(std::isnan(here) ? none : heat_colour(here)));
        }
    }
    show_cells(cairo, box, cells, times(box.width, columns), times(box.height, rows));
}

}  // namespace

std::string Ticks::label(double value) const {
    double most = 0;
    for (const double v : at)
        most = std::max(most, std::abs(v));
    double scale = 1;
    const char* suffix = "";
    constexpr std::array<std::pair<double, const char*>, 4> suffixes = {
        {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}}};
    for (const auto& [from, name] : suffixes) {
        if (most < from) continue;
        scale = from == 1e4 ? 1e3 : from;
        suffix = name;
        break;
    }
    if (std::abs(value) < step * 1e-6) return "0";
    const double shown = std::abs(value) / scale;
    const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step / scale) - 1e-9)));
    return fmt::format("{}{:.{}f}{}", value < 0 ? "\u2212" : "", shown, std::min(digits, 12), suffix);
}

Ticks ticks_of(const Axis& axis, double most) {
    Ticks ticks;
    const double least = (axis.to - axis.from) / std::max(most, 1.0);
    ticks.step = std::pow(10, std::floor(std::log10(least)));
    for (const double factor : {2.0, 2.5, 2.0}) {
        if (ticks.step >= least * (1 - 1e-9)) break;
        ticks.step *= factor;
    }
    const double first = std::ceil(axis.from / ticks.step - 1e-9);
    for (double n = first; n * ticks.step <= axis.to + ticks.step * 1e-9; ++n)
        ticks.at.push_back(n * ticks.step);
    // One tick gives no scale.
    return ticks.at.size() < 2 && most < enough_ticks ? ticks_of(axis, 2 * most) : ticks;
}

Axis count_axis(std::string title, std::initializer_list<std::span<const double>> values) {
    double most = 0;
    for (const auto& some : values) {
        for (const double v : some)
            most = std::max(most, v);
    }
    return {std::move(title), 0, most > 0 ? most * 1.12 : 1};
}

Plot::Plot(cairo_t* cairo, const Theme& theme, const Box& box, Axis x, Axis y, const Margins& margins)
    : cairo_(cairo), theme_(theme), x_(std::move(x)), y_(std::move(y)) {
    constexpr double below = 48;
    const double labels = widest_label(cairo_, ticks_of(y_, (box.height - margins.top - below) / 34));
    const double left = std::max(margins.left, 8 + axis_title_size + 8 + labels + tick_length + 4);
    inner_ = {box.x + left, box.y + margins.top, box.width - left - margins.right,
              box.height - margins.top - below};
    draw_axes();
}

double Plot::x_of(double value) const {
    return inner_.x + (value - x_.from) / (x_.to - x_.from) * inner_.width;
}

double Plot::y_of(double value) const {
    return inner_.y + inner_.height - (value - y_.from) / (y_.to - y_.from) * inner_.height;
}

void Plot::draw_axes() {
    cairo_set_line_width(cairo_, 1);
    const double bottom = inner_.y + inner_.height;
    const Ticks across = ticks_of(x_, std::max(inner_.width / 70, 4.0));
    const Ticks up = ticks_of(y_, inner_.height / 34);
    set_colour(cairo_, theme_.grid);
    for (const double at : across.at) {
        cairo_move_to(cairo_, x_of(at), inner_.y);
        cairo_line_to(cairo_, x_of(at), bottom + tick_length);
    }
    for (const double at : up.at) {
        cairo_move_to(cairo_, inner_.x - tick_length, y_of(at));
        cairo_line_to(cairo_, inner_.x + inner_.width, y_of(at));
    }
    cairo_stroke(cairo_);
    set_colour(cairo_, theme_.text);
    cairo_set_font_size(cairo_, tick_size);
    for (const double at : across.at)
        show_text(cairo_, across.label(at), x_of(at), bottom + tick_length + tick_size, 0.5);
    for (const double at : up.at)
        show_text(cairo_, up.label(at), inner_.x - tick_length - 4, y_of(at) + tick_size * 0.36, 1);
    set_colour(cairo_, theme_.muted);
    const double labels = widest_label(cairo_, up);
    cairo_set_font_size(cairo_, axis_title_size);
    show_text(cairo_, x_.title, inner_.x + inner_.width / 2, bottom + 40, 0.5);
    show_upwards(cairo_, y_.title, inner_.x - (labels + tick_length + 4 + 9), inner_.y + inner_.height / 2);
}

void Plot::steps(std::span<const double> edges, std::span<const double> values, const Pen& pen) {
    if (values.empty()) return;
    cairo_save(cairo_);
    cairo_rectangle(cairo_, inner_.x, inner_.y - 1, inner_.width, inner_.height + 2);
    cairo_clip(cairo_);
    const auto path = [&] {
        for (std::size_t i = 0; i < values.size(); ++i) {
            cairo_line_to(cairo_, x_of(edges[i]), y_of(values[i]));
            cairo_line_to(cairo_, x_of(edges[i + 1]), y_of(values[i]));
        }
    };
    if (pen.filled) {
        cairo_move_to(cairo_, x_of(edges.front()), y_of(0));
        path();
        cairo_line_to(cairo_, x_of(edges[values.size()]), y_of(0));
        Colour fill = pen.colour;
        fill.alpha = 0.25;
        set_colour(cairo_, fill);
        cairo_fill(cairo_);
    }
    path();
    set_colour(cairo_, pen.colour);
    cairo_set_line_width(cairo_, 1.5);
    constexpr double dash = 5;
    if (pen.dashed) cairo_set_dash(cairo_, &dash, 1, 0);
    cairo_stroke(cairo_);
    cairo_restore(cairo_);
}

void Plot::points(std::span<const double> x, std::span<const double> y, const Pen& pen) {
    constexpr std::size_t max_marked = 60;
    constexpr double mark = 2.5;
    cairo_save(cairo_);
    set_colour(cairo_, pen.colour);
    cairo_set_line_width(cairo_, 1.5);
    cairo_new_path(cairo_);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!std::isnan(y[i])) cairo_line_to(cairo_, x_of(x[i]), y_of(y[i]));
    }
    cairo_stroke(cairo_);
    for (std::size_t i = 0; i < x.size() && x.size() <= max_marked; ++i) {
        if (std::isnan(y[i])) continue;
        cairo_arc(cairo_, x_of(x[i]), y_of(y[i]), mark, 0, 2 * std::numbers::pi);
        cairo_fill(cairo_);
    }
    cairo_restore(cairo_);
}

void Plot::heat(const Matrix& matrix, double most) {
    show_heat(cairo_, inner_, theme_.background, matrix.columns, matrix.rows,
              [&](std::size_t row, std::size_t column) {
                  return matrix.values[row * matrix.columns + column] / most;
              });
    set_colour(cairo_, theme_.muted);
    cairo_set_line_width(cairo_, 1);
    cairo_rectangle(cairo_, inner_.x, inner_.y, inner_.width, inner_.height);
    cairo_stroke(cairo_);
}

void Plot::colour_bar(double most, const std::string& title) {
    const Box bar = {inner_.x + inner_.width + 14, inner_.y, bar_thickness, inner_.height};
    constexpr std::size_t shades = 128;
    show_heat(cairo_, bar, theme_.background, 1, shades,
              [](std::size_t row, std::size_t) { return (static_cast<double>(row) + 0.5) / shades; });
    const Axis axis = {title, 0, most};
    const Ticks ticks = ticks_of(axis, bar.height / 42);
    const double labels = widest_label(cairo_, ticks);
    set_colour(cairo_, theme_.text);
    for (const double at : ticks.at) {
        const double y = bar.y + bar.height * (1 - at / most);
        show_text(cairo_, ticks.label(at), bar.x + bar.width + 5, y + tick_size * 0.36, 0);
    }
    set_colour(cairo_, theme_.muted);
    cairo_set_font_size(cairo_, axis_title_size);
    show_upwards(cairo_, title, bar.x + bar.width + 5 + labels + 9 + axis_title_size / 2,
                 bar.y + bar.height / 2);
}

void Plot::vertical(double x) {
    if (x < x_.from || x > x_.to) return;
    set_colour(cairo_, theme_.muted);
    cairo_set_line_width(cairo_, 1);
    cairo_move_to(cairo_, x_of(x), inner_.y);
    cairo_line_to(cairo_, x_of(x), inner_.y + inner_.height);
    cairo_stroke(cairo_);
}

void Plot::legend(std::span<const LegendEntry> entries) {
    cairo_set_font_size(cairo_, tick_size);
    double x = inner_.x;
    const double y = inner_.y - 11;
    for (const LegendEntry& entry : entries) {
        cairo_save(cairo_);
        set_colour(cairo_, entry.pen.colour);
        cairo_set_line_width(cairo_, 2.5);
        constexpr double dash = 5;
        if (entry.pen.dashed) cairo_set_dash(cairo_, &dash, 1, 0);
        cairo_move_to(cairo_, x, y - 4);
        cairo_line_to(cairo_, x + 24, y - 4);
        cairo_stroke(cairo_);
        cairo_restore(cairo_);
        set_colour(cairo_, theme_.text);
        show_text(cairo_, entry.name, x + 30, y, 0);
        x += 30 + text_width(cairo_, entry.name) + 22;
    }
}

void Plot::note(const std::string& text) {
    cairo_set_font_size(cairo_, axis_title_size);
    set_colour(cairo_, theme_.muted);
    show_text(cairo_, text, inner_.x + inner_.width / 2, inner_.y + inner_.height / 2, 0.5);
}

}  // namespace petacq::report
