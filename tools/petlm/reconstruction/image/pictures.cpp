#include "tools/petlm/reconstruction/image/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "config/base/decimals.hpp"
#include "tools/petlm/reconstruction/image/grey_scale.hpp"
#include "tools/petlm/records/output.hpp"
#include "tools/report/axes.hpp"
#include "tools/report/surface.hpp"

namespace petacq::image {
namespace {

/// Values to be shown, row by row from the bottom to the top.
struct Plane {
    std::string title;
    std::array<std::size_t, 2> axes{};  ///< to the right and up
    std::array<std::size_t, 2> n{};
    std::vector<float> values;
};

constexpr std::array<const char*, 3> axis_names = {"x", "y", "z"};
constexpr double title_height = 20;
constexpr double caption_height = 56;
constexpr double bar_thickness = 14;
constexpr double bar_space = 110;  ///< with its labels
constexpr double scale_width = 46;
constexpr double scale_height = 34;
constexpr double gap = 12;
constexpr double line_height = 16;

class Drawing {
  public:
    Drawing(double width, double height)
        : surface_(report::image_surface(width, height)), context_(cairo_create(surface_.get())) {
        cairo_set_source_rgb(c(), 1, 1, 1);
        cairo_paint(c());
        cairo_set_source_rgb(c(), 0, 0, 0);
        cairo_select_font_face(c(), "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
        cairo_set_font_size(c(), 12);
        cairo_set_line_width(c(), 1);
    }
    [[nodiscard]] cairo_t* c() const { return context_.get(); }

    /// `align`: the part of the text that is left of the point, 0 to 1.
    void text(double x, double y, const std::string& what, double align = 0) const {
        report::show_text(c(), what, x, y, align);
    }
    void line(double x1, double y1, double x2, double y2) const {
        cairo_move_to(c(), x1, y1);
        cairo_line_to(c(), x2, y2);
        cairo_stroke(c());
    }

    void plane(const Plane& plane, double left, double top, double pixels, const GreyScale& scale) const {
        const double width = static_cast<double>(plane.n[0]) * pixels;
        const double height = static_cast<double>(plane.n[1]) * pixels;
        report::Cells cells{plane.n[0], plane.n[1], {}};
        for (std::size_t row = plane.n[1]; row-- > 0;) {
            for (std::size_t i = 0; i < plane.n[0]; ++i)
                cells.colours.push_back(grey(scale.darkness(plane.values[row * plane.n[0] + i])));
        }
        framed({left, top, width, height}, cells);
        text(left + width / 2, top - 6, plane.title, 0.5);
    }

    /// The greys of the scale and their values, from the bottom to the top.
    void bar(const GreyScale& scale, const std::string& unit, double left, double top, double height) const {
        constexpr std::size_t shades = 128;
        report::Cells cells{1, shades, {}};
        for (std::size_t row = shades; row-- > 0;)
            cells.colours.push_back(grey((static_cast<double>(row) + 0.5) / shades));
        framed({left, top, bar_thickness, height}, cells);
        text(left, top - 6, unit);
        if (scale.black <= 0) return;
        const double right = left + bar_thickness;
        double last = top + height + line_height;
        const auto label = [&](double from, double to, double length) {
            const report::Ticks ticks = report::ticks_of({"", from, to}, length / 30);
            for (const double value : ticks.at) {
                const double y = top + height * (1 - scale.darkness(value));
                if (y > last - line_height) continue;  // no room
                line(right + 1, y, right + 5, y);
                text(right + 8, y + 4, ticks.label(value));
                last = y;
            }
        };
        if (scale.even()) {
            label(0, scale.black, height);
        } else {
            label(0, scale.half, height / 2);
            label(scale.half, scale.black, height / 2);
        }
    }

    /// `what` says what is shown.
    void captions(double top, const PictureTexts& texts, const std::string& what,
                  const GreyScale& scale) const {
        text(gap, top + line_height, texts.warning);
        text(gap, top + 2 * line_height, what + " Values: " + texts.values);
        text(gap, top + 3 * line_height, scale.text());
    }

    void write(const std::filesystem::path& file) const {
        report::check(cairo_status(c()));
        petlm::write_text(file, report::png_of(surface_.get()));
    }

  private:
    static std::uint32_t grey(double darkness) {
        return static_cast<std::uint32_t>(std::lround(255 * (1 - darkness))) * 0x010101U;
    }
    void framed(const report::Box& box, const report::Cells& cells) const {
        report::show_cells(c(), box, cells);
        cairo_set_source_rgb(c(), 0.6, 0.6, 0.6);
        cairo_rectangle(c(), box.x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
        cairo_stroke(c());
        cairo_set_source_rgb(c(), 0, 0, 0);
    }

    report::Surface surface_;
    report::Cairo context_;
};

/// Screen pixels per voxel, so that `voxels` of them are about `wanted` wide.
double pixels_for(std::size_t voxels, double wanted) {
    return std::max(1.0, std::round(wanted / static_cast<double>(voxels)));
}

void draw_scales(const Drawing& drawing, const Grid& grid, const Plane& plane, double left, double top,
                 double pixels) {
    const double bottom = top + static_cast<double>(plane.n[1]) * pixels;
    const double width = static_cast<double>(plane.n[0]) * pixels;
    const double per_mm = pixels / grid.voxel_mm;
    const auto ticks_of = [&](std::size_t axis) {
        return report::ticks_of({"", grid.low(axis), -grid.low(axis)}, 6);
    };
    const report::Ticks across = ticks_of(plane.axes[0]);
    for (const double mm : across.at) {
        const double x = left + (mm - grid.low(plane.axes[0])) * per_mm;
        drawing.line(x, bottom + 1, x, bottom + 5);
        drawing.text(x, bottom + 16, across.label(mm), 0.5);
    }
    const report::Ticks up = ticks_of(plane.axes[1]);
    for (const double mm : up.at) {
        const double y = bottom - (mm - grid.low(plane.axes[1])) * per_mm;
        drawing.line(left - 5, y, left - 1, y);
        drawing.text(left - 7, y + 4, up.label(mm), 1);
    }
    drawing.text(left + width / 2, bottom + 30, fmt::format("{} (mm)", axis_names[plane.axes[0]]), 0.5);
    drawing.text(left - scale_width + 2, top - 6, fmt::format("{} (mm)", axis_names[plane.axes[1]]));
}

/// The largest value along an axis.
Plane projection(const Grid& grid, std::span<const float> image, std::size_t along) {
    Plane plane;
    plane.axes = {along == 0 ? 1U : 0U, along == 2 ? 1U : 2U};
    plane.n = {grid.n[plane.axes[0]], grid.n[plane.axes[1]]};
    plane.title = fmt::format("largest along {}", axis_names[along]);
    plane.values.assign(plane.n[0] * plane.n[1], 0);
    std::array<std::size_t, 3> at{};
    std::size_t i = 0;
    for (at[2] = 0; at[2] < grid.n[2]; ++at[2]) {
        for (at[1] = 0; at[1] < grid.n[1]; ++at[1]) {
            for (at[0] = 0; at[0] < grid.n[0]; ++at[0], ++i) {
                float& value = plane.values[at[plane.axes[1]] * plane.n[0] + at[plane.axes[0]]];
                value = std::max(value, image[i]);
            }
        }
    }
    return plane;
}

/// The mean of the planes first..last-1.
Plane slab(const Grid& grid, std::span<const float> image, std::size_t first, std::size_t last) {
    Plane plane;
    plane.axes = {0, 1};
    plane.n = {grid.n[0], grid.n[1]};
    plane.title =
        fmt::format("z {:.1f} to {:.1f} mm",
                    config::without_minus_zero(grid.low(2) + static_cast<double>(first) * grid.voxel_mm, 1),
                    config::without_minus_zero(grid.low(2) + static_cast<double>(last) * grid.voxel_mm, 1));
    const std::size_t size = plane.n[0] * plane.n[1];
    plane.values.assign(size, 0);
    for (std::size_t z = first; z < last; ++z) {
        for (std::size_t i = 0; i < size; ++i)
            plane.values[i] += image[z * size + i] / static_cast<float>(last - first);
    }
    return plane;
}

}  // namespace

void write_projections(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                       const PictureTexts& texts, std::optional<double> black) {
    const std::vector<Plane> planes = {projection(grid, image, 2), projection(grid, image, 1),
                                       projection(grid, image, 0)};
    const GreyScale scale = grey_scale(image, black);
    const double pixels = pixels_for(std::max({grid.n[0], grid.n[1], grid.n[2]}), 300);
    double width = gap;
    double height = 0;
    for (const auto& plane : planes) {
        width += scale_width + static_cast<double>(plane.n[0]) * pixels + gap;
        height = std::max(height, static_cast<double>(plane.n[1]) * pixels);
    }
    const Drawing drawing(width + bar_space, gap + title_height + height + scale_height + caption_height);
    double left = gap + scale_width;
    for (const auto& plane : planes) {
        const double top = gap + title_height + height - static_cast<double>(plane.n[1]) * pixels;
        drawing.plane(plane, left, top, pixels, scale);
        draw_scales(drawing, grid, plane, left, top, pixels);
        left += static_cast<double>(plane.n[0]) * pixels + gap + scale_width;
    }
    drawing.bar(scale, texts.unit, width, gap + title_height, height);
    drawing.captions(gap + title_height + height + scale_height, texts, "The largest value along each axis.",
                     scale);
    drawing.write(file);
}

void write_slices(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                  const PictureTexts& texts, std::optional<double> black) {
    // All of one thickness; only the last one is thinner where the planes do not divide evenly.
    constexpr std::size_t most = 20;
    const std::size_t thickness = std::max<std::size_t>(1, (grid.n[2] + most - 1) / most);
    std::vector<Plane> planes;
    for (std::size_t first = 0; first < grid.n[2]; first += thickness)
        planes.push_back(slab(grid, image, first, std::min<std::size_t>(first + thickness, grid.n[2])));
    const std::size_t count = planes.size();
    std::vector<float> values;
    for (const auto& plane : planes)
        values.insert(values.end(), plane.values.begin(), plane.values.end());
    const GreyScale scale = grey_scale(values, black);
    const double pixels = pixels_for(grid.n[0], 200);
    const std::size_t columns = std::min<std::size_t>(5, count);
    const std::size_t rows = (count + columns - 1) / columns;
    const double wide = grid.n[0] * pixels + gap;
    const double high = title_height + grid.n[1] * pixels + gap;
    const double bar_left = gap + static_cast<double>(columns) * wide;
    const Drawing drawing(bar_left + bar_space, static_cast<double>(rows) * high + caption_height);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i / columns;
        const std::size_t column = i % columns;
        drawing.plane(planes[i], gap + static_cast<double>(column) * wide,
                      static_cast<double>(row) * high + title_height, pixels, scale);
    }
    drawing.bar(scale, texts.unit, bar_left, title_height, high - title_height - gap);
    drawing.captions(static_cast<double>(rows) * high, texts,
                     "The mean of each slab, seen from +z: x to the right, y up.", scale);
    drawing.write(file);
}

}  // namespace petacq::image
