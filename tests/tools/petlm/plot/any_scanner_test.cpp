// petlm plot of scanners in the long form: the numbers behind the pictures against a slow count.
#include <algorithm>
#include <cmath>

#include "config/scanner/arrangement.hpp"
#include "config/spectra.hpp"
#include "tests/support/scanner_with_gaps.hpp"
#include "tests/tools/petlm/plot/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

config::Scanner example_scanner(const std::string& name) {
    return config::load_scanner(PETACQ_SOURCE_DIR "/config/examples/scanners/" + name + ".scanner.json");
}

/// Pairs of any two crystals.
gpu::RecordVector<gpu::Coincidence> any_pairs(const config::Scanner& scanner, std::size_t count) {
    std::mt19937_64 random(11);
    gpu::RecordVector<gpu::Coincidence> out;
    std::uint64_t time = run_start;
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    for (std::size_t i = 0; i < count; ++i) {
        const auto a = static_cast<std::uint32_t>(random() % crystals);
        const auto b = static_cast<std::uint32_t>(random() % crystals);
        const auto kind = random() % 3 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
        out.push_back({time += random() % 50'000'000, static_cast<std::uint32_t>(random() % 300), a, b, 511,
                       400, kind});
    }
    return out;
}

double count_of(const gpu::RecordVector<gpu::Coincidence>& records, gpu::Kind kind) {
    return static_cast<double>(
        std::count_if(records.begin(), records.end(), [&](const auto& c) { return c.kind == kind; }));
}

}  // namespace

TEST_CASE("pictures of any scanner hold all pairs, and each crystal by its address", "[petlm][plot]") {
    for (const char* const name : {"box", "insert", "phoswich", "unequal-blocks"}) {
        INFO(name);
        const TemporaryDirectory directory;
        const config::Scanner scanner = example_scanner(name);
        const auto records = any_pairs(scanner, 4000);
        write_run(directory / "run", records, scanner);
        const Outcome outcome = plotted(directory / "run");
        INFO(outcome.out);
        REQUIRE(outcome.status == 0);
        const auto plot = directory / "run" / "plot";

        std::vector<double> hits(scanner.geometry.crystal_count());
        double low = 0;
        double high = 0;
        std::map<gpu::Kind, double> z_sum;
        const auto z = [&](std::uint32_t crystal) {
            return config::crystal_place(scanner, crystal).front_centre_mm[2];
        };
        for (const auto& c : records) {
            ++hits[c.crystal_a];
            ++hits[c.crystal_b];
            z_sum[c.kind] += (z(c.crystal_a) + z(c.crystal_b)) / 2;
        }
        for (std::uint32_t i = 0; i < hits.size(); ++i) {
            low = std::min(low, z(i));
            high = std::max(high, z(i));
        }
        const Table map = table_of(plot / "singles-map.csv");
        CHECK(map.at("counts") == hits);
        const auto arrangement = config::arrangement_of(scanner);
        const config::Geometry& g = scanner.geometry;
        std::size_t wrong = 0;
        for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
            for (std::uint32_t local = 0; local < g.crystals_of_unit(unit); ++local) {
                const std::uint32_t crystal = g.crystal(unit / g.du_count, unit % g.du_count, local);
                const config::CrystalAddress a = arrangement->address(crystal);
                const bool right =
                    map.at("module")[crystal] == a.module && map.at("layer")[crystal] == a.layer &&
                    map.at("column")[crystal] == a.column && map.at("row")[crystal] == a.row &&
                    map.at("bdm")[crystal] == unit / g.du_count && map.at("du")[crystal] == unit % g.du_count;
                if (!right) ++wrong;
            }
        }
        CHECK(wrong == 0);

        for (const gpu::Kind kind : {gpu::Kind::prompt, gpu::Kind::delayed}) {
            const std::string column = kind == gpu::Kind::prompt ? "prompts" : "delayeds";
            CHECK(sum(table_of(plot / "michelogram.csv").at(column)) == count_of(records, kind));
            // Planes are at the middles of pairs, to half the width of a bin of z.
            const Table profile = table_of(plot / "axial-profile.csv");
            CHECK(sum(profile.at(column)) == count_of(records, kind));
            CHECK(profile.at("z_mm").front() == Approx(low));
            CHECK(profile.at("z_mm").back() == Approx(high).margin(1));
            double moment = 0;
            for (std::size_t i = 0; i < profile.at(column).size(); ++i)
                moment += profile.at(column)[i] * profile.at("z_mm")[i];
            CHECK(std::abs(moment - z_sum[kind]) / count_of(records, kind) < 0.5);
            const double lines = sum(table_of(plot / "sinogram.csv").at(column));
            CHECK(lines <= count_of(records, kind));
            CHECK(lines > 0.9 * count_of(records, kind));
        }
        const std::string html = read_file(plot / "report.html");
        check_html(html);
        CHECK(html.find(" modules</td>") != std::string::npos);
        CHECK(html.find("unrolled around the axis") != std::string::npos);
    }
}

TEST_CASE("the energies of BDMs are those of BDMs that exist", "[petlm][plot]") {
    const TemporaryDirectory directory;
    const config::Scanner scanner = config::scanner_from_json(description_with_gaps());
    write_run(directory / "run", any_pairs(scanner, 100), scanner);
    config::Spectra spectra = config::Spectra::none(scanner.geometry);
    spectra.energies[scanner.geometry.crystal(7, 0, 0) * std::size_t{config::energy_bins}] = 9;
    config::save_spectra(directory / "run" / "spectra.h5", scanner.geometry, spectra);
    REQUIRE(plotted(directory / "run").status == 0);
    const Table table = table_of(directory / "run" / "plot" / "energy-modules.csv");
    std::map<double, double> frames;
    for (std::size_t i = 0; i < table.at("module").size(); ++i)
        frames[table.at("module")[i]] += table.at("frames")[i];
    CHECK(frames == std::map<double, double>{{3, 0},
                                             {5, 0},
                                             {7, 9},
                                             {9, 0},
                                             {11, 0},
                                             {13, 0},
                                             {15, 0},
                                             {17, 0},
                                             {19, 0},
                                             {21, 0},
                                             {23, 0},
                                             {25, 0}});
}
