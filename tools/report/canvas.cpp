#include "tools/report/canvas.hpp"

#include <cairo-svg.h>

#include <cmath>
#include <stdexcept>

#include "tools/report/surface.hpp"

namespace petacq::report {
namespace {

constexpr double title_height = 30;
constexpr double title_size = 16;

/// A font with Greek, minus and degree signs; the package of petacqd depends on it.
void prepare(cairo_t* cairo) {
    cairo_select_font_face(cairo, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_line_join(cairo, CAIRO_LINE_JOIN_ROUND);
}

void paint(cairo_t* cairo, const Colour& colour) {
    cairo_set_source_rgb(cairo, colour.red, colour.green, colour.blue);
    cairo_paint(cairo);
}

constexpr Colour hex(std::uint32_t rgb) {
    return {(rgb >> 16U) / 255.0, (rgb >> 8U & 0xFFU) / 255.0, (rgb & 0xFFU) / 255.0};
}

}  // namespace

const Theme& light_theme() {
    static const Theme theme = {hex(0xFFFFFF), hex(0x1F2933), hex(0x52606D), hex(0xE1E6EB),
                                hex(0x1F5FA8), hex(0xC2570C), hex(0x1A7F5A), hex(0x7A3E9D)};
    return theme;
}

const Theme& dark_theme() {
    static const Theme theme = {hex(0x171C22), hex(0xE6EAEE), hex(0xA3AFBA), hex(0x323B45),
                                hex(0x6FB1F5), hex(0xF2994A), hex(0x5ED3A4), hex(0xC79BE8)};
    return theme;
}

std::string svg_of(const Draw& draw, double height, const Theme& theme) {
    std::string text;
    const auto append = [](void* to, const unsigned char* data, unsigned int size) {
        static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(data), size);
        return CAIRO_STATUS_SUCCESS;
    };
    const Surface surface(cairo_svg_surface_create_for_stream(append, &text, picture_width, height));
    {
        const Cairo cairo(cairo_create(surface.get()));
        paint(cairo.get(), theme.background);
        prepare(cairo.get());
        draw(cairo.get(), theme);
        check(cairo_status(cairo.get()));
    }
    cairo_surface_finish(surface.get());
    check(cairo_surface_status(surface.get()));
    const std::size_t begin = text.find("<svg");
    if (begin == std::string::npos) throw std::runtime_error("drawing failed: no SVG");
    return text.substr(begin);
}

std::string png_of(const Draw& draw, double height, const Theme& theme, const std::string& title,
                   std::uint32_t pixels) {
    const Surface surface = image_surface(
        pixels, static_cast<double>(std::lround((height + title_height) * pixels / picture_width)));
    {
        const Cairo cairo(cairo_create(surface.get()));
        paint(cairo.get(), theme.background);
        prepare(cairo.get());
        cairo_scale(cairo.get(), pixels / picture_width, pixels / picture_width);
        cairo_set_source_rgb(cairo.get(), theme.text.red, theme.text.green, theme.text.blue);
        cairo_set_font_size(cairo.get(), title_size);
        cairo_move_to(cairo.get(), 12, title_height - 8);
        cairo_show_text(cairo.get(), title.c_str());
        cairo_translate(cairo.get(), 0, title_height);
        draw(cairo.get(), theme);
        check(cairo_status(cairo.get()));
    }
    return png_of(surface.get());
}

}  // namespace petacq::report
