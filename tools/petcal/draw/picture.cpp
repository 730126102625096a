#include <cairo.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
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
    std::optional<std::uint32_t> number;
    bool front_or_back;
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
            Face face{
                {}, 0, 0.62 + 0.38 * facing, number_of(box, arrangement, by), &one.normal == &m.outward};
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

void outline(cairo_t* cairo, const Face& face) {
    cairo_new_path(cairo);
    for (const PicturePoint& p : face.points)
        cairo_line_to(cairo, p.x, p.y);
    cairo_close_path(cairo);
}

/// The number of the box that is seen at each place: the faces once more, with numbers for colours.
class SeenNumbers {
  public:
    explicit SeenNumbers(const std::vector<Face>& faces)
        : surface_(report::image_surface(report::picture_width * fine, height * fine)),
          width_(cairo_image_surface_get_width(surface_.get())),
          height_(cairo_image_surface_get_height(surface_.get())) {
        report::check(cairo_surface_status(surface_.get()));
        const report::Cairo cairo(cairo_create(surface_.get()));
        cairo_set_antialias(cairo.get(), CAIRO_ANTIALIAS_NONE);
        cairo_scale(cairo.get(), fine, fine);
        for (const Face& face : faces) {
            const std::uint32_t colour = coded(face.number);
            const auto part = [&](unsigned shift) {
                return static_cast<double>(colour >> shift & 0xFFU) / 255;
            };
            cairo_set_source_rgb(cairo.get(), part(16), part(8), part(0));
            outline(cairo.get(), face);
            cairo_fill(cairo.get());
        }
        cairo_surface_flush(surface_.get());
    }
    [[nodiscard]] bool is(std::uint32_t number, double x, double y) const {
        const int column = static_cast<int>(std::floor(x * fine));
        const int row = static_cast<int>(std::floor(y * fine));
        if (column < 0 || column >= width_ || row < 0 || row >= height_) return false;
        std::uint32_t pixel = 0;
        std::memcpy(&pixel,
                    cairo_image_surface_get_data(surface_.get()) +
                        std::ptrdiff_t{row} * cairo_image_surface_get_stride(surface_.get()) +
                        std::ptrdiff_t{column} * 4,
                    4);
        return (pixel & 0xFFFFFFU) == coded(number);
    }

  private:
    static constexpr int fine = 2;  // pixels for each length of the picture
    /// Black is where nothing is seen.
    static std::uint32_t coded(std::optional<std::uint32_t> number) { return number ? *number + 2 : 1; }

    report::Surface surface_;
    int width_;
    int height_;
};

/// One of each number, the nearest first, none over another, and each where its own box is seen.
class Numbers {
  public:
    Numbers(cairo_t* cairo, const std::vector<Face>& faces) : cairo_(cairo), faces_(faces), seen_(faces) {}

    /// The order is that of the page: whole labels in the middle of front or back, then whole labels
    /// anywhere, then labels that are too large.
    void show() {
        cairo_set_font_size(cairo_, 9);
        for (auto face = faces_.rbegin(); face != faces_.rend(); ++face)
            if (face->front_or_back) show_in(*face, {0.5}, 1);
        for (const double inner : {1.0, 0.5})
            for (auto face = faces_.rbegin(); face != faces_.rend(); ++face)
                show_in(*face, {0.5, 0.3, 0.7, 0.15, 0.85}, inner);
    }

  private:
    struct Label {
        PicturePoint at;
        double half_width;
    };
    static constexpr double half_height = 5.5;

    /// At these parts of the length of the sides of a face. `inner`: this part of the width and height of the
    /// label must lie on its own boxes.
    void show_in(const Face& face, std::initializer_list<double> parts, double inner) {
        if (!face.number) return;
        for (const double u : parts) {
            for (const double v : parts) {
                if (shown_.contains(*face.number)) return;
                const std::array<double, 4> weights{(1 - u) * (1 - v), u * (1 - v), u * v, (1 - u) * v};
                PicturePoint at{};
                for (std::size_t i = 0; i < 4; ++i) {
                    at.x += weights[i] * face.points[i].x;
                    at.y += weights[i] * face.points[i].y;
                }
                show_at(at, *face.number, inner);
            }
        }
    }

    void show_at(const PicturePoint& at, std::uint32_t number, double inner) {
        if (!seen_.is(number, at.x, at.y)) return;
        const std::string text = std::to_string(number);
        const double half = report::text_width(cairo_, text) / 2 + 2;
        for (const double x : {-inner, inner})
            for (const double y : {-inner, inner})
                if (!seen_.is(number, at.x + x * half, at.y + y * half_height)) return;
        for (const Label& other : labels_) {
            if (std::abs(other.at.x - at.x) < other.half_width + half &&
                std::abs(other.at.y - at.y) < 2 * half_height)
                return;
        }
        shown_.insert(number);
        labels_.push_back({at, half});
        cairo_set_source_rgba(cairo_, 1, 1, 1, 0.8);
        cairo_rectangle(cairo_, at.x - half, at.y - half_height, 2 * half, 2 * half_height);
        cairo_fill(cairo_);
        cairo_set_source_rgb(cairo_, 0.12, 0.16, 0.2);
        report::show_text(cairo_, text, at.x, at.y + 3, 0.5);
    }

    cairo_t* cairo_;
    const std::vector<Face>& faces_;
    SeenNumbers seen_;
    std::set<std::uint32_t> shown_;
    std::vector<Label> labels_;
};

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
            outline(cairo, face);
            const std::uint32_t rgb = colour_of(face.number);
            const auto part = [&](unsigned shift) {
                return face.shade * static_cast<double>(rgb >> shift & 0xFFU) / 255;
            };
            cairo_set_source_rgb(cairo, part(16), part(8), part(0));
            cairo_fill_preserve(cairo);
            cairo_set_source_rgba(cairo, 0, 0, 0, 0.45);
            cairo_stroke(cairo);
        }
        Numbers(cairo, faces).show();
        show_axes(cairo, view);
        show_length(cairo, view);
    };
    return report::png_of(draw, height, report::light_theme(), "Scanner " + scanner.name, pixels);
}

}  // namespace petacq::petcal
