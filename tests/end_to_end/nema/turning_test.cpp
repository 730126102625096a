// Runs of a scanner that turns: whatever is made of a run, each pair keeps its line in space.
#include <numbers>

#include "tests/end_to_end/nema/simulated.hpp"
#include "tests/support/image_file.hpp"
#include "tests/support/turning_scanner.hpp"
#include "tools/petlm/nema/runs.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

using Point = std::array<double, 3>;

/// Radians at a time in ticks of 10 ps, of petsim --rotation.
double even_turn(double turns_per_minute, std::uint64_t time) {
    return 2 * std::numbers::pi * turns_per_minute / 60 * 1e-11 * static_cast<double>(time);
}

/// A board is silent when nothing of it comes for a tenth of a second.
json settings() {
    return {{"coincidence", {{"min_module_difference", nullptr}}},
            {"watermark", {{"source_timeout_ms", 100}}},
            {"listmode", {{"write_singles", true}}}};
}

class Turning : public Simulated {
  public:
    Turning() : Simulated(settings()) { use(turning_scanner()); }

    void petlm(const std::vector<std::string>& arguments) const {
        const Outcome outcome = run_program(PETLM_PROGRAM, arguments);
        INFO(outcome.out << outcome.err);
        REQUIRE(outcome.status == 0);
    }
    [[nodiscard]] std::string file(const std::string& name) const { return (directory() / name).string(); }
    void check_place(const std::string& target, const Point& at) {
        auto row = row_of(nema("resolution", {target}, {}), "widths", 0);
        CAPTURE(target, row["x_mm"], row["y_mm"], row["z_mm"]);
        CHECK(row["x_mm"] == Approx(at[0]).margin(0.5));
        CHECK(row["y_mm"] == Approx(at[1]).margin(0.5));
        CHECK(row["z_mm"] == Approx(at[2]).margin(0.7));
        // Faces of 2.5 mm see a point between them as a triangle of half of it; few lines, as of a part of a
        // turn, make a point longer across them.
        CHECK(row["radial_fwhm_mm"] < 2.5);
        CHECK(row["tangential_fwhm_mm"] < 2.5);
    }
    /// The file of an image that is corrected for what can be known without a normalisation.
    [[nodiscard]] std::string image(const std::string& target) const {
        petlm({"image",
               target,
               "-o",
               file("image"),
               "--force",
               "--depth-mm",
               "0",
               "--fov-mm",
               "20",
               "--voxel-mm",
               "2",
               "--iterations",
               "2",
               "--backend",
               "cpu",
               "--no-cache",
               "--attenuation",
               "0,0,0,1,1",
               "--scatter",
               "none"});
        return file("image") + "/image.nii";
    }
};

/// Lines of the pairs in space, as the truth has the turning: the mean distance of a point from them, and
/// their number.
double distance_from(const Point& point, const config::Scanner& scanner, const std::filesystem::path& file) {
    double sum = 0;
    double count = 0;
    for (const gpu::Coincidence& pair : coincidences_of(file)) {
        if (pair.kind != gpu::Kind::prompt) continue;
        const auto place = [&](std::uint32_t crystal) {
            return config::turned(config::crystal_place(scanner, crystal).front_centre_mm,
                                  even_turn(30, pair.time));
        };
        const auto p = place(pair.crystal_a);
        const auto q = place(pair.crystal_b);
        sum += std::abs((point[0] - p[0]) * (q[1] - p[1]) - (point[1] - p[1]) * (q[0] - p[0])) /
               std::hypot(q[0] - p[0], q[1] - p[1]);
        ++count;
    }
    REQUIRE(count > 1000);
    return sum / count;
}

}  // namespace

TEST_CASE("a scanner that turns: cut, merged, gated and sorted again, pairs keep their lines in space",
          "[e2e][nema][rotation]") {
    Turning turning;
    const Point at = {5, 2, 3};
    const auto take = [&](const std::string& name, const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"--point", "5,2,3,0.3", "--scatter", "0", "--rotation", "30"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        turning.run(name, arguments);
    };
    // Breaths of 90 degrees.
    take("run", {"--duration-s", "2", "--seed", "3", "--cycle", "0.5", "--tag-trigger", "2"});
    const std::string run = turning.path("run").string();
    turning.check_place(run, at);
    const std::string image = read_file(turning.image(run));

    turning.petlm({"resort", run, "-o", turning.file("resorted.plm")});
    CHECK(read_file(turning.image(turning.file("resorted.plm"))) == image);

    // Less than half a turn, and the rest; both together are the run.
    turning.petlm({"cut", run, "-o", turning.file("a.plm"), "--to-s", "0.9"});
    turning.petlm({"cut", run, "-o", turning.file("b.plm"), "--from-s", "0.9"});
    turning.check_place(turning.file("a.plm"), at);
    turning.petlm({"merge", turning.file("b.plm"), turning.file("a.plm"), "-o", turning.file("merged.plm")});
    CHECK(read_file(turning.image(turning.file("merged.plm"))) == image);

    // Another run, that begins at another angle: nothing is between the two.
    take("later", {"--duration-s", "1", "--seed", "4", "--start-time-s", "3.3"});
    turning.petlm({"merge", run, turning.path("later").string(), "-o", turning.file("both.plm")});
    turning.check_place(turning.file("both.plm"), at);

    turning.petlm({"gate", run, "--channel", "2", "--bins", "2", "-o", turning.file("gated")});
    for (const std::string phase : {"phase-01.plm", "phase-02.plm"})
        CHECK(distance_from(at, turning.scanner(), turning.file("gated/" + phase)) < 1);
    turning.check_place(turning.file("gated/phase-02.plm"), at);
}

