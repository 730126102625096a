// The tutorial on two tracers: its commands, as they stand on the page, and how well they tell the tracers
// apart.
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <tuple>

#include "tests/end_to_end/records/tracer_images.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tutorial.hpp"

using namespace petacq::test;

namespace {

/// Follows the tutorial, but with scans that take `scan_s` and voxels of `voxel_mm`. The ratio in the result
/// is divided by the true one.
TwoTracers check_tutorial(const std::string& scan_s, const std::string& voxel_mm,
                          const std::string& replicates) {
    const TemporaryDirectory place;
    std::string page = tutorial_page("two-tracers");
    const auto replace = [&](const std::string& what, const std::string& by) {
        REQUIRE(contains(page, what));
        page = std::regex_replace(page, std::regex(what), by);
    };
    replace("--duration-s 20 ", "--duration-s " + scan_s + " ");
    replace("--voxel-mm 2 ", "--voxel-mm " + voxel_mm + " ");
    replace("--replicates 10\n", "--replicates " + replicates + "\n");
    const Outcome followed = follow_tutorial(page, place.path());
    INFO(followed.out);
    REQUIRE(followed.status == 0);
    const std::filesystem::path output = place / "two-tracers" / "tracers";
    for (const char* file : {"F-18.nii", "Sc-44.nii"})
        CHECK(std::filesystem::exists(output / file));
    const auto document = nlohmann::json::parse(read_file(output / "tracers.json"));
    // Each region has one of the tracers; the other is 0 within the error that is stated.
    for (const auto& [region, has, lacks] :
         {std::tuple("left", "Sc-44", "F-18"), std::tuple("right", "F-18", "Sc-44")}) {
        const auto& means = document["regions"][region];
        const auto& errors = document["standard_errors_of_regions"][region];
        CAPTURE(region, means.dump(), errors.dump());
        CHECK(errors[has].get<double>() > 0);
        CHECK(errors[has].get<double>() < 0.3 * means[has].get<double>());
        CHECK(std::abs(means[lacks].get<double>()) < 4 * errors[lacks].get<double>());
    }
    // Without a normalisation the values are positrons.
    constexpr double true_ratio = 0.9428 / 0.9686;
    TwoTracers found = two_tracers_in(output, "F-18", "Sc-44");
    found.ratio /= true_ratio;
    return found;
}

}  // namespace

TEST_CASE("the tutorial on two tracers tells them apart", "[e2e][tracers]") {
    // The error of counting is 6 %.
    const TwoTracers found = check_tutorial("0.4", "3", "4");
    CHECK(std::abs(found.first_in_other) < 0.2);
    CHECK(std::abs(found.other_in_first) < 0.06);
    CHECK(found.ratio == Approx(1).epsilon(0.2));
}

TEST_CASE("the tutorial on two tracers, with scans as long as it says", "[e2e][tracers][.long]") {
    const TwoTracers found = check_tutorial("20", "2", "10");
    CAPTURE(found.first_in_other, found.other_in_first, found.ratio);
    CHECK(std::abs(found.first_in_other) < 0.02);
    CHECK(std::abs(found.other_in_first) < 0.01);
    CHECK(found.ratio == Approx(1).epsilon(0.03));
}
