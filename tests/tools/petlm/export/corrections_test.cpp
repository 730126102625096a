// The factors of lines in exports, against the formulas written out.
#include <cmath>
#include <numbers>

#include "tests/tools/petlm/support.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/export.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

constexpr double depth_mm = 2.5;
constexpr double cylinder_mm = 14;
constexpr double per_mm = 0.0096;
constexpr std::uint32_t dead = 1234;
constexpr double activity_factor = 2.5;

normalisation::Normalisation uneven(const config::Geometry& g) {
    auto n = normalisation::Normalisation::even(g);
    for (std::uint32_t crystal = 0; crystal < g.crystal_count(); ++crystal)
        n.efficiency[crystal] = 0.5F + 0.25F * static_cast<float>(crystal % 5);
    n.efficiency[dead] = 0;
    for (std::size_t i = 0; i < n.transaxial.size(); ++i)
        n.transaxial[i] = 1 + 0.01F * static_cast<float>(i % 7);
    for (std::uint32_t a = 0; a < g.rings(); ++a) {
        for (std::uint32_t b = 0; b < g.rings(); ++b)
            n.axial[a * g.rings() + b] = 1 + 0.02F * static_cast<float>(std::max(a, b) - std::min(a, b));
    }
    n.activity_factor = activity_factor;
    return n;
}

/// A run with limits, its normalisation, and what its lines are expected to have.
struct Scene {
    TemporaryDirectory directory;
    config::Scanner scanner = export_scanner();
    normalisation::Normalisation factors = uneven(scanner.geometry);
    gpu::RecordVector<gpu::Coincidence> records = point_source(scanner, {3, -8, 1}, 3000);
    petlm::ExportOptions options;

    explicit Scene(const std::string& format) {
        gpu::Coincidence of_dead = records.back();
        of_dead.kind = gpu::Kind::prompt;
        of_dead.crystal_a = dead;
        of_dead.crystal_b = dead < 1440 ? dead + 60 : dead - 60;
        records.push_back(of_dead);
        write_run(directory / "run", records, scanner, 1,
                  {{"max_ring_difference", 9}, {"min_module_difference", 3}});
        normalisation::save(directory / "norm.h5", scanner.geometry, factors);
        options.format = format;
        options.target = directory / "run";
        options.output = directory / "out";
        options.depth_mm = depth_mm;
        options.lines.normalisation = directory / "norm.h5";
        options.lines.attenuation = {"0,0,0,14,200,0.096"};
        options.scatter = "none";
        options.randoms = petlm::RandomsPerPair{
            [](std::uint32_t a, std::uint32_t b) { return 1e-3 * std::min(a, b); },
            [](std::uint32_t a, std::uint32_t b) { return 1 / (1 + 1e-5 * (a + b)); }, "Dead time: told."};
    }
    [[nodiscard]] bool accepted(std::uint32_t a, std::uint32_t b) const {
        const int modules = static_cast<int>(a % 120 / 10) - static_cast<int>(b % 120 / 10);
        const int apart = std::min(std::abs(modules), 12 - std::abs(modules));
        return apart >= 3 && std::abs(static_cast<int>(a / 120) - static_cast<int>(b / 120)) <= 9;
    }
    /// True pairs per mm of line and positron in a mm^3.
    [[nodiscard]] double trues(std::uint32_t a, std::uint32_t b) const {
        const auto at_a = config::crystal_place(scanner, a);
        const auto at_b = config::crystal_place(scanner, b);
        double square = 0;
        double cos_a = 0;
        double cos_b = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            const double way = at_b.front_centre_mm[i] - at_a.front_centre_mm[i];
            square += way * way;
            cos_a -= way * at_a.outward[i];
            cos_b += way * at_b.outward[i];
        }
        const double face = 1.6 * 1.7;
        const double found = normalisation::factor_of(scanner.geometry, factors, a, b) / (1 + 1e-5 * (a + b));
        return found * face * face * cos_a * cos_b / (square * square) / (2 * std::numbers::pi);
    }
    /// Of a cylinder around the axis that is longer than the scanner.
    [[nodiscard]] double attenuation_correction(std::uint32_t a, std::uint32_t b) const {
        const auto p = config::point_at_depth(config::crystal_place(scanner, a), depth_mm);
        const auto q = config::point_at_depth(config::crystal_place(scanner, b), depth_mm);
        const double across = std::hypot(q[0] - p[0], q[1] - p[1]);
        const double nearest = (p[0] * q[1] - p[1] * q[0]) / across;
        const double half = cylinder_mm * cylinder_mm - nearest * nearest;
        if (half <= 0) return 1;
        return std::exp(per_mm * 2 * std::sqrt(half) * std::hypot(across, q[2] - p[2]) / across);
    }
    [[nodiscard]] double seconds() const {
        return static_cast<double>(records.back().time + 1000 - run_start) * 15.625e-12;
    }
};

}  // namespace

