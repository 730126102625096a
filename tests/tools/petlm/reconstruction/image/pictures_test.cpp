// The PNG pictures of petlm image, read back: greys, bar and ticks.
#include <numeric>

#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/petlm/reconstruction/image/grey_scale.hpp"
#include "tools/report/surface.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// A PNG file and the framed boxes in it, from left to right.
class Png {
  public:
    struct Box {
        std::size_t left, top, width, height;  ///< without the frame
    };

    explicit Png(const std::filesystem::path& file)
        : surface_(cairo_image_surface_create_from_png(file.c_str())) {
        REQUIRE(cairo_surface_status(surface_.get()) == CAIRO_STATUS_SUCCESS);
        width_ = static_cast<std::size_t>(cairo_image_surface_get_width(surface_.get()));
        height_ = static_cast<std::size_t>(cairo_image_surface_get_height(surface_.get()));
        for (std::size_t y = 0; y < height_; ++y) {
            for (std::size_t x = 0; x < width_; ++x)
                add_box(x, y);
        }
        std::sort(boxes_.begin(), boxes_.end(), [](const Box& a, const Box& b) { return a.left < b.left; });
    }
    [[nodiscard]] const std::vector<Box>& boxes() const { return boxes_; }
    /// 0xRRGGBB
    [[nodiscard]] std::uint32_t colour(std::size_t x, std::size_t y) const {
        const unsigned char* data = cairo_image_surface_get_data(surface_.get());
        std::uint32_t pixel = 0;
        std::memcpy(
            &pixel,
            data + y * static_cast<std::size_t>(cairo_image_surface_get_stride(surface_.get())) + 4 * x,
            sizeof pixel);
        return pixel & 0xFFFFFFU;
    }
    /// 0: white, 1: black.
    [[nodiscard]] double darkness(std::size_t x, std::size_t y) const {
        const std::uint32_t all = colour(x, y);
        REQUIRE(all == (all & 0xFFU) * 0x010101U);
        return 1 - (all & 0xFFU) / 255.0;
    }
    /// The darkness of a cell of a box that holds columns x rows of them; row 0 is the lowest.
    [[nodiscard]] double cell(const Box& box, std::size_t columns, std::size_t rows, std::size_t column,
                              std::size_t row) const {
        return darkness(box.left + (2 * column + 1) * box.width / (2 * columns),
                        box.top + (2 * (rows - 1 - row) + 1) * box.height / (2 * rows));
    }
    /// The ticks to the right of a box: their heights above its lower edge, from 0 to 1.
    [[nodiscard]] std::vector<double> ticks(const Box& box) const {
        std::vector<double> at;
        for (std::size_t y = box.top + box.height + 2; y-- > box.top - 2;) {
            const std::size_t x = box.left + box.width + 2;
            if (darkness(x, y) < 0.3) continue;
            const double height =
                static_cast<double>(box.top + box.height - y) / static_cast<double>(box.height);
            if (at.empty() || height - at.back() > 0.02) at.push_back(height);
        }
        return at;
    }

  private:
    static constexpr std::uint32_t frame = 0x999999;

    void add_box(std::size_t x, std::size_t y) {
        for (const Box& b : boxes_) {
            if (x + 1 >= b.left && x <= b.left + b.width && y + 1 >= b.top && y <= b.top + b.height) return;
        }
        std::size_t across = 0;
        std::size_t down = 0;
        while (x + across < width_ && colour(x + across, y) == frame)
            ++across;
        while (y + down < height_ && colour(x, y + down) == frame)
            ++down;
        if (across > 10 && down > 10) boxes_.push_back({x + 1, y + 1, across - 2, down - 2});
    }

    report::Surface surface_;
    std::size_t width_ = 0;
    std::size_t height_ = 0;
    std::vector<Box> boxes_;
};

/// A projection of a volume: columns, rows from the lowest, largest values.
struct Projection {
    std::array<std::size_t, 2> axes;
    std::array<std::size_t, 2> n;
    std::vector<float> values;

    Projection(const Volume& volume, std::size_t along)
        : axes{along == 0 ? 1U : 0U, along == 2 ? 1U : 2U},
          n{volume.n[axes[0]], volume.n[axes[1]]},
          values(n[0] * n[1]) {
        for (std::size_t i = 0; i < volume.values.size(); ++i) {
            const std::array<std::size_t, 3> at = {i % volume.n[0], i / volume.n[0] % volume.n[1],
                                                   i / volume.n[0] / volume.n[1]};
            float& value = values[at[axes[1]] * n[0] + at[axes[0]]];
            value = std::max(value, volume.values[i]);
        }
    }
};

