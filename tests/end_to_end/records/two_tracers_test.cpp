// The tutorial on two tracers: its commands, as they stand on the page, and how well they tell the tracers
// apart.
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/tutorial.hpp"

using namespace petacq::test;

namespace {

/// What is found of each tracer in the cylinder of the other, relative to the other; and both activities
/// relative to each other, divided by the true ratio.
struct Separation {
    double f18_in_sc44;
    double sc44_in_f18;
    double ratio;
};

/// Follows the tutorial with scans of so many seconds and images with such voxels.
Separation check_tutorial(const std::string& scan_s, const std::string& voxel_mm) {
    const TemporaryDirectory place;
    std::string page = tutorial_page("two-tracers");
    const auto replace = [&](const std::string& what, const std::string& by) {
        REQUIRE(contains(page, what));
        page = std::regex_replace(page, std::regex(what), by);
    };
    replace("--duration-s 20 ", "--duration-s " + scan_s + " ");
    replace("--voxel-mm 2 ", "--voxel-mm " + voxel_mm + " ");
    const Outcome followed = follow_tutorial(page, place.path());
    INFO(followed.out);
    REQUIRE(followed.status == 0);
    const std::filesystem::path output = place / "two-tracers" / "tracers";
    for (const char* file : {"F-18.nii", "Sc-44.nii"})
        CHECK(std::filesystem::exists(output / file));
    const auto document = nlohmann::json::parse(read_file(output / "tracers.json"));
    const auto mean = [&](const char* region, const char* nuclide) {
        return document["regions"][region][nuclide].get<double>();
    };
    INFO(document.dump(1));
    // Without a normalisation the values are positrons.
    constexpr double true_ratio = 0.9428 / 0.9686;
    return {mean("left", "F-18") / mean("left", "Sc-44"), mean("right", "Sc-44") / mean("right", "F-18"),
            mean("left", "Sc-44") / mean("right", "F-18") / true_ratio};
}

}  // namespace

TEST_CASE("the tutorial on two tracers tells them apart", "[e2e][tracers]") {
    // The error of counting is 6 %.
    const Separation found = check_tutorial("0.4", "3");
    CHECK(std::abs(found.f18_in_sc44) < 0.2);
    CHECK(std::abs(found.sc44_in_f18) < 0.06);
    CHECK(found.ratio == Approx(1).epsilon(0.2));
}

TEST_CASE("the tutorial on two tracers, with scans as long as it says", "[e2e][tracers][.long]") {
    const Separation found = check_tutorial("20", "2");
    CAPTURE(found.f18_in_sc44, found.sc44_in_f18, found.ratio);
    CHECK(std::abs(found.f18_in_sc44) < 0.02);
    CHECK(std::abs(found.sc44_in_f18) < 0.01);
    CHECK(found.ratio == Approx(1).epsilon(0.03));
}
