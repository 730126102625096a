// cairo surfaces and contexts that free themselves, and the drawing that pictures share.
#pragma once

#include <cairo.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace petacq::report {

struct FreeCairo {
    void operator()(cairo_t* cairo) const { cairo_destroy(cairo); }
    void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
};
using Cairo = std::unique_ptr<cairo_t, FreeCairo>;
using Surface = std::unique_ptr<cairo_surface_t, FreeCairo>;

/// Throws std::runtime_error unless the status is success.
void check(cairo_status_t status);

/// Pixels without transparency.
Surface image_surface(double width, double height);

/// The contents of a PNG file. Throws std::runtime_error when cairo or libpng fails.
std::string png_of(cairo_surface_t* surface);

double text_width(cairo_t* cairo, const std::string& text);
/// `align`: the part of the text that is left of the point, 0 to 1.
void show_text(cairo_t* cairo, const std::string& text, double x, double y, double align);

struct Box {
    double x;
    double y;
    double width;
    double height;
};

/// Cells with sharp edges, row by row from the top, each 0xRRGGBB.
struct Cells {
    std::size_t columns = 0;
    std::size_t rows = 0;
    std::vector<std::uint32_t> colours;
};
/// Fills the box with the cells, each stored as `across` by `down` pixels. Throws std::runtime_error when
/// cairo fails.
void show_cells(cairo_t* cairo, const Box& box, const Cells& cells, std::size_t across = 1,
                std::size_t down = 1);

}  // namespace petacq::report
