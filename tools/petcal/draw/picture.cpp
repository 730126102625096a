#include <cairo.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "tools/petcal/draw/draw.hpp"
#include "tools/report/axes.hpp"
#include "tools/report/canvas.hpp"
#include "tools/report/surface.hpp"

namespace petacq::petcal {

namespace {

using config::Vector3;

constexpr double height = 460;
constexpr std::uint32_t pixels = 1400;

struct PicturePoint {
    double x;
    double y;
};

double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// As the page begins: y upwards, seen from the right and from above.
struct Projection {
    Vector3 right;
    Vector3 down;
    Vector3 towards;
    double scale;

    explicit Projection(double reach_mm) : scale(0.45 * height / reach_mm) {
        constexpr double turn = -0.6;
        constexpr double tilt = -0.45;
        const double c = std::cos(turn);
        const double s = std::sin(turn);
        const double ct = std::cos(tilt);
        const double st = std::sin(tilt);
        right = {c, 0, s};
        down = {st * s, -ct, -st * c};
        towards = {-ct * s, -st, ct * c};
    }
    [[nodiscard]] PicturePoint at(const Vector3& p) const {
        return {report::picture_width / 2 + scale * dot(p, right), height / 2 + scale * dot(p, down)};
    }
};

struct Face {
    std::array<PicturePoint, 4> points;
    double depth;
    double shade;
    std::uint32_t colour;
};

struct FaceOfBox {
    std::array<std::size_t, 4> corners;
    const Vector3& normal;
    double sign;
};

std::vector<Face> faces_of(const Scene& scene, const config::Arrangement& arrangement, SceneColour by,
                           const Projection& view) {
    std::vector<Face> faces;
    for (const SceneBox& box : scene.boxes) {
        const config::Module& m = arrangement.modules()[box.module];
        const std::array<FaceOfBox, 6> all{{{{0, 1, 3, 2}, m.outward, -1},
                                            {{4, 5, 7, 6}, m.outward, 1},
                                            {{0, 2, 6, 4}, m.along_y, -1},
                                            {{1, 3, 7, 5}, m.along_y, 1},
                                            {{0, 1, 5, 4}, m.along_z, -1},
                                            {{2, 3, 7, 6}, m.along_z, 1}}};
        for (const FaceOfBox& one : all) {
            const double facing = one.sign * dot(one.normal, view.towards);
            if (facing <= 0.001) continue;
            Face face{{}, 0, 0.62 + 0.38 * facing, colour_of(number_of(box, arrangement, by))};
            for (std::size_t i = 0; i < 4; ++i) {
                face.points[i] = view.at(box.corners[one.corners[i]]);
                face.depth += dot(box.corners[one.corners[i]], view.towards) / 4;
            }
            faces.push_back(face);
        }
    }
    std::stable_sort(faces.begin(), faces.end(),
                     [](const Face& a, const Face& b) { return a.depth < b.depth; });
    return faces;
}

/// One of each number, the nearest first, and none over another.
void show_numbers(cairo_t* cairo, const Scene& scene, const config::Arrangement& arrangement, SceneColour by,
                  const Projection& view) {
    struct Label {
        double depth;
        PicturePoint at;
        std::uint32_t number;
    };
    std::vector<Label> labels;
    for (const SceneBox& box : scene.boxes) {
        const auto number = number_of(box, arrangement, by);
        if (!number) continue;
        const bool from_behind = dot(arrangement.modules()[box.module].outward, view.towards) > 0;
        Vector3 middle{};
        for (std::size_t i = 0; i < 4; ++i)
            for (std::size_t axis = 0; axis < 3; ++axis)
                middle[axis] += box.corners[i + (from_behind ? 4 : 0)][axis] / 4;
        labels.push_back({dot(middle, view.towards), view.at(middle), *number});
    }
    std::stable_sort(labels.begin(), labels.end(),
                     [](const Label& a, const Label& b) { return a.depth > b.depth; });
    std::set<std::uint32_t> shown;
    std::vector<PicturePoint> places;
    cairo_set_font_size(cairo, 9);
    for (const Label& label : labels) {
        const bool covered = std::any_of(places.begin(), places.end(), [&](const PicturePoint& p) {
            return std::abs(p.x - label.at.x) < 18 && std::abs(p.y - label.at.y) < 10;
        });
        if (covered || !shown.insert(label.number).second) continue;
        places.push_back(label.at);
        const std::string text = std::to_string(label.number);
        const double width = report::text_width(cairo, text) + 4;
        cairo_set_source_rgba(cairo, 1, 1, 1, 0.8);
        cairo_rectangle(cairo, label.at.x - width / 2, label.at.y - 5.5, width, 11);
        cairo_fill(cairo);
        cairo_set_source_rgb(cairo, 0.12, 0.16, 0.2);
        report::show_text(cairo, text, label.at.x, label.at.y + 3, 0.5);
    }
}

/// Where x, y and z of the scanner point, in the lower left corner.
void show_axes(cairo_t* cairo, const Projection& view) {
    struct Arrow {
        const char* name;
        Vector3 along;
        report::Colour colour;
    };
    const std::array<Arrow, 3> arrows{{{"x", {1, 0, 0}, {0.75, 0.1, 0.1}},
                                       {"y", {0, 1, 0}, {0.1, 0.5, 0.1}},
                                       {"z", {0, 0, 1}, {0.1, 0.2, 0.75}}}};
    constexpr double length = 36;
    constexpr double head = 7;
    constexpr PicturePoint origin{48, height - 48};
    cairo_set_line_width(cairo, 1.5);
    cairo_set_font_size(cairo, 11);
    for (const Arrow& arrow : arrows) {
        const double x = dot(arrow.along, view.right);
        const double y = dot(arrow.along, view.down);
        const double shown = std::hypot(x, y);  // of its length; none points at the viewer
        const PicturePoint tip{origin.x + length * x, origin.y + length * y};
        const PicturePoint back{tip.x - head * x / shown, tip.y - head * y / shown};
        const PicturePoint side{0.4 * head * y / shown, -0.4 * head * x / shown};
        cairo_set_source_rgb(cairo, arrow.colour.red, arrow.colour.green, arrow.colour.blue);
        cairo_move_to(cairo, origin.x, origin.y);
        cairo_line_to(cairo, back.x, back.y);
        cairo_stroke(cairo);
        cairo_move_to(cairo, tip.x, tip.y);
        cairo_line_to(cairo, back.x + side.x, back.y + side.y);
        cairo_line_to(cairo, back.x - side.x, back.y - side.y);
        cairo_fill(cairo);
        report::show_text(cairo, arrow.name, tip.x + 8 * x / shown, tip.y + 8 * y / shown + 4, 0.5);
    }
}

/// A round length in mm, in the lower right corner. It is that of lines across the view: others look shorter.
void show_length(cairo_t* cairo, const Projection& view) {
    constexpr double least = 40;  // of the picture
    constexpr double right = report::picture_width - 16;
    constexpr double bottom = height - 16;
    const double mm = report::ticks_of({"", 0, least / view.scale}, 1).step;
    const double width = mm * view.scale;
    cairo_set_source_rgb(cairo, 0.12, 0.16, 0.2);
    cairo_rectangle(cairo, right - width, bottom - 2, width, 2);
    cairo_fill(cairo);
    cairo_set_font_size(cairo, 11);
    report::show_text(cairo, fmt::format("{:g} mm", mm), right - width / 2, bottom - 7, 0.5);
}

}  // namespace

std::string picture_of(const config::Scanner& scanner, SceneColour colour) {
    const auto arrangement = config::arrangement_of(scanner);
    const Scene scene = scene_of(scanner);
    const Projection view(scene.reach_mm);
    const auto faces = faces_of(scene, *arrangement, colour, view);
    const auto draw = [&](cairo_t* cairo, const report::Theme&) {
        cairo_set_line_width(cairo, 0.3);
        for (const Face& face : faces) {
            cairo_new_path(cairo);
            for (const PicturePoint& p : face.points)
                cairo_line_to(cairo, p.x, p.y);
            cairo_close_path(cairo);
            const auto part = [&](unsigned shift) {
                return face.shade * static_cast<double>(face.colour >> shift & 0xFFU) / 255;
            };
            cairo_set_source_rgb(cairo, part(16), part(8), part(0));
            cairo_fill_preserve(cairo);
            cairo_set_source_rgba(cairo, 0, 0, 0, 0.45);
            cairo_stroke(cairo);
        }
        show_numbers(cairo, scene, *arrangement, colour, view);
        show_axes(cairo, view);
        show_length(cairo, view);
    };
    return report::png_of(draw, height, report::light_theme(), "Scanner " + scanner.name, pixels);
}

}  // namespace petacq::petcal