TEST_CASE("petlm nema of a scanner that turns: trues and randoms of the simulator", "[e2e][nema][rotation]") {
    Turning turning;
    const config::Scanner scanner = turning.scanner();
    const auto line = [&](const std::string& name, const std::string& mbq, const std::string& seconds) {
        std::vector<std::string> arguments = {"--line",       "10,0,-30,10,0,30," + mbq,
                                              "--object",     "0,0,0,12.5,70",
                                              "--duration-s", seconds,
                                              "--seed",       "5",
                                              "--rotation",   "15",
                                              "--efficiency", "1"};
        return in_phantom(scanner, turning.run(name, arguments),
                          [](std::uint64_t time) { return even_turn(15, time); });
    };
    const InPhantom low = line("low", "0.2", "2");
    const InPhantom high = line("high", "10", "0.25");
    const json rates = turning.nema("count-rate", {"low", "high"}, {"--activity-mbq", "0.2,10"});
    for (std::size_t i = 0; i < 2; ++i) {
        auto row = row_of(rates, "rates", i);
        const InPhantom& truth = i == 0 ? low : high;
        const double t = row["duration_s"];
        const double randoms = truth.counts.at(Origin::random);
        const double trues = truth.all() - background_of(truth);
        CAPTURE(i, row["trues"] * t, trues, row["randoms"] * t, randoms);
        CHECK(row["total"] * t == Approx(truth.all()).epsilon(1e-9));
        CHECK(std::abs(row["randoms"] * t - randoms) < 3 * std::sqrt(randoms));
        CHECK(std::abs(row["trues"] - trues / t) < 2 * row["trues_error"]);
        CHECK(std::abs(row["necr_of_sums"] - trues * trues / truth.all() / t) < 2 * row["necr_error"]);
    }
}

TEST_CASE("petlm nema of a scanner that turns: lines count as often as decays were found at their angle",
          "[e2e][nema][rotation][loss]") {
    Turning turning;
    // A source on the axis looks alike at all angles. Of the second stay, a half is lost.
    const auto pairs =
        turning.run("lossy", {"--point", "0,0,0,0.4", "--scatter", "0", "--rotation-steps", "40,1",
                              "--duration-s", "4", "--silent", "0@1.2-1.7", "--seed", "8"});
    nema::RunOptions options;
    options.runs = {turning.path("lossy")};
    const nema::NemaRun run(options, 0);
    const nema::SliceBins bins(run.scanner(), config::DepthOfInteraction::fixed(0), 1);
    const std::vector<double> shares = run.shares_of_rows(bins);
    std::vector<double> found(shares.size());
    for (const auto& labelled : pairs)
        found[run.rows_at(labelled.pair.time, bins)] += 1 / static_cast<double>(pairs.size());
    std::size_t stays = 0;
    for (std::size_t rows = 0; rows < found.size(); ++rows) {
        if (found[rows] > 0.1) ++stays;
        CAPTURE(rows);
        CHECK(shares[rows] == Approx(found[rows]).margin(0.008));
    }
    CHECK(stays == 4);
}

TEST_CASE("the image of a scanner that turns has the activity also if a board was silent at one angle",
          "[e2e][rotation][loss]") {
    Turning turning;
    // From the second angle more is seen than from the others.
    const auto take = [&](const std::string& name, const std::vector<std::string>& more) {
        std::vector<std::string> arguments = {"--point",          "0,7,0,0.2", "--scatter", "0",
                                              "--rotation-steps", "45,1",      "--seed",    "9",
                                              "--duration-s",     "4"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        turning.run(name, arguments);
    };
    take("whole", {});
    take("lossy", {"--silent", "0@2.2-2.8"});
    // The same prompts in a file with a hole in time, of which no data are lost.
    const std::string whole = turning.path("whole").string();
    turning.petlm({"cut", whole, "-o", turning.file("a.plm"), "--to-s", "2.2"});
    turning.petlm({"cut", whole, "-o", turning.file("b.plm"), "--from-s", "2.8"});
    turning.petlm({"merge", turning.file("a.plm"), turning.file("b.plm"), "-o", turning.file("hole.plm")});
    const auto activity = [&](const std::string& target) {
        return ImageFile(turning.image(target)).mean([](double, double, double) { return true; });
    };
    // In decays of the time that each covers.
    CHECK(activity(turning.path("lossy").string()) / 4 ==
          Approx(activity(turning.file("hole.plm")) / 3.4).epsilon(0.003));
}
