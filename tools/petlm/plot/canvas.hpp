// Drawing with cairo: plots with axes, in the colours of a theme, as SVG and as PNG by the same calls.
//
// Lengths are in units of the picture, of which a picture is picture_width wide, whatever it is drawn on.
#pragma once

#include <cairo.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace petacq::petlm {

inline constexpr double picture_width = 560;

struct Colour {
    double red;
    double green;
    double blue;
    double alpha = 1;
};

struct Theme {
    Colour background;
    Colour text;
    Colour muted;  ///< titles of axes, notes
    Colour grid;
    Colour prompts;
    Colour delayeds;
    Colour trues;
    Colour singles;
};
const Theme& light_theme();
const Theme& dark_theme();

struct Box {
    double x;
    double y;
    double width;
    double height;
};

using Draw = std::function<void(cairo_t*, const Theme&)>;
/// The SVG text of a picture, without its XML declaration. Throws std::runtime_error when cairo fails.
std::string svg_of(const Draw& draw, double height, const Theme& theme);
/// Writes the partial file of `file` (export_output.hpp), `pixels` wide, with a title over the picture.
/// Throws std::system_error, std::runtime_error when cairo fails.
void write_png(const std::filesystem::path& file, const Draw& draw, double height, const Theme& theme,
               const std::string& title, std::uint32_t pixels);
/// Pixels of such a file from top to bottom.
std::uint32_t png_height(double height, std::uint32_t pixels);

struct Axis {
    std::string title;  ///< with its unit
    double from = 0;
    double to = 1;  ///< above `from`
};

/// From zero to a round number above all of them, with some room; to 1 when none is above zero.
Axis count_axis(std::string title, std::initializer_list<std::span<const double>> values);

struct Pen {
    Colour colour;
    bool filled = false;  ///< down to zero
    bool dashed = false;
};

struct LegendEntry {
    std::string name;
    Pen pen;
};

/// Values in rows, from bottom to top, of columns from left to right.
struct Matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<double> values;
};

/// What is left free around the axes.
struct Margins {
    double left = 0;  ///< at least; labels of the y axis take what they need. Equal ones line plots up
    double top = 12;
    double right = 12;
};
inline constexpr double legend_height = 30;  ///< as a margin at the top
inline constexpr double bar_width = 92;      ///< of a colour bar, as a margin on the right

/// Axes in a box, and what is drawn in them.
class Plot {
  public:
    Plot(cairo_t* cairo, const Theme& theme, const Box& box, Axis x, Axis y, const Margins& margins = {});

    /// One value between two neighbouring edges.
    void steps(std::span<const double> edges, std::span<const double> values, const Pen& pen);
    /// Fills the axes. Values below zero are drawn as zero, those above `most` as that.
    void heat(const Matrix& matrix, double most);
    /// In the margin on the right.
    void colour_bar(double most, const std::string& title);
    /// A thin line across.
    void vertical(double x);
    void horizontal(double y);
    /// In the margin at the top.
    void legend(std::span<const LegendEntry> entries);
    /// A remark in the middle.
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

}  // namespace petacq::petlm
