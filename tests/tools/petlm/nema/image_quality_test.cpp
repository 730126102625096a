// petlm nema image-quality on images whose values are known.
#include <cmath>
#include <numbers>

#include "tests/support/temporary_directory.hpp"
#include "tests/tools/petlm/support.hpp"
#include "tools/nifti/nifti.hpp"
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

void write_image(const std::filesystem::path& file, const Drawn& drawn) {
    const image::Grid grid{{90, 90, 150}, 0.5};
    std::vector<float> values;
    for (std::size_t z = 0; z < grid.n[2]; ++z) {
        for (std::size_t y = 0; y < grid.n[1]; ++y) {
            for (std::size_t x = 0; x < grid.n[0]; ++x)
                values.push_back(
                    static_cast<float>(drawn.at(grid.centre(0, x), grid.centre(1, y), grid.centre(2, z))));
        }
    }
    const double first = grid.centre(0, 0);
    const nifti::Volume volume{
        {90, 90, 150}, {{{0.5, 0, 0}, {0, 0.5, 0}, {0, 0, 0.5}}}, {first, first, grid.centre(2, 0)}, {}};
    write_file(file, nifti::header(volume, "test") + std::string(reinterpret_cast<const char*>(values.data()),
                                                                 values.size() * sizeof(float)));
}

nlohmann::json results(const std::filesystem::path& directory) {
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
        const auto json = results(directory / "out");
        CHECK(json["clause"].get<std::string>().substr(0, 1) == "6");
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
