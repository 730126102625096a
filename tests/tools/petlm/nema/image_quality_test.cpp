// petlm nema image-quality on images whose values are known.
#include <cmath>
#include <numbers>
#include <random>

#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/nifti/nifti.hpp"
#include "tools/petlm/nema/iq_rods.hpp"
#include "tools/petlm/reconstruction/projector/grid.hpp"
#include "tools/petlm/records/output.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// The phantom with its rods towards `towards` z, turned.
struct Drawn {
    double value = 50;
    double cold[2] = {0.125, 0.25};                  // NOLINT(modernize-avoid-c-arrays): of the value
    double recovery[5] = {0.2, 0.4, 0.6, 0.8, 1.0};  // NOLINT(modernize-avoid-c-arrays)
    double largest_deg = 130;
    int towards_smaller = 1;
    int rods_towards = 1;
    double cold_deg = 40;
    std::array<double, 3> middle = {2, -1, 3};

    [[nodiscard]] double at(double x, double y, double z) const {
        x -= middle[0];
        y -= middle[1];
        const double along = (z - middle[2]) * rods_towards;
        const double r = std::hypot(x, y);
        const auto near = [&](double radius, double degrees, double within) {
            const double angle = degrees * std::numbers::pi / 180;
            return std::hypot(x - radius * std::cos(angle), y - radius * std::sin(angle)) <= within;
        };
        if (r > 15 || std::abs(along) > 25) return 0;
        if (along > 5) {
            for (int rod = 0; rod < 5; ++rod) {
                // Large enough for a voxel to lie in the smallest one.
                if (near(7, largest_deg + towards_smaller * 72 * (4 - rod), (rod + 1) / 2.0 + 0.2))
                    return value * recovery[rod];
            }
            return 0;
        }
        for (int chamber = 0; along < -10 && chamber < 2; ++chamber) {
            if (near(7.5, cold_deg + 180 * chamber, 4)) return value * cold[chamber];
        }
        return value;
    }
};

template <class ValueAt>
void write_values(const std::filesystem::path& file, const ValueAt& value_at) {
    const image::Grid grid{{90, 90, 150}, 0.5};
    std::vector<float> values;
    for (std::size_t z = 0; z < grid.n[2]; ++z) {
        for (std::size_t y = 0; y < grid.n[1]; ++y) {
            for (std::size_t x = 0; x < grid.n[0]; ++x)
                values.push_back(
                    static_cast<float>(value_at(grid.centre(0, x), grid.centre(1, y), grid.centre(2, z))));
        }
    }
    const double first = grid.centre(0, 0);
    const nifti::Volume volume{
        {90, 90, 150}, {{{0.5, 0, 0}, {0, 0.5, 0}, {0, 0, 0.5}}}, {first, first, grid.centre(2, 0)}, {}};
    write_file(file, nifti::header(volume, "test") + std::string(reinterpret_cast<const char*>(values.data()),
                                                                 values.size() * sizeof(float)));
}

void write_image(const std::filesystem::path& file, const Drawn& drawn) {
    write_values(file, [&](double x, double y, double z) { return drawn.at(x, y, z); });
}

/// A disk that a Gaussian blurs, as a sum over many points of the disk.
double slowly_blurred(double diameter, double sigma, double x, double y) {
    constexpr int steps = 500;
    double sum = 0;
    const double step = diameter / steps;
    for (int i = 0; i < steps; ++i) {
        for (int j = 0; j < steps; ++j) {
            const double px = (i + 0.5) * step - diameter / 2;
            const double py = (j + 0.5) * step - diameter / 2;
            if (std::hypot(px, py) > diameter / 2) continue;
            sum += std::exp(-((px - x) * (px - x) + (py - y) * (py - y)) / (2 * sigma * sigma));
        }
    }
    return sum * step * step / (2 * std::numbers::pi * sigma * sigma);
}

nlohmann::json results_in(const std::filesystem::path& directory) {
    return nlohmann::json::parse(read_file(directory / "results.json"));
}

}  // namespace

TEST_CASE("petlm nema image-quality: known values come out, however the phantom lies", "[nema]") {
    const TemporaryDirectory directory;
    Drawn drawn;
    const auto check = [&] {
        write_image(directory / "image.nii", drawn);
        const Outcome outcome =
            petacq::test::run_petlm("nema image-quality" + quoted(directory / "image.nii") +
                                    "--force --offset-mm 2,-1,3 -o" + quoted(directory / "out"));
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        const auto json = results_in(directory / "out");
        const auto& uniform = json["tables"]["uniformity"]["rows"][0];
        CHECK(uniform[1] == 50);
        CHECK(uniform[2] == 50);
        CHECK(uniform[3] == 50);
        CHECK(uniform[4] == 0);
        for (std::size_t rod = 0; rod < 5; ++rod) {
            CAPTURE(rod);
            const auto& row = json["tables"]["recovery"]["rows"][rod];
            CHECK(row[1] == rod + 1);
            CHECK(row[4].get<double>() == Approx(drawn.recovery[rod]).epsilon(1e-6));
            CHECK(row[5].get<double>() == Approx(0).margin(1e-4));
        }
        std::vector<double> cold = {json["figures"]["spill_over_1"]["value"],
                                    json["figures"]["spill_over_2"]["value"]};
        std::sort(cold.begin(), cold.end());
        CHECK(cold[0] == Approx(0.125));
        CHECK(cold[1] == Approx(0.25));
    };
    check();
    drawn.towards_smaller = -1;
    drawn.rods_towards = -1;
    drawn.largest_deg = 301;
    drawn.cold_deg = 165;
    check();
}

