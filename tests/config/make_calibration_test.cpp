#include "config/make_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "config/factor_spread.hpp"
#include "config/scanner/arrangement.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/odd_scanner.hpp"

namespace petacq::test {

TEST_CASE("a made calibration fits its scanner") {
    const auto name = GENERATE(as<std::string>{}, "small", "mouse");
    const auto s = config::load_scanner(example(name + ".scanner.json"));
    config::CalibrationModel model;
    model.bins = 2;
    const auto c = config::make_calibration(s, model);
    config::check_calibration(s.geometry, c);
    CHECK(c.time_offset.empty());
    CHECK(c.sha256.empty());
}

TEST_CASE("every crystal has positions, in one connected rectangle-like region, with a rim outside") {
    const auto s = config::load_scanner(example("small.scanner.json"));
    const auto& g = s.geometry;
    config::CalibrationModel model;
    model.bins = 1;
    const auto c = config::make_calibration(s, model);
    const std::uint32_t size = g.position_size;
    for (std::uint32_t unit = 0; unit < g.bdm_count * g.du_count; ++unit) {
        const std::uint16_t* map = &c.position_table[std::size_t{unit} * size * size];
        std::vector<double> x(20);
        std::vector<double> y(20);
        std::vector<int> n(20);
        for (std::uint32_t p = 0; p < size * size; ++p) {
            const bool rim = p % size == 0 || p % size == size - 1 || p / size == 0 || p / size == size - 1;
            if (rim) REQUIRE(map[p] >= 20);
            if (map[p] >= 20) continue;
            ++n[map[p]];
            x[map[p]] += p % size;
            const std::uint32_t row = p / size;
            y[map[p]] += row;
            // A gap separates any two crystals.
            if (map[p + 1] < 20) REQUIRE(map[p + 1] == map[p]);
            if (map[p + size] < 20) REQUIRE(map[p + size] == map[p]);
        }
        // Columns (z) from left to right, rows (y) from top to bottom.
        for (std::size_t i = 0; i < 20; ++i) {
            REQUIRE(n[i] > 10);
            if (i % 4 != 3) REQUIRE(x[i + 1] / n[i + 1] > x[i] / n[i] + 4);
            if (i + 4 < 20) REQUIRE(y[i + 4] / n[i + 4] > y[i] / n[i] + 4);
        }
    }
}

TEST_CASE("few positions for each crystal still reach every crystal") {
    auto s = tiny_scanner();
    s.geometry.crystals = {1, 4, 4};
    config::CalibrationModel model;
    model.seed = GENERATE(1, 2, 3, 4);
    const auto c = config::make_calibration(s, model);
    for (std::size_t unit = 0; unit < 12; ++unit) {
        const auto begin = c.position_table.begin() + static_cast<std::ptrdiff_t>(unit * 256);
        std::set<int> seen(begin, begin + 256);
        seen.erase(255);
        CHECK(seen.size() == 16);
    }
}

TEST_CASE("with 256 crystals in a block nothing is outside") {
    auto s = tiny_scanner();
    s.geometry.crystals = {1, 16, 16};
    s.geometry.position_size = 80;
    const auto c = config::make_calibration(s, {});
    const std::set<int> seen(c.position_table.begin(), c.position_table.begin() + 6400);
    CHECK(seen.size() == 256);
}

TEST_CASE("factors follow the model") {
    const auto s = config::load_scanner(example("small.scanner.json"));
    config::CalibrationModel model;
    model.bins = 5;
    model.gain_keV_per_adc = 0.5;
    model.energy_spread = 0.1;
    model.nonlinearity = 0.2;
    model.time_offset_ticks = 7;
    const auto c = config::make_calibration(s, model);
    double sum = 0;
    double squares = 0;
    for (std::size_t i = 0; i < 2880; ++i) {
        const float first = c.energy_factor[i * 5];
        sum += first;
        squares += double{first} * first;
        CHECK(c.energy_factor[i * 5 + 4] == Approx(first * 1.2));
        CHECK(c.energy_factor[i * 5 + 1] == Approx(first * 1.05));
    }
    const double mean = sum / 2880;
    CHECK(mean == Approx(0.5).epsilon(0.01));
    CHECK(std::sqrt(squares / 2880 - mean * mean) == Approx(0.05).epsilon(0.1));
    const std::set<int> offsets(c.time_offset.begin(), c.time_offset.end());
    CHECK(c.time_offset.size() == 2880);
    CHECK(offsets.size() == 15);
    CHECK(*offsets.begin() == -7);
    CHECK(*offsets.rbegin() == 7);
}

TEST_CASE("the spread of factors within units tells the model, whatever units and bad crystals do") {
    const auto s = config::load_scanner(example("small.scanner.json"));
    config::CalibrationModel model;
    model.bins = 256;
    model.energy_spread = 0.06;
    auto c = config::make_calibration(s, model);
    CHECK(config::factor_spread(c) == Approx(0.06).epsilon(0.1));
    const std::size_t of_unit = std::size_t{s.geometry.crystals_per_du()} * c.bins;
    for (std::size_t i = 0; i < c.energy_factor.size(); ++i) {
        if (i / of_unit % 2 == 0) c.energy_factor[i] *= 1.5F;
        if (i / c.bins % 50 == 7) c.energy_factor[i] = 0;
        if (i / c.bins % 50 == 20) c.energy_factor[i] *= 8;
    }
    CHECK(config::factor_spread(c) == Approx(0.06).epsilon(0.2));
    std::fill(c.energy_factor.begin(), c.energy_factor.end(), 0.25F);
    CHECK(config::factor_spread(c) == 0);
    c.energy_factor.clear();
    CHECK(config::factor_spread(c) == 0);
}

TEST_CASE("the same seed gives the same tables, another seed others") {
    const auto s = tiny_scanner();
    config::CalibrationModel model;
    model.time_offset_ticks = 1000;
    const auto a = config::make_calibration(s, model);
    const auto b = config::make_calibration(s, model);
    CHECK(a.position_table == b.position_table);
    CHECK(a.energy_factor == b.energy_factor);
    CHECK(a.time_offset == b.time_offset);
    model.seed = 2;
    const auto other = config::make_calibration(s, model);
    CHECK(a.position_table != other.position_table);
    CHECK(a.energy_factor != other.energy_factor);
    CHECK(a.time_offset != other.time_offset);
}

TEST_CASE("invalid models are refused") {
    const auto refused = [](auto change) {
        config::CalibrationModel model;
        change(model);
        return complaint([&] { config::make_calibration(tiny_scanner(), model); });
    };
    CHECK(lacking(refused([](auto& m) { m.bins = 0; }), {"bins: expected"}) == "");
    CHECK(lacking(refused([](auto& m) { m.bins = 6555; }), {"bins: expected"}) == "");
    CHECK(lacking(refused([](auto& m) { m.gain_keV_per_adc = 0; }), {"gain_keV_per_adc: expected"}) == "");
    CHECK(lacking(refused([](auto& m) { m.energy_spread = std::nan(""); }), {"energy_spread: expected"}) ==
          "");
    CHECK(lacking(refused([](auto& m) { m.nonlinearity = -0.6; }), {"nonlinearity: expected"}) == "");
    CHECK(lacking(refused([](auto& m) { m.time_offset_ticks = -1; }), {"time_offset_ticks: expected"}) == "");
}

TEST_CASE("the flood of a unit of the long form has every crystal of it, and its layers apart") {
    const auto name = GENERATE(as<std::string>{}, "", "box", "hexagon", "insert", "partial-ring", "phoswich",
                               "two-heads", "two-rings", "unequal-blocks");
    const auto s =
        name.empty() ? odd_scanner() : config::load_scanner(example("scanners/" + name + ".scanner.json"));
    const auto& g = s.geometry;
    config::CalibrationModel model;
    model.bins = 1;
    const auto c = config::make_calibration(s, model);
    config::check_calibration(g, c);
    const std::uint32_t size = g.position_size;
    for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
        const auto* map = &c.position_table[std::size_t{unit} * size * size];
        const std::uint32_t count = g.crystals_of_unit(unit);
        std::vector<int> n(count);
        std::map<std::uint32_t, std::pair<double, double>> middle;  // by layer
        std::map<std::uint32_t, double> positions;
        for (std::uint32_t p = 0; p < size * size; ++p) {
            if (map[p] >= count) {
                REQUIRE(map[p] == 255);
                continue;
            }
            ++n[map[p]];
            const std::uint32_t crystal = g.crystal(unit / g.du_count, unit % g.du_count, map[p]);
            const std::uint32_t layer = s.arrangement->address(crystal).layer;
            const std::uint32_t y = p / size;
            middle[layer].first += p % size;
            middle[layer].second += y;
            ++positions[layer];
        }
        REQUIRE(std::count(n.begin(), n.end(), 0) == 0);
        for (const auto& [a, place_a] : middle) {
            for (const auto& [b, place_b] : middle) {
                if (a == b) continue;
                const double x = place_a.first / positions[a] - place_b.first / positions[b];
                const double y = place_a.second / positions[a] - place_b.second / positions[b];
                REQUIRE(std::hypot(x, y) > size / 4.0);
            }
        }
    }
}

}  // namespace petacq::test