TEST_CASE("castor: the lines have factors of every accepted pair of live crystals, and so have the prompts",
          "[petlm][castor]") {
    Scene scene("castor");
    petlm::export_quietly(scene.options);
    const auto& out = scene.options.output;
    const auto header = key_values(out / "lines.cdh", ": ");
    CHECK(header.at("Data mode") == "normalization");
    CHECK(header.at("Normalization correction flag") == "1");
    CHECK(header.at("Attenuation correction flag") == "1");
    Bytes lines(out / header.at("Data filename"));
    std::uint64_t expected = 0;
    std::uint64_t found = 0;
    bool good = true;
    for (std::uint32_t a = 0; a < 2880; ++a) {
        for (std::uint32_t b = a + 1; b < 2880; ++b) {
            if (!scene.accepted(a, b) || a == dead || b == dead) continue;
            ++expected;
            if (lines.at_end()) continue;
            const auto attenuation = lines.take<float>();
            const auto factor = lines.take<float>();
            if (lines.take<std::uint32_t>() != a || lines.take<std::uint32_t>() != b) good = false;
            ++found;
            // Each value of a sample, and the order of all of them.
            if (found % 97 != 0) continue;
            good = good && std::abs(factor * scene.trues(a, b) - 1) < 1e-6 &&
                   std::abs(attenuation / scene.attenuation_correction(a, b) - 1) < 1e-5;
        }
    }
    CHECK(good);
    CHECK(lines.at_end());
    CHECK(found == expected);
    CHECK(header.at("Number of events") == std::to_string(expected));

    const auto prompts = key_values(out / "prompts.cdh", ": ");
    CHECK(std::stod(prompts.at("Calibration factor")) == Approx(activity_factor));
    for (const char* flag :
         {"Normalization correction flag", "Attenuation correction flag", "Random correction flag"})
        CHECK(prompts.at(flag) == "1");
    CHECK(prompts.count("Scatter correction flag") == 0);
    const double duration = std::stod(prompts.at("Duration (s)"));
    Bytes events(out / "prompts.cdf");
    for (const auto& c : of_kind(scene.records, gpu::Kind::prompt)) {
        events.take<std::uint32_t>();
        const double attenuation = events.take<float>();
        REQUIRE(attenuation == Approx(scene.attenuation_correction(c.crystal_a, c.crystal_b)).epsilon(1e-5));
        // Randoms per second.
        REQUIRE(events.take<float>() == Approx(1e-3 * std::min(c.crystal_a, c.crystal_b) / duration));
        const double factor = events.take<float>();
        REQUIRE(events.take<std::uint32_t>() == c.crystal_a);
        REQUIRE(events.take<std::uint32_t>() == c.crystal_b);
        // CASToR leaves out events with a factor of 0.
        const bool left_out =
            c.crystal_a == dead || c.crystal_b == dead || !scene.accepted(c.crystal_a, c.crystal_b);
        REQUIRE(factor == Approx(left_out ? 0 : 1 / scene.trues(c.crystal_a, c.crystal_b)));
    }
    CHECK(events.at_end());
    const std::string text = read_file(out / "prompts.cdh") + read_file(out / "README.txt");
    for (const char* said :
         {"# Normalisation: by ", "1 crystals are dead", "# Attenuation: by 1 cylinder",
          "# Scatter: not corrected, as asked for", "# Dead time: told.", "# Decay: not corrected",
          "# Calibration: activity factor 2.5", "for castor-recon -norm"})
        CHECK_THAT(text, contains(said));
    CHECK(key_values(out / "delayeds.cdh", ": ").count("Normalization correction flag") == 0);
}

