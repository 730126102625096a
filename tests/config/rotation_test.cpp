// The angle of a scanner that turns, from the counts of its encoder.
#include "config/scanner/rotation.hpp"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/scanner/arrangement.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using nlohmann::json;

namespace {

constexpr double whole_turn = 2 * std::numbers::pi;

json two_heads() {
    return config::read_json_file(std::string(PETACQ_SOURCE_DIR) +
                                  "/config/examples/scanners/two-heads.scanner.json");
}

std::string refusal_of(const json& rotation) {
    json document = two_heads();
    document["rotation"] = rotation;
    try {
        config::scanner_from_json(document);
    } catch (const config::Error& error) {
        return error.what();
    }
    return "";
}

double apart(double a, double b) {
    return std::abs(std::remainder(a - b, whole_turn));
}

}  // namespace

TEST_CASE("rotation: a description says how counts become angles, or is refused", "[rotation]") {
    const config::Scanner scanner = config::scanner_from_json(two_heads());
    REQUIRE(scanner.rotation);
    CHECK(scanner.rotation->angle(900'000) == Approx(whole_turn / 4));
    CHECK(scanner.rotation->angle(-900'000) == Approx(whole_turn * 3 / 4));
    CHECK(scanner.rotation->count(whole_turn / 8) == 450'000);
    CHECK(config::to_json(scanner).contains("rotation"));
    json still = two_heads();
    still.erase("rotation");
    CHECK_FALSE(config::scanner_from_json(still).rotation);
    CHECK_FALSE(config::to_json(config::scanner_from_json(still)).contains("rotation"));

    const config::Rotation falling{3, -1000, 250};
    CHECK(falling.angle(0) == Approx(whole_turn / 4));
    CHECK(falling.angle(250) == 0);

    CHECK(refusal_of({{"counts_per_turn", 100}}).find("/rotation") != std::string::npos);
    CHECK(refusal_of({{"tag_channel", 16}, {"counts_per_turn", 100}}).find("tag_channel") !=
          std::string::npos);
    CHECK(refusal_of({{"tag_channel", 1}, {"counts_per_turn", 0}}).find("counts_per_turn: expected") !=
          std::string::npos);
    CHECK(refusal_of({{"tag_channel", 1}, {"counts_per_turn", 8}, {"radius", 1}}).find("radius") !=
          std::string::npos);
}

TEST_CASE("rotation: a crystal that is turned keeps its distance from the axis", "[rotation]") {
    const config::Scanner scanner = config::scanner_from_json(two_heads());
    const auto place = config::crystal_place(scanner, 3);
    const auto quarter = config::turned(place, whole_turn / 4);
    CHECK(quarter.front_centre_mm[0] == Approx(-place.front_centre_mm[1]));
    CHECK(quarter.front_centre_mm[1] == Approx(place.front_centre_mm[0]));
    CHECK(quarter.front_centre_mm[2] == place.front_centre_mm[2]);
    CHECK(quarter.outward[1] == Approx(place.outward[0]));
}

TEST_CASE("rotation: between tags the angle follows a scanner that turns to and fro", "[rotation]") {
    // The true angle is a polygon; the encoder begins anew after each turn, at other times it goes on.
    const bool wraps = GENERATE(false, true);
    const config::Rotation rotation{1, GENERATE(4096.0, -36000.0), 100};
    std::mt19937 random(5);
    std::vector<std::uint64_t> times{1000};
    std::vector<double> truth{1};
    for (int i = 0; i < 300; ++i) {
        times.push_back(times.back() + 1 + random() % 5000);
        truth.push_back(truth.back() +
                        (static_cast<double>(random() % 1000) / 1000 - 0.4) * 0.9 * whole_turn / 2);
    }
    config::AngleOverTime angle(rotation);
    CHECK_FALSE(angle.known());
    for (std::size_t i = 0; i < times.size(); ++i) {
        double count = rotation.count(truth[i]);
        if (wraps) count = std::remainder(count, rotation.counts_per_turn);
        angle.add(times[i], static_cast<std::int32_t>(count));
    }
    const double rounding = whole_turn / 4096;
    for (std::uint64_t time = 0; time < times.back() + 3000; time += 97) {
        double expected = time < times.front() ? truth.front() : truth.back();
        for (std::size_t i = 0; i + 1 < times.size(); ++i) {
            if (time < times[i] || time >= times[i + 1]) continue;
            expected = truth[i] + (truth[i + 1] - truth[i]) * static_cast<double>(time - times[i]) /
                                      static_cast<double>(times[i + 1] - times[i]);
        }
        REQUIRE(apart(angle.at(time), expected) < rounding);
    }
    // What is forgotten changes nothing later.
    const std::uint64_t middle = times[150] + 1;
    const double before = angle.at(middle);
    angle.forget_before(middle);
    CHECK(angle.at(middle) == before);
    CHECK(angle.next_tag(middle) == times[151]);
    CHECK(angle.next_tag(times.back()) == UINT64_MAX);
}

TEST_CASE("rotation: steps at once, and tags at one time", "[rotation]") {
    config::AngleOverTime angle({1, 360, 0});
    angle.add(100, 10);
    angle.add(199, 10);
    angle.add(200, 350);
    angle.add(200, 20);
    constexpr double degree = whole_turn / 360;
    CHECK(angle.at(0) == Approx(10 * degree));
    CHECK(angle.at(150) == Approx(10 * degree));
    CHECK(apart(angle.at(200), 20 * degree) < 1e-9);
    CHECK(apart(angle.at(5000), 20 * degree) < 1e-9);
    CHECK(config::within_turn(-1e-20) == 0);
    CHECK(config::within_turn(-whole_turn / 4) == Approx(whole_turn * 3 / 4));
}