constexpr std::array<std::size_t, 3> order_of_projections = {2, 1, 0};
const config::Vector3 middle = {0, 0, 0};
constexpr double radius = 11;
constexpr double length = 20;
const std::vector<config::Vector3> points = {{5, -3, 4}, {-4, 5, -5}};

/// A cylinder, and as many prompts of two points in it as asked for.
gpu::RecordVector<gpu::Coincidence> phantom(std::size_t of_points,
                                            const config::Scanner& scanner = export_scanner()) {
    auto all = cylinder_source(scanner, middle, radius, length, 60'000);
    for (const auto& where : points) {
        if (of_points == 0) break;
        const std::uint64_t shift = all.back().time - run_start;
        for (auto c : point_source(scanner, where, of_points)) {
            c.time += shift;
            all.push_back(c);
        }
    }
    return all;
}

}  // namespace

TEST_CASE("petlm image: the pictures show hot spots and what is a hundred times weaker", "[petlm][image]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", phantom(15'000));
    const Outcome outcome = imaged(directory / "run", directory / "out", "--smooth-mm 1.6");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const Volume volume(directory / "out" / "image.nii");
    const Png png(directory / "out" / "projections.png");
    REQUIRE(png.boxes().size() == 4);  // and the bar
    // At most 20 slabs, all as thick as they must be for that, and the bar.
    const std::size_t thickness = (volume.n[2] + 19) / 20;
    CHECK(thickness > 1);
    CHECK(Png(directory / "out" / "slices.png").boxes().size() ==
          (volume.n[2] + thickness - 1) / thickness + 1);
    for (std::size_t i = 0; i < order_of_projections.size(); ++i) {
        const Projection projection(volume, order_of_projections[i]);
        std::map<std::string, std::pair<double, double>> sums;  // darkness and number
        std::map<std::string, double> values;
        for (std::size_t cell = 0; cell < projection.values.size(); ++cell) {
            const std::array<std::size_t, 2> at = {cell % projection.n[0], cell / projection.n[0]};
            const auto distance = [&](const config::Vector3& from, std::size_t axis) {
                const std::size_t of = projection.axes[axis];
                return volume.origin_mm[of] + static_cast<double>(at[axis]) * volume.voxel_mm[of] - from[of];
            };
            double to_point = 1e9;
            for (const auto& point : points)
                to_point = std::min(to_point, std::hypot(distance(point, 0), distance(point, 1)));
            const double x = distance(middle, 0);
            const double y = distance(middle, 1);
            const bool end_on = projection.axes[1] == 1;
            const double depth =
                end_on ? radius - std::hypot(x, y) : std::min(radius - std::abs(x), length / 2 - std::abs(y));
            std::string where;
            if (to_point < 1.2) where = "point";
            if (to_point > 6 && depth > 2) where = "cylinder";
            if (depth < -6) where = "background";
            if (where.empty()) continue;
            auto& [sum, number] = sums[where];
            sum += png.cell(png.boxes()[i], projection.n[0], projection.n[1], at[0], at[1]);
            ++number;
            values[where] += projection.values[cell];
        }
        const auto mean = [&](const char* where) {
            REQUIRE(sums[where].second > 0);
            return sums[where].first / sums[where].second;
        };
        CAPTURE(i, mean("point"), mean("cylinder"), mean("background"));
        const double contrast =
            values["point"] / sums["point"].second / (values["cylinder"] / sums["cylinder"].second);
        CAPTURE(contrast);
        CHECK(contrast > 80);
        CHECK(mean("point") > 0.7);
        CHECK(mean("point") > mean("cylinder") + 0.25);
        CHECK(mean("cylinder") > 0.15);
        CHECK(mean("background") < mean("cylinder") / 3);
    }
}

TEST_CASE("petlm image: every grey of the projections is that of the value by the rule, and by --max",
          "[petlm][image]") {
    const TemporaryDirectory directory;
    const std::size_t of_points = GENERATE(0, 15'000);
    write_run(directory / "run", phantom(of_points, short_scanner()), short_scanner());
    const auto greys = [&](const std::string& options, auto expected) {
        const Outcome outcome = imaged(directory / "run", directory / "out", "--force " + options);
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        const Volume volume(directory / "out" / "image.nii");
        std::vector<Projection> projections;
        for (const std::size_t along : order_of_projections)
            projections.emplace_back(volume, along);
        Png png(directory / "out" / "projections.png");
        REQUIRE(png.boxes().size() == 4);
        double furthest = 0;
        for (std::size_t i = 0; i < projections.size(); ++i) {
            const Projection& p = projections[i];
            for (std::size_t cell = 0; cell < p.values.size(); ++cell) {
                const double is = png.cell(png.boxes()[i], p.n[0], p.n[1], cell % p.n[0], cell / p.n[0]);
                furthest = std::max(furthest, std::abs(is - expected(volume, p.values[cell])));
            }
        }
        CHECK(furthest < 0.6 / 255);
        const auto slices = Png(directory / "out" / "slices.png").boxes();
        CHECK(slices.size() == volume.n[2] + 1);  // all of them, and the bar
        return png;
    };
    double half = 0;
    double most = 0;
    const Png by_rule = greys("", [&](const Volume& volume, double value) {
        if (most == 0) {
            std::vector<float> falling = volume.values;
            std::sort(falling.rbegin(), falling.rend());
            most = falling.front();
            const double sum = std::accumulate(falling.begin(), falling.end(), 0.0);
            double above = 0;
            std::size_t i = 0;
            while (above + falling[i] <= 0.75 * sum)
                above += falling[i++];
            half = std::min(3.0 * falling[i], most / 2);
        }
        return value < half ? value / half / 2 : 0.5 + (value - half) / (most - half) / 2;
    });
    CHECK((half == most / 2) == (of_points == 0));

    // The bar: from white to black, with ticks that are further apart above the middle where that part of the
    // scale is longer.
    const Png::Box bar = by_rule.boxes().back();
    for (std::size_t row = 0; row < 128; ++row)
        CHECK(by_rule.cell(bar, 1, 128, 0, row) ==
              Approx((static_cast<double>(row) + 0.5) / 128).margin(0.01));
    const auto ticks = by_rule.ticks(bar);
    REQUIRE(ticks.size() >= 4);
    CHECK(ticks.front() == Approx(0).margin(0.01));
    CHECK(std::count_if(ticks.begin(), ticks.end(), [](double t) { return t > 0.52; }) >= 2);
    CHECK(std::count_if(ticks.begin(), ticks.end(), [](double t) { return t < 0.48; }) >= 2);

    const Png given = greys("--max 8", [](const Volume&, double v) { return std::min(v / 8, 1.0); });
    const auto even = given.ticks(given.boxes().back());
    REQUIRE(even.size() == 9);  // 0, 1, ... 8
    for (std::size_t i = 0; i < even.size(); ++i)
        CHECK(even[i] == Approx(static_cast<double>(i) / 8).margin(0.01));
}

TEST_CASE(
    "grey scale: half black is three times what a quarter of the sum is below, at most half of the largest",
    "[petlm][image]") {
    const auto with = [](std::size_t weak, std::size_t hot, float value) {
        std::vector<float> values(500, 0);
        for (std::size_t i = 0; i < weak; ++i)
            values.push_back(1 + static_cast<float>(i % 10) / 10);
        values.insert(values.end(), hot, value);
        return image::grey_scale(values, std::nullopt);
    };
    const auto body = with(10'000, 0, 0);
    CHECK(body.black == Approx(1.9));
    CHECK(body.even());
    CHECK(body.darkness(1.9) == 1);
    CHECK(body.darkness(0.95) == Approx(0.5));
    // However hot a few voxels are, and also if there is only one, as noise at the edge of the field of view.
    for (const auto& [hot, value] : {std::pair(1, 10.F), {1, 1e4F}, {40, 10.F}, {40, 800.F}, {1000, 30.F}}) {
        const auto scale = with(10'000, static_cast<std::size_t>(hot), value);
        CAPTURE(hot, value, scale.half);
        CHECK(scale.half >= 3 * 1.2F);
        CHECK(scale.half <= 3 * 1.9F);
        CHECK(scale.darkness(1.5) == Approx(1.5 / scale.half / 2));
        CHECK(scale.darkness(1.5) > 0.13);
        CHECK(scale.darkness(value) == 1);
        CHECK(scale.darkness(value / 2) < 0.76);
    }
    // Nothing but hot spots, and noise a million times weaker.
    CHECK(with(10'000, 40, 1e6F).even());
    CHECK(with(0, 40, 7).black == 7);
    const auto nothing = with(0, 0, 0);
    CHECK(nothing.darkness(1) == 0);
    const std::vector<float> few = {1, 2, 3};
    const auto given = image::grey_scale(few, 2.0);
    CHECK(given.darkness(1) == 0.5);
    CHECK(given.darkness(3) == 1);
}
