// Series of a bed that moved: each frame has the records of each position, at its place.
#include <algorithm>
#include <cmath>

#include "tests/tools/petlm/reconstruction/frames/series.hpp"

namespace petacq::test {
namespace {

const std::string of_the_bed =
    "--normalisation n.h5 --backend cpu --nuclide Rb-82 --voxel-mm 2 --subsets 2 --iterations 8 "
    "--smooth-mm 0 ";

std::vector<float> floats(const std::string& bytes) {
    std::vector<float> out(bytes.size() / sizeof(float));
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
}

}  // namespace

TEST_CASE("frames of a moving bed: what lies on it stays where it is, with its activity", "[petlm][frames]") {
    const Scans scans("75.45");
    flood(scans);
    // It is seen at each of the positions -6, 0 and 6 mm, and lies in the middle of the bed.
    scans.acquire("bed",
                  "--cylinder 0,0,-6,8,8,0.3 --bed-steps 6,1 --duration-s 3 --tag-position 3 --seed 7 "
                  "--cycle 0.25,0.02 --tag-trigger 1 --scatter 0");
    const std::string region = "--region rod=sphere:0,0,0,4 ";
    const std::string out = scans.good(
        PETLM_PROGRAM, "frames data/bed -o all --schedule 3s --replicates 6 " + region + of_the_bed);
    CHECK_THAT(out, contains("The bed moved by 12 mm"));
    CHECK_THAT(out, contains("In the image the bed is at 6 mm"));
    scans.good(PETLM_PROGRAM, "image data/bed -o i " + of_the_bed);
    const Series all(scans.dir / "all/frames.nii");
    CHECK(all.frame(0) == values_of(scans.dir / "i/image.nii"));
    const json about = json::parse(read_file(scans.dir / "all/frames.json"));
    const json image = json::parse(read_file(scans.dir / "i/image.json"));
    CHECK(about["Frames"][0]["positions"] == image["positions"]);
    CHECK(about["Frames"][0]["recorded_s"].get<double>() == Approx(3).margin(1e-3));
    const auto whole = curves(scans.dir / "all/curves.csv")["rod"].at(0);
    const double mean = std::stod(whole.at(6));
    const double error = std::stod(whole.at(7));
    CHECK(error > 0.003 * mean);
    CHECK(error < 0.06 * mean);

    // The second frame has parts of two positions.
    scans.good(PETLM_PROGRAM,
               "frames data/bed -o some --schedule 0.6s,1s,1.4s --replicates 6 " + region + of_the_bed);
    const json some = json::parse(read_file(scans.dir / "some/frames.json"));
    REQUIRE(some["Frames"][1]["positions"].size() == 2);
    CHECK(some["Frames"][1]["positions"][0]["bed_mm"].get<double>() == Approx(-6));
    CHECK(some["Frames"][1]["positions"][1]["duration_s"].get<double>() == Approx(0.6).margin(1e-3));
    CHECK(some["DecayCorrectionFactor"][1].get<double>() == Approx(std::exp2(1.1 / 75.45)).epsilon(1e-4));
    auto by_region = curves(scans.dir / "some/curves.csv");
    for (const auto& row : by_region["rod"]) {
        CAPTURE(row.at(1), row.at(6), row.at(7), mean);
        CHECK(std::abs(std::stod(row.at(6)) - mean) < 0.06 * mean + 3 * std::stod(row.at(7)));
    }
    // Phases of a cycle, at all positions.
    scans.good(PETLM_PROGRAM, "frames data/bed -o phases --gates 2 --channel 1 " + region + of_the_bed);
    by_region = curves(scans.dir / "phases/curves.csv");
    for (const auto& row : by_region["rod"])
        CHECK(std::stod(row.at(6)) == Approx(mean).epsilon(0.15));
    CHECK(json::parse(read_file(scans.dir / "phases/frames.json"))["Frames"][1]["positions"].size() == 3);
}

TEST_CASE("frames of a moving bed: what no position saw in a frame has no value", "[petlm][frames]") {
    const Scans scans("1e9");
    scans.acquire("bed", "--point 5,0,-10,0.3 --bed-steps 20,1 --duration-s 2 --tag-position 3");
    const std::string plain = "--backend cpu --voxel-mm 4 --subsets 2 --iterations 2 ";
    scans.good(PETLM_PROGRAM,
               "frames data/bed -o f --schedule 1s,0.9s --region low=sphere:0,0,-14,4 "
               "--region high=sphere:0,0,14,4 " +
                   plain);
    const Series series(scans.dir / "f/frames.nii");
    for (const std::size_t frame : {0, 1}) {
        CAPTURE(frame);
        const std::vector<float> values = floats(series.frame(frame));
        // The whole bore in the middle, and beyond it the end that this position has in it.
        CHECK_FALSE(std::isnan(values[frame == 0 ? values.size() - 1 : 0]));
        CHECK(std::isnan(values[frame == 0 ? 0 : values.size() - 1]));
    }
    auto rows = curves(scans.dir / "f/curves.csv");
    CHECK(rows["low"].at(0).at(6).empty());
    CHECK_FALSE(rows["low"].at(1).at(6).empty());
    CHECK_FALSE(rows["high"].at(0).at(6).empty());
    CHECK(rows["high"].at(1).at(6).empty());

    // On its way all the time: there is no place at which a record was taken.
    scans.acquire("steady", "--point 5,0,-10,0.3 --bed-steps 1,0.1 --duration-s 2 --tag-position 3");
    const Outcome refused = scans.run(PETLM_PROGRAM, "frames data/steady -o g --schedule 1s " + plain);
    CHECK(refused.status == 1);
    CHECK_THAT(refused.out, contains("needs a bed that is still, or that moves in steps"));
    CHECK_FALSE(std::filesystem::exists(scans.dir / "g"));
    CHECK_THAT(scans.good(PETLM_PROGRAM, "frames data/steady -o g --schedule 1s --bed ignore " + plain),
               contains("That was ignored (--bed ignore)"));
}

}  // namespace petacq::test
