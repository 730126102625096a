// Axes in a box of a picture, and the curves, maps and legends in them.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tools/report/canvas.hpp"
#include "tools/report/surface.hpp"

namespace petacq::report {

struct Axis {
    std::string title;  ///< with its unit
    double from = 0;
    double to = 1;  ///< above `from`
};

/// From zero to slightly above the largest value; to 1 when no value is above zero.
Axis count_axis(std::string title, std::initializer_list<std::span<const double>> values);

/// Round values along an axis.
struct Ticks {
    double step = 1;
    std::vector<double> at;
    /// The value with a suffix for thousands and so on, the same one for the whole axis.
    [[nodiscard]] std::string label(double value) const;
};
/// At most about `most` steps, unless that leaves less than two ticks.
Ticks ticks_of(const Axis& axis, double most);

struct Pen {
    Colour colour;
    bool filled = false;  ///< down to zero
    bool dashed = false;
};

struct LegendEntry {
    std::string name;
    Pen pen;
};

/// Values row by row from the bottom to the top, each row from left to right.
struct Matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<double> values;
};

/// Space left free around the axes.
struct Margins {
    double left = 0;  ///< at least; wide labels of the y axis take more. Equal margins align plots
    double top = 12;
    double right = 12;
};
inline constexpr double legend_height = 30;  ///< top margin for a legend
inline constexpr double bar_width = 92;      ///< right margin for a colour bar

class Plot {
  public:
    Plot(cairo_t* cairo, const Theme& theme, const Box& box, Axis x, Axis y, const Margins& margins = {});

    /// Draws each value between two neighbouring edges.
    void steps(std::span<const double> edges, std::span<const double> values, const Pen& pen);
    /// Joins points by straight lines, and marks them unless there are very many. Leaves out NaN.
    void points(std::span<const double> x, std::span<const double> y, const Pen& pen);
    /// Fills the axes with a map of the values, clamped to 0 and `most`.
    void heat(const Matrix& matrix, double most);
    /// Draws the colours of a map in the right margin.
    void colour_bar(double most, const std::string& title);
    /// Draws a thin line from the bottom to the top.
    void vertical(double x);
    /// Draws the legend in the top margin.
    void legend(std::span<const LegendEntry> entries);
    /// Writes a remark in the middle.
    void note(const std::string& text);

  private:
    [[nodiscard]] double x_of(double value) const;
    [[nodiscard]] double y_of(double value) const;
    void draw_axes();

    cairo_t* cairo_;
    const Theme& theme_;
    Axis x_;
    Axis y_;
    Box inner_{};
};

}  // namespace petacq::report