TEST_CASE("a nuclide that is missing in the table is taken as declared, and one with prompt gammas says so",
          "[petlm][stir][castor]") {
    Scene scene("stir");
    scene.options.nuclide = "Fe-52";
    scene.options.half_life_s = 29790;
    scene.options.branching_ratio = 0.5549;
    petlm::export_quietly(scene.options);
    const std::string header = read_file(scene.options.output / "template.hs");
    for (const char* line : {"radionuclide name[1] := Fe-52", "radionuclide halflife (sec)[1] := 29790",
                             "radionuclide branching factor[1] := 0.5549"})
        CHECK_THAT(header, contains(line));
    for (const char* format : {"castor", "stir"}) {
        Scene other(format);
        other.options.nuclide = "Y-86";
        petlm::export_quietly(other.options);
        CHECK_THAT(read_file(other.options.output / "README.txt"), contains("Y-86 emits prompt gammas"));
    }
}

TEST_CASE("stir: normalisation, attenuation and background of every bin", "[petlm][stir]") {
    Scene scene("stir");
    scene.options.nuclide = "F-18";
    petlm::export_quietly(scene.options);
    const auto& out = scene.options.output;
    Bytes normalisation(out / "normalisation.s");
    Bytes attenuation(out / "attenuation.s");
    Bytes additive(out / "additive.s");
    Bytes randoms(out / "randoms.s");
    // Detector 0 of a ring is the first from -y towards +x; README.txt has the shift.
    const std::string text = read_file(out / "README.txt");
    unsigned shift = 0;
    const auto at = text.find("detector = (crystal mod 120 + ");
    REQUIRE(std::sscanf(text.c_str() + at, "detector = (crystal mod 120 + %u)", &shift) == 1);
    const double seconds = std::floor(scene.seconds() * 1000 + 1) / 1000;
    const double decay = 1 / 0.9686;  // the run is short
    bool good = true;
    std::uint64_t live = 0;
    for (int segment = -9; segment <= 9; ++segment) {
        for (int view = 0; view < 60; ++view) {
            for (int axial = 0; axial < 24 - std::abs(segment); ++axial) {
                for (int t = -39; t <= 39; ++t) {
                    const int det_1 = (view + static_cast<int>(std::floor(t / 2.0)) + 120) % 120;
                    const int det_2 = (view + 60 - static_cast<int>(std::ceil(t / 2.0)) + 120) % 120;
                    const auto ring_1 = static_cast<unsigned>(segment < 0 ? axial - segment : axial);
                    const auto ring_2 = ring_1 + static_cast<unsigned>(segment);
                    const auto a = ring_1 * 120 + (static_cast<unsigned>(det_1) + 120 - shift) % 120;
                    const auto b = ring_2 * 120 + (static_cast<unsigned>(det_2) + 120 - shift) % 120;
                    const double factor = normalisation.take<float>();
                    const double correction = attenuation.take<float>();
                    const double background = additive.take<float>();
                    const double expected_randoms = randoms.take<float>();
                    if (a == dead || b == dead || !scene.accepted(a, b)) {
                        good = good && factor > 1e15 && background == 0;
                        continue;
                    }
                    // Each value of a sample.
                    if (++live % 97 != 0) continue;
                    // Counts = (lengths in voxels of 1.6 mm * kBq/ml) / factor.
                    const double counts_per_voxel =
                        1.6 * scene.trues(a, b) * seconds / activity_factor / decay;
                    good =
                        good && std::abs(factor * counts_per_voxel - 1) < 2e-3 &&
                        std::abs(correction / scene.attenuation_correction(a, b) - 1) < 1e-5 &&
                        std::abs(background - expected_randoms * factor * correction) <= 1e-5 * background &&
                        std::abs(expected_randoms - 1e-3 * std::min(a, b)) < 1e-5;
                }
            }
        }
    }
    CHECK(good);
    CHECK(live > 100'000);
    CHECK(normalisation.at_end());
    CHECK(additive.at_end());
    const auto parameters = key_values(out / "osem.par", " := ");
    CHECK(parameters.at("  additive sinogram") == "additive.hs");
    CHECK(parameters.at("  zoom") == "0.5");
    CHECK_THAT(read_file(out / "osem.par"),
               contains("normalisation projdata filename := normalisation.hs") &&
                   contains("normalisation projdata filename := attenuation.hs") &&
                   contains("; Decay: of F-18"));
    CHECK_FALSE(std::filesystem::exists(out / "scatter.hs"));
}

TEST_CASE("exports refuse corrections that do not fit, before they read records", "[petlm][export]") {
    const auto refusal = [](const auto& change) {
        Scene scene("castor");
        change(scene);
        std::string said;
        try {
            petlm::export_quietly(scene.options);
        } catch (const std::exception& error) {
            said = error.what();
        }
        CHECK_FALSE(std::filesystem::exists(scene.options.output));
        return said;
    };
    CHECK_THAT(refusal([](Scene& s) { s.options.max_lines_gb = 0.001; }),
               contains("--max-lines-gb allows 0.001 GB") && contains("lines"));
    CHECK_THAT(refusal([](Scene& s) {
                   s.options.format = "stir";
                   s.options.max_lines_gb = 0.001;
               }),
               contains("--max-lines-gb"));
    CHECK_THAT(refusal([](Scene& s) {
                   s.options.format = "csv";
                   s.options.depth_mm.reset();
               }),
               contains("--normalisation is for castor"));
    CHECK_THAT(refusal([](Scene& s) { s.options.scatter = "some"; }),
               contains("expected simulation or none"));
    CHECK_THAT(refusal([](Scene& s) {
                   s.options.scatter = "simulation";
                   s.options.lines.attenuation.clear();
               }),
               contains("expected --attenuation"));
    CHECK_THAT(refusal([](Scene& s) { s.options.nuclide = "F-81"; }), contains("expected one of"));
    CHECK_THAT(refusal([](Scene& s) { s.options.half_life_s = 60; }),
               contains("--half-life-s, --branching-ratio: expected --nuclide"));
    CHECK_THAT(refusal([](Scene& s) {
                   s.options.nuclide = "Fe-52";
                   s.options.half_life_s = -1;
                   s.options.branching_ratio = 0.5;
               }),
               contains("--half-life-s: expected seconds above 0"));
    const auto made_for = [](Scene& s, const char* key, const char* value) {
        s.factors.origin[key] = value;
        s.options.lines.normalisation = s.directory / "other.h5";
        normalisation::save(*s.options.lines.normalisation, s.scanner.geometry, s.factors);
    };
    CHECK_THAT(refusal([&](Scene& s) { made_for(s, "scanner_sha256", "another"); }),
               contains("other.h5: made for another scanner"));
    CHECK_THAT(refusal([&](Scene& s) {
                   s.options.format = "stir";
                   made_for(s, "depth_mm", "1");
               }),
               contains("other.h5: made for another depth of interaction"));
    CHECK_THAT(refusal([](Scene& s) { s.options.lines.normalisation = s.directory / "none.h5"; }),
               contains("none.h5"));
}
