// Which modules overlap, against points within their layers.
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "config/scanner/arrangement.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"

namespace petacq::test {

namespace {

using nlohmann::json;

using Point = std::array<double, 3>;

json description(const json& types, const json& modules) {
    return {{"name", "two"},
            {"tick_ps", 10},
            {"position_size", 8},
            {"module_types", types},
            {"modules", modules}};
}

/// The layer is one crystal.
json layer(double y, double z, double length, double gap) {
    return {{"y", {{"count", 1}, {"pitch_mm", y}}},
            {"z", {{"count", 1}, {"pitch_mm", z}}},
            {"length_mm", length},
            {"gap_mm", gap}};
}

/// A place from its y, z and depth in the first module; and in those of another one.
struct Frame {
    explicit Frame(const config::Module& m) : origin(m.front_mm), axes{m.along_y, m.along_z, m.outward} {}
    [[nodiscard]] Point out(const Point& local) const {
        Point point = origin;
        for (std::size_t axis = 0; axis < 3; ++axis)
            for (std::size_t i = 0; i < 3; ++i)
                point[i] += local[axis] * axes[axis][i];
        return point;
    }
    [[nodiscard]] Point in(const Point& point) const {
        Point local{};
        for (std::size_t axis = 0; axis < 3; ++axis)
            for (std::size_t i = 0; i < 3; ++i)
                local[axis] += (point[i] - origin[i]) * axes[axis][i];
        return local;
    }
    Point origin;
    std::array<Point, 3> axes;
};

bool within(const config::ModuleType& type, const Point& local) {
    for (const config::CrystalLayer& l : type.layers) {
        if (local[0] > l.y.low() && local[0] < l.y.high() && local[1] > l.z.low() && local[1] < l.z.high() &&
            local[2] > l.front_mm && local[2] < l.front_mm + l.length_mm)
            return true;
    }
    return false;
}

/// Whether a point of a fine grid in the layers of one is within a layer of the other.
bool share_a_point(const config::ModuleType& type, const config::Module& a, const config::Module& b) {
    constexpr int steps = 14;
    const Frame from(a);
    const Frame to(b);
    for (const config::CrystalLayer& l : type.layers) {
        for (int i = 0; i < steps * steps * steps; ++i) {
            const auto at = [&](int step, double low, double high) {
                return low + (step % steps + 0.5) / steps * (high - low);
            };
            const Point local = {at(i, l.y.low(), l.y.high()), at(i / steps, l.z.low(), l.z.high()),
                                 at(i / steps / steps, l.front_mm, l.front_mm + l.length_mm)};
            if (within(type, to.in(from.out(local)))) return true;
        }
    }
    return false;
}

/// "" if the description is taken; otherwise how far the modules overlap, mm.
std::string overlap_of(const json& document) {
    const std::string text = complaint([&] { (void)config::scanner_from_json(document); });
    if (text.empty()) return text;
    const std::string before = "module 0 (of /modules/0) overlaps module 1 (of /modules/1) by ";
    const std::size_t at = text.find(before);
    INFO(text);
    REQUIRE(at != std::string::npos);
    return text.substr(at + before.size());
}

}  // namespace

TEST_CASE("arrangement: modules overlap if any two of their layers do") {
    std::mt19937 rng(7);
    const auto between = [&](double low, double high) {
        return std::uniform_real_distribution<double>(low, high)(rng);
    };
    int apart = 0;
    int overlapping = 0;
    int only_around = 0;  // taken, though boxes around whole modules overlap
    for (int trial = 0; trial < 200; ++trial) {
        INFO("trial " << trial);
        json layers;
        double widest = 0;
        for (int i = 0; i < 3; ++i) {
            layers.push_back(
                layer(between(2, 10), between(2, 10), between(2, 6), i == 1 ? between(0, 3) : 0));
            widest = std::max(widest, layers.back()["y"]["pitch_mm"].get<double>());
        }
        const json types = json::array({{{"name", "m"}, {"layers", layers}}});
        const auto place = [&](double y) {
            const json front = json::array({30 + between(-4, 4), y, between(-2, 2)});
            const json outward = json::array({1, between(-0.7, 0.7), between(-0.7, 0.7)});
            return json{{"type", "m"},
                        {"place", {{"front_mm", front}, {"outward", outward}, {"turn_deg", between(0, 90)}}}};
        };
        const json both = json::array({place(0), place(between(2, 12))});
        const std::string mm = overlap_of(description(types, both));
        // The places of both, whether or not they may be together.
        const auto one = config::scanner_from_json(description(types, json::array({both[0]})));
        const auto other = config::scanner_from_json(description(types, json::array({both[1]})));
        const config::ModuleType& type = one.arrangement->types()[0];
        const bool found =
            share_a_point(type, one.arrangement->modules()[0], other.arrangement->modules()[0]);
        if (mm.empty()) {
            CHECK_FALSE(found);
        } else if (std::stod(mm) > 1) {
            CHECK(found);
        }
        ++(mm.empty() ? apart : overlapping);
        // The same module as one layer that is as wide as the widest.
        double length = 0;
        double tallest = 0;
        for (const json& l : layers) {
            length += l["length_mm"].get<double>() + l["gap_mm"].get<double>();
            tallest = std::max(tallest, l["z"]["pitch_mm"].get<double>());
        }
        const json around =
            json::array({{{"name", "m"}, {"layers", json::array({layer(widest, tallest, length, 0)})}}});
        if (mm.empty() && !overlap_of(description(around, both)).empty()) ++only_around;
    }
    CHECK(apart > 50);
    CHECK(overlapping > 50);
    CHECK(only_around > 10);
}

TEST_CASE("arrangement: tapered modules of a ring may be as near as their layers") {
    // Eight sides: layers may be 2 tan(22.5 deg) = 0.828 times their distance wide.
    const auto ring = [](double outer) {
        const json types =
            json::array({{{"name", "m"}, {"layers", {layer(16, 8, 6, 0), layer(outer, 8, 6, 0)}}}});
        return description(types,
                           json::array({{{"type", "m"}, {"ring", {{"count", 8}, {"radius_mm", 20}}}}}));
    };
    CHECK(complaint([&] { (void)config::scanner_from_json(ring(21.5)); }).empty());
    CHECK(lacking(complaint([&] { (void)config::scanner_from_json(ring(21.6)); }),
                  {"overlaps module", "by 0.05"})
              .empty());
}

}  // namespace petacq::test
