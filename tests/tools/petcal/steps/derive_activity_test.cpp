// petcal derive activity, from images with known values.
#include "tools/petcal/steps/derive_activity.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>
#include <vector>

#include "config/base/error.hpp"
#include "tests/config/helpers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petsim/common.hpp"
#include "tools/nifti/nifti.hpp"
#include "tools/normalisation/normalisation.hpp"

namespace petacq::test {

namespace {

/// A normalisation, and the image of a cylinder at (2, 0, 1), of radius 12 mm and length 30 mm.
class Measured {
  public:
    static constexpr double radius = 12;
    static constexpr double length = 30;

    Measured() {
        auto n = normalisation::Normalisation::even(scanner.geometry);
        n.origin["run"] = "a run";
        save(dir / "n.h5", scanner.geometry, n);
        about = {{"unit", "kBq/ml"},
                 {"normalisation_sha256", normalisation::load(dir / "n.h5", scanner.geometry).sha256},
                 {"activity_factor", 1},
                 {"voxel_mm", 1},
                 {"time_of_activity_utc", "2026-01-02T03:04:05.000Z"},
                 {"corrections", {{"attenuation", {{"made", true}}}, {"scatter", {{"made", true}}}}}};
        options = {dir / "n.h5", dir / "image", {2, 0, 1, radius, length}, 80, {}, 3, false, dir / "next.h5"};
        std::filesystem::create_directory(dir / "image");
    }
    /// value(x, y, z) relative to the middle of the cylinder; 1 beyond its surface.
    template <class Value>
    void write(Value value) {
        const double first = 0.5 - middle;
        const nifti::Volume volume{
            {size, size, size}, {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, {first, first, first}, {}};
        std::string voxels;
        for (int k = 0; k < size; ++k) {
            for (int j = 0; j < size; ++j) {
                for (int i = 0; i < size; ++i) {
                    const double x = i + 0.5 - middle - 2;
                    const double y = j + 0.5 - middle;
                    const double z = k + 0.5 - middle - 1;
                    const bool inside = std::hypot(x, y) < radius && std::abs(z) < length / 2;
                    const auto v = static_cast<float>(inside ? value(x, y, z) : 1);
                    voxels.append(reinterpret_cast<const char*>(&v), sizeof v);
                }
            }
        }
        write_file(dir / "image/image.nii", nifti::header(volume, "a test") + voxels);
        write_file(dir / "image/image.json", about.dump());
    }
    [[nodiscard]] std::string refusal() const {
        try {
            (void)petcal::derive_activity(scanner, options);
        } catch (const config::Error& e) {
            CHECK(!std::filesystem::exists(dir / "next.h5"));
            return e.what();
        }
        return "";
    }

    static constexpr int size = 40;
    static constexpr int middle = size / 2;
    TemporaryDirectory dir;
    config::Scanner scanner = small_scanner();
    nlohmann::json about;
    petcal::DeriveActivityOptions options;
};

}  // namespace

TEST_CASE("derive activity: the factor gives the image the known concentration") {
    Measured m;
    if (GENERATE(false, true)) {  // as petlm image states it without a factor
        m.about["unit"] = "kBq/ml, uncalibrated";
        m.about["activity_factor"] = nullptr;
    }
    const auto noisy = [](double x, double y, double z) {
        return 20 * (1 + 0.3 * std::sin(17 * x + 5 * y * y + 11 * z));
    };
    m.write(noisy);
    const auto found = petcal::derive_activity(m.scanner, m.options);
    CHECK(found.factor == Approx(4).epsilon(0.01));
    CHECK(found.voxels == Approx(std::numbers::pi * 81 * 24).epsilon(0.02));
    CHECK(found.spread == Approx(0.21).margin(0.02));
    const auto next = normalisation::load(m.dir / "next.h5", m.scanner.geometry);
    CHECK(next.activity_factor == found.factor);
    CHECK(next.origin.at("run") == "a run");
    CHECK(next.origin.at("activity_kBq_ml") == "80 at 2026-01-02T03:04:05.000Z");
    CHECK(lacking(figures_text(found), {"mean of the image   2", "activity factor     ", "+- "}) == "");

    // An image that was made with a factor: the next one takes the place of both.
    m.options.normalisation = m.dir / "next.h5";
    m.about["normalisation_sha256"] = next.sha256;
    m.about["activity_factor"] = found.factor;
    m.about["unit"] = "kBq/ml";
    m.write([&](double x, double y, double z) { return 1.1 * found.factor * noisy(x, y, z); });
    CHECK(petcal::derive_activity(m.scanner, m.options).factor == Approx(found.factor / 1.1));
}

TEST_CASE("derive activity: the factor errs as its image and the concentration do") {
    Measured m;
    m.about["errors"] = {{"counting", {{"relative", 0.4}}},  // the noise is that of the voxels: none
                         {"randoms", {{"relative", nullptr}}},
                         {"scatter", {{"relative", 0.03}}},
                         {"calibration", {{"relative", 0.5}}},  // of the factor that is replaced
                         {"known_together", 0.6}};
    m.options.concentration_error_percent = 4;
    m.write([](double, double, double) { return 20; });
    const auto found = petcal::derive_activity(m.scanner, m.options);
    CHECK(found.error == Approx(0.05));
    CHECK(*normalisation::load(m.dir / "next.h5", m.scanner.geometry).number("activity_error") ==
          Approx(0.05));
    CHECK(lacking(figures_text(found), {"+- 5 %"}) == "");
    m.options.concentration_error_percent = -1;
    m.options.output = m.dir / "other.h5";
    CHECK_THROWS_WITH(petcal::derive_activity(m.scanner, m.options),
                      "--concentration-error-percent: expected 0 to 100");
}

TEST_CASE("derive activity: the factor lies within its stated error in 63 to 73 % of noisy images") {
    Measured m;
    double inside = 0;
    constexpr int images = 200;
    for (int seed = 0; seed < images; ++seed) {
        std::mt19937_64 random(static_cast<std::uint64_t>(seed));
        std::normal_distribution<> normal;
        constexpr std::size_t n = 64;
        std::vector<double> white(n * n * n);
        for (double& v : white)
            v = 2 * normal(random);
        // Voxels next to each other share half of their noise.
        m.write([&](double x, double y, double z) {
            double sum = 20;
            for (const int corner : {0, 1, 2, 3, 4, 5, 6, 7}) {
                const auto at = [](double place, int more) {
                    return static_cast<std::size_t>(place + 32 + more);
                };
                sum += white[(at(x, corner & 1) * n + at(y, corner / 2 & 1)) * n + at(z, corner / 4)];
            }
            return sum;
        });
        const auto found = petcal::derive_activity(m.scanner, m.options);
        inside += std::abs(found.factor - 4) < found.error * found.factor ? 1 : 0;
    }
    INFO(inside / images);
    // 3 % by chance.
    CHECK(inside / images > 0.63 - 0.03);
    CHECK(inside / images < 0.73 + 0.03);
}

TEST_CASE("derive activity: an image that does not tell the factor is refused") {
    Measured m;
    const auto even = [](double, double, double) { return 20.0; };
    SECTION("of another normalisation") {
        m.about["normalisation_sha256"] = std::string(64, '0');
        m.write(even);
        CHECK_THAT(m.refusal(), contains("normalisation_sha256: expected"));
    }
    SECTION("without a unit") {
        m.about.erase("unit");
        m.write(even);
        CHECK_THAT(m.refusal(), contains("unit: expected kBq/ml, found none"));
    }
    SECTION("without attenuation or scatter") {
        const char* missing = GENERATE("attenuation", "scatter");
        m.about["corrections"][missing]["made"] = false;
        m.write(even);
        CHECK_THAT(m.refusal(), contains(std::string("corrected for ") + missing));
        m.about.erase("corrections");
        m.write(even);
        CHECK_THAT(m.refusal(), contains("corrected for attenuation"));
        m.options.in_air = true;
        CHECK(m.refusal().empty());
        return;
    }
    SECTION("that misses the factor") {
        m.options.normalisation = m.dir / "with.h5";
        auto n = normalisation::load(m.dir / "n.h5", m.scanner.geometry);
        n.activity_factor = 2;
        save(m.dir / "with.h5", m.scanner.geometry, n);
        m.about["normalisation_sha256"] = normalisation::load(m.dir / "with.h5", m.scanner.geometry).sha256;
        m.about["activity_factor"] = nullptr;
        m.write(even);
        CHECK_THAT(m.refusal(),
                   contains("activity_factor: expected that of the normalisation, 2, found null"));
    }
    SECTION("with another factor") {
        m.about["activity_factor"] = 2;
        m.write(even);
        CHECK_THAT(m.refusal(), contains("activity_factor: expected that of the normalisation, 1, found 2"));
    }
    SECTION("cylinder outside") {
        m.options.cylinder[2] = 15;
        m.write(even);
        CHECK_THAT(m.refusal(), contains("expected it inside the image, -20 to 20 mm"));
    }
    SECTION("few voxels") {
        m.options.cylinder[3] = 5;
        m.options.cylinder[4] = 10;
        m.write(even);
        CHECK_THAT(m.refusal(), contains("expected at least 200"));
    }
    SECTION("uneven") {
        m.write([](double x, double, double) { return x > 0 ? 26.0 : 20.0; });
        CHECK_THAT(m.refusal(), contains("its -x part has 0.8"));
    }
    SECTION("not a number") {
        m.write([](double, double, double) { return NAN; });
        CHECK_THAT(m.refusal(), contains("finite values"));
    }
    SECTION("empty") {
        m.write([](double, double, double) { return 0; });
        CHECK_THAT(m.refusal(), contains("expected more than 0"));
    }
    SECTION("options") {
        m.write(even);
        m.options.concentration_kBq_ml = 0;
        CHECK_THAT(m.refusal(), contains("--concentration-kBq-ml"));
        m.options.concentration_kBq_ml = 5;
        m.options.margin_mm = 20;
        CHECK_THAT(m.refusal(), contains("above the margin"));
    }
    SECTION("no image") {
        CHECK_THAT(m.refusal(), contains("image.json"));
    }
}

}  // namespace petacq::test
