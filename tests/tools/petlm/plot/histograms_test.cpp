// petlm plot: the numbers behind the pictures against a slow count.
#include <cmath>
#include <numbers>

#include "tests/tools/petlm/plot/support.hpp"

using namespace petacq;
using namespace petacq::test;

TEST_CASE("the numbers behind the pictures agree with a slow count", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = export_scanner();
    const auto records = wild_records(6000);
    write_run(directory / "one", records, scanner);
    write_run(directory / "parts", records, scanner, 5);
    const Outcome outcome = plotted(directory / "one", " --depth-mm 3");
    INFO(outcome.out);
    REQUIRE(outcome.status == 0);
    REQUIRE(plotted(directory / "parts", " --depth-mm 3").status == 0);
    const auto plot = directory / "one" / "plot";
    CHECK(names_in(plot) == files_of(pictures_without_ledger()));
    for (const auto& name : names_in(plot)) {
        CAPTURE(name);
        if (name != "report.html")
            CHECK(read_file(directory / "parts" / "plot" / name) == read_file(plot / name));
    }

    const std::uint32_t in_ring = scanner.geometry.crystals_in_ring();
    const std::uint32_t rings = scanner.geometry.rings();
    for (const gpu::Kind kind : {gpu::Kind::prompt, gpu::Kind::delayed}) {
        const std::string column = kind == gpu::Kind::prompt ? "prompts" : "delayeds";
        CAPTURE(column);
        const auto pairs = of_kind(records, kind);
        std::vector<double> energy(256);
        std::map<std::pair<std::uint32_t, std::uint32_t>, double> ring_pairs;
        std::vector<double> planes(2 * rings - 1);
        for (const auto& c : pairs) {
            for (const float e : {c.energy_a, c.energy_b})
                ++energy[e >= 0 && e < 1020 ? static_cast<std::size_t>(std::floor(e / 4)) : 255];
            auto a = c.crystal_a;
            auto b = c.crystal_b;
            if (b % in_ring < a % in_ring) std::swap(a, b);
            ++ring_pairs[{a / in_ring, b / in_ring}];
            ++planes[a / in_ring + b / in_ring];
        }
        CHECK(table_of(plot / "energy-pairs.csv").at(column) == energy);
        CHECK(table_of(plot / "axial-profile.csv").at(column) == planes);

        const Table michelogram = table_of(plot / "michelogram.csv");
        REQUIRE(michelogram.at(column).size() == std::size_t{rings} * rings);
        for (std::size_t i = 0; i < michelogram.at(column).size(); ++i) {
            const auto first = static_cast<std::uint32_t>(michelogram.at("first_ring")[i]);
            const auto second = static_cast<std::uint32_t>(michelogram.at("second_ring")[i]);
            if (michelogram.at(column)[i] != ring_pairs[{first, second}])
                FAIL("rings " << first << ", " << second);
        }

        const Table differences = table_of(plot / "time-differences.csv");
        CHECK(differences.at("from_ticks").front() <= -300);
        CHECK(differences.at("to_ticks").back() >= 300);
        std::size_t inside = 0;
        for (std::size_t i = 0; i < differences.at(column).size(); ++i) {
            double expected = 0;
            for (const auto& c : pairs) {
                if (c.dt > 300) continue;  // beyond the window
                const double dt = c.crystal_b > c.crystal_a ? c.dt : -static_cast<double>(c.dt);
                if (dt >= differences.at("from_ticks")[i] && dt <= differences.at("to_ticks")[i]) ++expected;
            }
            if (i != 0) CHECK(differences.at("from_ticks")[i] == differences.at("to_ticks")[i - 1] + 1);
            if (differences.at(column)[i] != expected) FAIL("difference " << differences.at("from_ticks")[i]);
            inside += static_cast<std::size_t>(expected);
        }
        CHECK(inside < pairs.size());

        const Table rates = table_of(plot / "rates.csv");
        CHECK(rates.at(column).size() > 50);
        for (std::size_t i = 0; i < rates.at(column).size(); ++i) {
            double expected = 0;
            const bool last = i + 1 == rates.at(column).size();
            for (const auto& c : pairs) {
                const auto time = static_cast<double>(c.time);
                if (time >= rates.at("from_ticks")[i] && (last || time < rates.at("to_ticks")[i])) ++expected;
            }
            if (rates.at(column)[i] != expected) FAIL("time bin " << i);
        }
        // Another formula: the distance of the line from the axis, and the direction of its normal.
        const Table sinogram = table_of(plot / "sinogram.csv");
        std::map<std::pair<long, long>, double> lines;
        const double angles = in_ring / 2.0;
        const double radius = scanner.dimensions.ring_radius_mm;
        const double columns = std::round(2 * radius / (scanner.dimensions.crystal_pitch_y_mm / 2));
        double beyond = 0;
        double doubtful = 0;
        for (const auto& c : pairs) {
            const auto p = config::point_at_depth(config::crystal_place(scanner, c.crystal_a), 3);
            const auto q = config::point_at_depth(config::crystal_place(scanner, c.crystal_b), 3);
            double nx = q[1] - p[1];
            double ny = p[0] - q[0];
            const double length = std::hypot(nx, ny);
            if (c.crystal_a % in_ring == c.crystal_b % in_ring) {
                ++beyond;
                continue;
            }
            if (ny < 0) nx = -nx, ny = -ny;
            const double s = (p[0] * nx + p[1] * ny) / length;
            const double row = std::acos(nx / length) / std::numbers::pi * angles;
            const double place = (s + radius) / (2 * radius) * columns;
            const auto near_edge = [](double x) { return std::abs(x - std::round(x)) < 1e-6; };
            if (near_edge(row) || near_edge(place)) {
                ++doubtful;  // a matter of rounding
            } else if (place < 0 || place >= columns) {
                ++beyond;
            } else {
                ++lines[{std::lround(std::floor(row)), std::lround(std::floor(place))}];
            }
        }
        double different = 0;
        for (std::size_t i = 0; i < sinogram.at(column).size(); ++i) {
            const double row = sinogram.at("phi_deg")[i] / 180 * angles;
            const double place = (sinogram.at("s_mm")[i] + radius) / (2 * radius) * columns;
            different += std::abs(sinogram.at(column)[i] -
                                  lines[{std::lround(std::floor(row)), std::lround(std::floor(place))}]);
        }
        CHECK(different <= doubtful);
        CHECK(doubtful < 0.2 * static_cast<double>(pairs.size()));
        CHECK(std::abs(sum(sinogram.at(column)) + beyond - static_cast<double>(pairs.size())) <= doubtful);
    }
    std::vector<double> hits(scanner.geometry.crystal_count());
    for (const auto& c : records) {
        ++hits[c.crystal_a];
        ++hits[c.crystal_b];
    }
    CHECK(table_of(plot / "singles-map.csv").at("counts") == hits);
    const std::string html = read_file(plot / "report.html");
    check_html(html);
    CHECK(html.find("pairs are further apart and not shown") != std::string::npos);
}

