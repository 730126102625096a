#include "tools/petlm/image/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "tools/petlm/plot/surface.hpp"

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
constexpr double caption_height = 40;
constexpr double scale_width = 46;
constexpr double scale_height = 34;
constexpr double gap = 12;

class Drawing {
  public:
    Drawing(double width, double height)
        : surface_(petlm::image_surface(width, height)), context_(cairo_create(surface_.get())) {
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
        petlm::show_text(c(), what, x, y, align);
    }
    void line(double x1, double y1, double x2, double y2) const {
        cairo_move_to(c(), x1, y1);
        cairo_line_to(c(), x2, y2);
        cairo_stroke(c());
    }

    void plane(const Plane& plane, double left, double top, double pixels, float black) const {
        const double width = static_cast<double>(plane.n[0]) * pixels;
        const double height = static_cast<double>(plane.n[1]) * pixels;
        petlm::Cells cells{plane.n[0], plane.n[1], {}};
        for (std::size_t row = plane.n[1]; row-- > 0;) {
            for (std::size_t i = 0; i < plane.n[0]; ++i) {
                const float share = black > 0 ? plane.values[row * plane.n[0] + i] / black : 0;
                const auto level = static_cast<std::uint32_t>(255 - 255 * std::clamp(share, 0.0F, 1.0F));
                cells.colours.push_back(level * 0x010101U);
            }
        }
        petlm::show_cells(c(), {left, top, width, height}, cells);
        cairo_set_source_rgb(c(), 0.6, 0.6, 0.6);
        cairo_rectangle(c(), left - 0.5, top - 0.5, width + 1, height + 1);
        cairo_stroke(c());
        cairo_set_source_rgb(c(), 0, 0, 0);
        text(left + width / 2, top - 6, plane.title, 0.5);
    }

    void write(const std::filesystem::path& file) const {
        petlm::check(cairo_status(c()));
        petlm::write_png(surface_.get(), file);
    }

  private:
    petlm::Surface surface_;
    petlm::Cairo context_;
};

float black_level(const std::vector<Plane>& planes) {
    std::vector<float> values;
    for (const auto& plane : planes)
        std::copy_if(plane.values.begin(), plane.values.end(), std::back_inserter(values),
                     [](float v) { return v > 0; });
    if (values.empty()) return 0;
    const auto at = static_cast<std::ptrdiff_t>(0.995 * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<std::size_t>(at)];
}

/// Screen pixels per voxel, so that `voxels` of them are about `wanted` wide.
double pixels_for(std::size_t voxels, double wanted) {
    return std::max(1.0, std::round(wanted / static_cast<double>(voxels)));
}

double tick_step(double length) {
    double step = std::pow(10, std::floor(std::log10(length / 4)));
    for (const double factor : {2.0, 2.5, 2.0}) {
        if (length / step <= 6) break;
        step *= factor;
    }
    return step;
}

void draw_scales(const Drawing& drawing, const Grid& grid, const Plane& plane, double left, double top,
                 double pixels) {
    const double bottom = top + static_cast<double>(plane.n[1]) * pixels;
    const double width = static_cast<double>(plane.n[0]) * pixels;
    const double per_mm = pixels / grid.voxel_mm;
    const auto ticks = [&](std::size_t axis, const std::function<void(double)>& draw) {
        const double high = -grid.low(axis);
        const double step = tick_step(2 * high);
        const auto most = static_cast<int>(high / step);
        for (int i = -most; i <= most; ++i)
            draw(i * step);
    };
    ticks(plane.axes[0], [&](double mm) {
        const double x = left + (mm - grid.low(plane.axes[0])) * per_mm;
        drawing.line(x, bottom, x, bottom + 4);
        drawing.text(x, bottom + 16, fmt::format("{:g}", mm), 0.5);
    });
    ticks(plane.axes[1], [&](double mm) {
        const double y = bottom - (mm - grid.low(plane.axes[1])) * per_mm;
        drawing.line(left - 4, y, left, y);
        drawing.text(left - 6, y + 4, fmt::format("{:g}", mm), 1);
    });
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
        fmt::format("z {:.1f} to {:.1f} mm", grid.low(2) + static_cast<double>(first) * grid.voxel_mm,
                    grid.low(2) + static_cast<double>(last) * grid.voxel_mm);
    const std::size_t size = plane.n[0] * plane.n[1];
    plane.values.assign(size, 0);
    for (std::size_t z = first; z < last; ++z) {
        for (std::size_t i = 0; i < size; ++i)
            plane.values[i] += image[z * size + i] / static_cast<float>(last - first);
    }
    return plane;
}

std::string grey_text(float black) {
    return fmt::format("White: 0, black: {:.3g} or more.", black);
}

}  // namespace

std::optional<std::string> no_pictures_reason() {
    return std::nullopt;
}

void write_projections(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                       const std::string& caption) {
    const std::vector<Plane> planes = {projection(grid, image, 2), projection(grid, image, 1),
                                       projection(grid, image, 0)};
    const float black = black_level(planes);
    const double pixels = pixels_for(std::max({grid.n[0], grid.n[1], grid.n[2]}), 300);
    double width = gap;
    double height = 0;
    for (const auto& plane : planes) {
        width += scale_width + static_cast<double>(plane.n[0]) * pixels + gap;
        height = std::max(height, static_cast<double>(plane.n[1]) * pixels);
    }
    const Drawing drawing(width, gap + title_height + height + scale_height + caption_height);
    double left = gap + scale_width;
    for (const auto& plane : planes) {
        const double top = gap + title_height + height - static_cast<double>(plane.n[1]) * pixels;
        drawing.plane(plane, left, top, pixels, black);
        draw_scales(drawing, grid, plane, left, top, pixels);
        left += static_cast<double>(plane.n[0]) * pixels + gap + scale_width;
    }
    const double bottom = gap + title_height + height + scale_height;
    drawing.text(gap, bottom + 14, caption);
    drawing.text(gap, bottom + 30, grey_text(black));
    drawing.write(file);
}

void write_slices(const std::filesystem::path& file, const Grid& grid, std::span<const float> image,
                  const std::string& caption) {
    const std::size_t count = std::min<std::size_t>(20, grid.n[2]);
    std::vector<Plane> planes;
    for (std::size_t i = 0; i < count; ++i)
        planes.push_back(slab(grid, image, i * grid.n[2] / count, (i + 1) * grid.n[2] / count));
    const float black = black_level(planes);
    const double pixels = pixels_for(grid.n[0], 200);
    const std::size_t columns = std::min<std::size_t>(5, count);
    const std::size_t rows = (count + columns - 1) / columns;
    const double wide = grid.n[0] * pixels + gap;
    const double high = title_height + grid.n[1] * pixels + gap;
    const Drawing drawing(gap + static_cast<double>(columns) * wide,
                          static_cast<double>(rows) * high + caption_height);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i / columns;
        const std::size_t column = i % columns;
        drawing.plane(planes[i], gap + static_cast<double>(column) * wide,
                      static_cast<double>(row) * high + title_height, pixels, black);
    }
    drawing.text(gap, static_cast<double>(rows) * high + 14, caption);
    drawing.text(gap, static_cast<double>(rows) * high + 30,
                 "Seen from +z: x to the right, y up. Mean of each slab. " + grey_text(black));
    drawing.write(file);
}

}  // namespace petacq::image
