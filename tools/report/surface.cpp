#include "tools/report/surface.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tools/report/png.hpp"

namespace petacq::report {

void check(cairo_status_t status) {
    if (status == CAIRO_STATUS_SUCCESS) return;
    throw std::runtime_error(std::string("drawing failed: ") + cairo_status_to_string(status));
}

Surface image_surface(double width, double height) {
    return Surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(std::ceil(width)),
                                              static_cast<int>(std::ceil(height))));
}

std::string png_of(cairo_surface_t* surface) {
    check(cairo_surface_status(surface));
    cairo_surface_flush(surface);
    const auto width = static_cast<std::size_t>(cairo_image_surface_get_width(surface));
    const auto height = static_cast<std::size_t>(cairo_image_surface_get_height(surface));
    const unsigned char* const data = cairo_image_surface_get_data(surface);
    const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(surface));
    ColourPicture picture{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), {}};
    picture.pixels.reserve(3 * width * height);
    for (std::size_t y = 0; y < height; ++y) {
        const auto* line = reinterpret_cast<const std::uint32_t*>(data + y * stride);
        for (std::size_t x = 0; x < width; ++x)
            for (const unsigned shift : {16U, 8U, 0U})
                picture.pixels.push_back(static_cast<std::uint8_t>(line[x] >> shift));
    }
    return png_of(picture);
}

double text_width(cairo_t* cairo, const std::string& text) {
    cairo_text_extents_t extents{};
    cairo_text_extents(cairo, text.c_str(), &extents);
    return extents.x_advance;
}

void show_text(cairo_t* cairo, const std::string& text, double x, double y, double align) {
    cairo_move_to(cairo, x - align * text_width(cairo, text), y);
    cairo_show_text(cairo, text.c_str());
}

void show_cells(cairo_t* cairo, const Box& box, const Cells& cells, std::size_t across, std::size_t down) {
    const auto width = static_cast<int>(cells.columns * across);
    const auto height = static_cast<int>(cells.rows * down);
    const Surface image = image_surface(width, height);
    check(cairo_surface_status(image.get()));
    unsigned char* const data = cairo_image_surface_get_data(image.get());
    const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(image.get()));
    cairo_surface_flush(image.get());
    for (std::size_t y = 0; y < cells.rows * down; ++y) {
        auto* line = reinterpret_cast<std::uint32_t*>(data + y * stride);
        for (std::size_t column = 0; column < cells.columns; ++column)
            line = std::fill_n(line, across, cells.colours[y / down * cells.columns + column]);
    }
    cairo_surface_mark_dirty(image.get());
    cairo_save(cairo);
    cairo_translate(cairo, box.x, box.y);
    cairo_scale(cairo, box.width / width, box.height / height);
    cairo_set_source_surface(cairo, image.get(), 0, 0);
    cairo_pattern_set_filter(cairo_get_source(cairo), CAIRO_FILTER_NEAREST);
    cairo_rectangle(cairo, 0, 0, width, height);
    cairo_fill(cairo);
    cairo_restore(cairo);
}

}  // namespace petacq::report
