// Which randoms petlm image takes into account, and the pairs lost to multiples.
#include <fmt/format.h>

#include "daemon/seconds/file.hpp"
#include "gpu/randoms/randoms.hpp"
#include "tests/support/configuration.hpp"
#include "tests/tools/petlm/reconstruction/image/support.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// One second of even singles. Returns its expected randoms.
double write_second(const std::filesystem::path& file, const config::Scanner& scanner, double pile_up = 1) {
    gpu::CoincidenceRules rules;
    rules.window = 300;
    daemon::Second s = daemon::Second::none(scanner.geometry);
    s.range = {run_start, run_start + 64'000'000'000};
    s.length_s = 1;
    for (std::size_t i = 0; i < s.sums.unpaired.size(); ++i) {
        s.sums.unpaired[i] = 3'000;
        s.sums.grouped[i] = 500;
    }
    s.sums.counts.unpaired = 3'000 * s.sums.unpaired.size();
    s.sums.counts.decided = 3'500 * s.sums.unpaired.size();
    s.sums.counts.prompts = 250 * s.sums.unpaired.size();
    s.sums.counts.groups = s.sums.counts.unpaired + s.sums.counts.prompts;
    gpu::RandomsEstimator estimator(scanner.geometry, rules);
    estimator.estimate(s.sums, s.range.ticks(), s.randoms);
    s.pile_up = pile_up;
    daemon::SecondsFile out(file, scanner.geometry, file_description(scanner), config::Compression::none,
                            std::chrono::seconds(1));
    out.append(s);
    out.finish();
    return s.randoms.total;
}

}  // namespace

TEST_CASE("petlm image: randoms come from the seconds of the run, or from weighted delayeds",
          "[petlm][image]") {
    const TemporaryDirectory directory;
    const auto scanner = short_scanner();
    const auto run = directory / "run";
    write_run(run, cylinder_source(scanner, {9, -6, 4}, 5, 8, 3'000), scanner);
    nlohmann::json document = nlohmann::json::parse(read_file(run / "run.json"));
    document["configuration"] = *configuration_with({{"coincidence", {{"window_ticks", 300}}}}).document;
    document["stop_ticks"] = run_start + 64'000'000'000;
    const auto image_of = [&](const std::filesystem::path& target, const std::string& sentence) {
        write_file(run / "run.json", document.dump());
        const Outcome outcome = imaged(target, directory / "out", "--force --voxel-mm 3 --subsets 1");
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        CHECK_THAT(outcome.out, contains(sentence));
        CHECK_THAT(read_file(directory / "out/README.txt"), contains(sentence));
        return read_file(directory / "out/image.nii");
    };
    const auto unweighted = image_of(run, "each of which stands for 1 random (its weight is unknown)");
    document["ledger"] = {{"closed", true}, {"pairs", {{"delayeds_found", 2'000}}}};
    document["expected_randoms"] = {{"from_delayeds", 2'500.0}};
    const auto weighted = image_of(run, "each of which stands for 1.25 randoms");
    CHECK(weighted != unweighted);

    const double randoms = write_second(run / "seconds.plm", scanner);
    REQUIRE(randoms > 100);
    const auto from_seconds =
        image_of(run, fmt::format("Randoms: {:.0f} expected from the singles", randoms));
    CHECK(from_seconds != weighted);
    // That of the only file is the same.
    CHECK(image_of(run / "coincidences.plm", "expected from the singles") == from_seconds);
}

TEST_CASE("petlm image: the pile-up factor of the run multiplies the image", "[petlm][image]") {
    const TemporaryDirectory directory;
    const auto scanner = short_scanner();
    const auto run = directory / "run";
    write_run(run, cylinder_source(scanner, {9, -6, 4}, 5, 8, 3'000), scanner);
    nlohmann::json document = nlohmann::json::parse(read_file(run / "run.json"));
    document["configuration"] = *configuration_with({{"coincidence", {{"window_ticks", 300}}}}).document;
    document["stop_ticks"] = run_start + 64'000'000'000;
    write_file(run / "run.json", document.dump());
    const auto image_of = [&](const std::filesystem::path& target, const std::string& sentence) {
        const Outcome outcome = imaged(target, directory / "out", "--force --voxel-mm 3 --subsets 1");
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        CHECK_THAT(outcome.out, contains(sentence));
        CHECK_THAT(read_file(directory / "out/README.txt"), contains(sentence));
        return Volume(directory / "out/image.nii").values;
    };
    image_of(run, "Pile-up: not corrected, as the run \"test-run\" has no seconds.plm.");
    write_second(run / "seconds.plm", scanner);
    const auto without = image_of(run, "Pile-up: no pairs were lost to multiples.");
    std::filesystem::remove(run / "seconds.plm");
    write_second(run / "seconds.plm", scanner, daemon::Second::unknown);
    CHECK(image_of(run, "Pile-up: not corrected, as the seconds of the run do not tell") == without);

    std::filesystem::remove(run / "seconds.plm");
    write_second(run / "seconds.plm", scanner, 1.25);
    const auto corrected = image_of(run, "Pile-up: values multiplied by 1.25 for the pairs lost");
    REQUIRE(corrected.size() == without.size());
    double worst = 0;
    for (std::size_t i = 0; i < without.size(); ++i)
        worst = std::max(worst, std::abs(corrected[i] - 1.25 * without[i]));
    CHECK(worst <= 1e-5 * *std::max_element(corrected.begin(), corrected.end()));
}