TEST_CASE("a point source is a sinusoid in the sinogram", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const config::Vector3 where = {9, -6, 4};
    const auto records = point_source(export_scanner(), where, 20'000);
    write_run(directory / "run", of_kind(records, gpu::Kind::prompt));
    REQUIRE(plotted(directory / "run", " --depth-mm 0").status == 0);
    const Table t = table_of(directory / "run" / "plot" / "sinogram.csv");
    std::map<double, std::array<double, 3>> rows;  // counts, those near, their sum of s
    for (std::size_t i = 0; i < t.at("prompts").size(); ++i) {
        const double phi = t.at("phi_deg")[i] * std::numbers::pi / 180;
        const double expected = where[0] * std::cos(phi) + where[1] * std::sin(phi);
        auto& row = rows[t.at("phi_deg")[i]];
        row[0] += t.at("prompts")[i];
        if (std::abs(t.at("s_mm")[i] - expected) > 2.5) continue;
        row[1] += t.at("prompts")[i];
        row[2] += t.at("prompts")[i] * (t.at("s_mm")[i] - expected);
    }
    CHECK(rows.size() == export_scanner().geometry.crystals_in_ring() / 2);
    double all = 0;
    double near = 0;
    std::size_t full = 0;
    for (const auto& [phi, row] : rows) {
        all += row[0];
        near += row[1];
        if (row[1] < 100) continue;  // crystal pairs are uneven over the angles
        ++full;
        CAPTURE(phi);
        CHECK(std::abs(row[2] / row[1]) < 0.85);  // half a crystal
    }
    CHECK(near > 0.98 * all);
    CHECK(full > rows.size() / 2);
}