TEST_CASE("nema: the value of a blurred disk", "[nema]") {
    for (const double diameter : {1.0, 5.0}) {
        for (const double sigma : {0.2, 0.6, 1.5}) {
            for (const double distance : {0.0, 0.4, 1.1, 2.4, 4.0}) {
                CAPTURE(diameter, sigma, distance);
                CHECK(nema::blurred_disk(diameter, sigma, distance) ==
                      Approx(slowly_blurred(diameter, sigma, distance * 0.6, distance * 0.8)).margin(0.001));
            }
        }
    }
    CHECK(nema::blurred_disk(3, 0.7, 0) == Approx(1 - std::exp(-1.5 * 1.5 / (2 * 0.49))).epsilon(1e-3));
}

TEST_CASE("petlm nema image-quality: noise does not move the recovery of the fit", "[nema]") {
    const TemporaryDirectory directory;
    constexpr double sigma = 0.75;
    constexpr double level = 40;
    // The phantom lies a little beside where the operator says.
    constexpr double off_x = 0.3;
    constexpr double off_y = -0.2;
    std::mt19937_64 random(11);
    const auto fitted = [&](double noise) {
        std::normal_distribution<double> spread(0, 1);
        write_values(directory / "image.nii", [&](double x, double y, double z) {
            x -= off_x;
            y -= off_y;
            if (std::hypot(x, y) > 15 || std::abs(z) > 25) return 0.0;
            const auto noisy = [&](double value) { return value + noise * level * spread(random); };
            if (z <= 5)
                return z < -10 && std::abs(std::hypot(x, y) - 7.5) < 4 && std::abs(y) < 4 ? 0.0
                                                                                          : noisy(level);
            double value = 0.05 * level;
            for (int rod = 0; rod < 5; ++rod) {
                const double angle = (31 - 72 * (4 - rod)) * std::numbers::pi / 180;
                value += 0.95 * level *
                         nema::blurred_disk(rod + 1, sigma,
                                            std::hypot(x - 7 * std::cos(angle), y - 7 * std::sin(angle)));
            }
            return noisy(value);
        });
        const Outcome outcome =
            petacq::test::run_petlm("nema image-quality" + quoted(directory / "image.nii") + "--force -o" +
                                    quoted(directory / "out"));
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        return results_in(directory / "out");
    };
    for (const double noise : {0.0, 0.5}) {
        const auto json = fitted(noise);
        CAPTURE(noise, json["beside"].dump(), json["figures"].dump());
        // A voxel blurs, too.
        CHECK(json["beside"]["rods_fwhm_mm"]["value"].get<double>() ==
              Approx(2.3548 * sigma).epsilon(noise > 0 ? 0.1 : 0.03));
        for (int rod = 1; rod <= 5; ++rod) {
            CAPTURE(rod);
            const auto& figure = json["beside"]["recovery_fitted_" + std::to_string(rod) + "mm"];
            const double truth = 0.05 + 0.95 * (1 - std::exp(-rod * rod / (8 * sigma * sigma)));
            const double error = figure["error"];
            CHECK(std::abs(figure["value"].get<double>() - truth) < 3 * error + 0.004);
            CHECK(error < 0.1);
        }
        // The largest voxel of the noisy rod is above it.
        const double standard = json["figures"]["recovery_5mm"]["value"];
        CHECK(standard == Approx(noise > 0 ? 1.22 : 1.0).margin(0.1));
    }
}

TEST_CASE("petlm nema image-quality: what is no image of the phantom is refused", "[nema]") {
    const TemporaryDirectory directory;
    const auto refusal = [&](const std::filesystem::path& target, int status) {
        const Outcome outcome =
            petacq::test::run_petlm("nema image-quality" + quoted(target) + "-o" + quoted(directory / "out"));
        CHECK(outcome.status == status);
        CHECK_FALSE(std::filesystem::exists(directory / "out"));
        return outcome.out;
    };
    write_image(directory / "image.nii", {});
    const std::string bytes = read_file(directory / "image.nii");
    write_file(directory / "short.nii", bytes.substr(0, 200));
    CHECK_THAT(refusal(directory / "short.nii", 78), contains("at least 352 bytes"));
    write_file(directory / "cut.nii", bytes.substr(0, bytes.size() - 4));
    CHECK_THAT(refusal(directory / "cut.nii", 78), contains("found 4860348"));
    write_file(directory / "text.nii", std::string(1000, 'x'));
    CHECK_THAT(refusal(directory / "text.nii", 78), contains("NIfTI-1"));
    std::string turned = bytes;
    turned[284 + 3] = 0x40;  // an sform that mixes x and y
    CHECK_THAT(refusal((write_file(directory / "turned.nii", turned), directory / "turned.nii"), 1),
               contains("turned or mirrored"));
    std::string no_number = bytes;
    no_number.replace(352, 4, "\xff\xff\xff\xff");
    write_file(directory / "nan.nii", no_number);
    CHECK_THAT(refusal(directory / "nan.nii", 78), contains("finite values"));
    std::string type = bytes;
    type[70] = 32;  // complex numbers
    write_file(directory / "type.nii", type);
    CHECK_THAT(refusal(directory / "type.nii", 78), contains("data type 32"));
    CHECK_THAT(refusal(directory / "missing.nii", 74), contains("cannot be read"));
    write_run(directory / "run", point_source(export_scanner(), {3, 4, 5}, 100));
    CHECK_THAT(refusal(directory / "run", 64), contains("make an image of it first"));
    CHECK_THAT(refusal(directory / "run" / "coincidences.plm", 64), contains("make an image of it first"));
    // The middle of the phantom is elsewhere.
    Drawn empty;
    empty.value = 0;
    write_image(directory / "empty.nii", empty);
    CHECK_THAT(refusal(directory / "empty.nii", 1), contains("no rods"));
}
