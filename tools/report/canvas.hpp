// Pictures drawn with cairo in the colours of a theme, as SVG and as PNG by the same calls.
//
// Lengths are in units of the picture, which is picture_width units wide on any surface.
#pragma once

#include <cairo.h>

#include <cstdint>
#include <functional>
#include <string>

namespace petacq::report {

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

using Draw = std::function<void(cairo_t*, const Theme&)>;
/// The SVG text of a picture, without its XML declaration. Throws std::runtime_error when cairo fails.
std::string svg_of(const Draw& draw, double height, const Theme& theme);
/// The contents of a PNG file: a picture with a title above it, `pixels` wide. Throws std::runtime_error when
/// cairo or libpng fails.
std::string png_of(const Draw& draw, double height, const Theme& theme, const std::string& title,
                   std::uint32_t pixels);

}  // namespace petacq::report
