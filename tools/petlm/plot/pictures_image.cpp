// Three cuts through the image of the run.
#include <algorithm>
#include <array>

#include "tools/petlm/plot/pictures.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::petlm {
namespace {

constexpr std::array<const char*, 3> axis_names = {"x (mm)", "y (mm)", "z (mm)"};
constexpr double left_margin = 62;
constexpr double below = 48;  // what a plot takes for its axis
constexpr double gap = 12;

/// A plane across the axis that is neither `right` nor `up`.
struct Cut {
    std::size_t right;
    std::size_t up;
};
constexpr Cut coronal{0, 2};
constexpr Cut sagittal{1, 2};
constexpr Cut transaxial{0, 1};

std::array<std::size_t, 3> place_of(const image::Grid& grid, std::size_t voxel) {
    return {voxel % grid.n[0], voxel / grid.n[0] % grid.n[1], voxel / (std::size_t{grid.n[0]} * grid.n[1])};
}

Matrix matrix_of(const RunImage& image, const Cut& cut) {
    const image::Grid& grid = image.grid;
    Matrix m{grid.n[cut.up], grid.n[cut.right], {}};
    std::array<std::size_t, 3> at = place_of(grid, image.brightest);
    for (at[cut.up] = 0; at[cut.up] < m.rows; ++at[cut.up]) {
        for (at[cut.right] = 0; at[cut.right] < m.columns; ++at[cut.right])
            m.values.push_back(image.values[(at[2] * grid.n[1] + at[1]) * grid.n[0] + at[0]]);
    }
    return m;
}

/// All cuts in one scale: picture units for each mm.
struct Layout {
    double per_mm;
    std::array<double, 3> size;  ///< of the image along each axis

    explicit Layout(const image::Grid& grid) {
        std::array<double, 3> mm{};
        for (std::size_t axis = 0; axis < 3; ++axis)
            mm[axis] = grid.n[axis] * grid.voxel_mm;
        constexpr double wide = picture_width - 2 * left_margin - gap - bar_width;
        constexpr double high = 520;
        per_mm = std::min(wide / (mm[0] + mm[1]), high / (mm[2] + mm[1]));
        for (std::size_t axis = 0; axis < 3; ++axis)
            size[axis] = mm[axis] * per_mm;
    }
    [[nodiscard]] double height() const { return size[2] + size[1] + 2 * (below + gap); }
};

}  // namespace

Picture cuts_of_image(const PictureData& data) {
    const RunImage& image = *data.image;
    const image::Grid& grid = image.grid;
    const std::array<std::size_t, 3> at = place_of(grid, image.brightest);
    const std::string where = fmt::format("({:.1f}, {:.1f}, {:.1f}) mm", grid.centre(0, at[0]),
                                          grid.centre(1, at[1]), grid.centre(2, at[2]));
    Picture p;
    p.name = "image";
    p.title = "Image";
    p.caption =
        "Three cuts through the brightest voxel, at " + where +
        ": from above and from the side with +z upwards, and across the axis as seen from +z. A quick look, "
        "by the method of petlm image: ";
    for (const std::string& sentence : image.sentences)
        p.caption += sentence + ' ';
    p.alt = "Three cuts through the image of the run at its brightest voxel, " + where + ".";
    const Layout layout(grid);
    p.height = layout.height();
    p.draw = [&image, &grid, layout](cairo_t* cairo, const Theme& theme) {
        const double most = std::max(image.values[image.brightest], 1e-30F);
        const auto show = [&](const Cut& cut, double x, double y, bool bar) {
            const auto axis = [&](std::size_t along) {
                return Axis{axis_names[along], grid.low(along), -grid.low(along)};
            };
            const double right = bar ? bar_width : 0;
            Plot plot(cairo, theme,
                      {x, y, left_margin + layout.size[cut.right] + right, layout.size[cut.up] + below + gap},
                      axis(cut.right), axis(cut.up), {left_margin, gap, right});
            plot.heat(matrix_of(image, cut), most);
            if (bar) plot.colour_bar(most, "decays per voxel");
        };
        show(coronal, 0, 0, false);
        show(sagittal, left_margin + layout.size[0] + gap, 0, true);
        show(transaxial, 0, layout.size[2] + below + gap, false);
    };
    p.csv = [&image](OutputFile& out) {
        out.text("cut,right_mm,up_mm,value\n");
        constexpr std::array cuts = {std::pair("xz", coronal), std::pair("yz", sagittal),
                                     std::pair("xy", transaxial)};
        for (const auto& [name, cut] : cuts) {
            const Matrix m = matrix_of(image, cut);
            for (std::size_t i = 0; i < m.values.size(); ++i) {
                print(out, "{},{:.4f},{:.4f},{:.6g}\n", name, image.grid.centre(cut.right, i % m.columns),
                      image.grid.centre(cut.up, i / m.columns), m.values[i]);
            }
        }
    };
    return p;
}

}  // namespace petacq::petlm
