// petlm image with normalisation and attenuation: units, what is said about them, and refusals.
#include <numeric>

#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/normalisation/normalisation.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

/// A run of a cylinder, and a normalisation of its scanner.
struct Measured {
    TemporaryDirectory directory;
    config::Scanner scanner = short_scanner();
    normalisation::Normalisation normalisation = normalisation::Normalisation::even(scanner.geometry);

    Measured() {
        write_run(directory / "run", cylinder_source(scanner, {0, 0, 0}, 8, 10, 20'000), scanner);
        nlohmann::json run = nlohmann::json::parse(read_file(directory / "run/run.json"));
        run["start_utc"] = "2026-11-20T18:45:00.123Z";
        run["stop_ticks"] = run_start + 64'000'000'000 * 60;  // a minute
        write_file(directory / "run/run.json", run.dump());
        save_normalisation();
    }
    void save_normalisation() { save(directory / "norm.h5", scanner.geometry, normalisation); }
    [[nodiscard]] std::string with_normalisation() const {
        return " --normalisation" + quoted(directory / "norm.h5");
    }
    nlohmann::json made(const std::string& options) {
        const Outcome outcome = imaged(directory / "run", directory / "out",
                                       "--force --voxel-mm 3 --smooth-mm 0 --iterations 2 " + options);
        INFO(outcome.out);
        REQUIRE(outcome.status == 0);
        return nlohmann::json::parse(read_file(directory / "out/image.json"));
    }
    [[nodiscard]] double sum() const {
        const Volume volume(directory / "out/image.nii");
        return std::accumulate(volume.values.begin(), volume.values.end(), 0.0);
    }
};

}  // namespace

TEST_CASE("petlm image: a normalisation makes kBq/ml of decays", "[petlm][image]") {
    Measured m;
    const auto plain = m.made("");
    CHECK(plain.at("unit") == "decays per voxel");
    CHECK(plain.at("corrections").at("normalisation").at("made") == false);
    CHECK(plain.at("normalisation_sha256").is_null());
    CHECK(plain.at("scanner") == m.scanner.name);
    CHECK(plain.at("iterations") == 2);
    CHECK(plain.at("subsets") == 8);
    CHECK(plain.at("smooth_mm") == 0.0);
    CHECK(plain.at("half_life_s").is_null());
    CHECK(plain.at("branching_ratio").is_null());
    const double decays = m.sum();

    const auto even = m.made(m.with_normalisation());
    CHECK(even.at("unit") == "kBq/ml, uncalibrated");
    CHECK(even.at("duration_s") == Approx(60));
    CHECK(even.at("time_of_activity_utc").is_null());
    CHECK(even.at("normalisation_sha256").get<std::string>().size() == 64);
    // Decays per mm^3 and second.
    CHECK(m.sum() == Approx(decays / 27 / 60).epsilon(0.02));
    CHECK_THAT(Volume(m.directory / "out/image.nii").description,
               contains("uncalibrated, no attenuation, scatter"));

    // Crystals that all detect half of the photons, compared with the mean, were hit by four times as many
    // pairs.
    m.normalisation.efficiency.assign(m.normalisation.efficiency.size(), 0.5F);
    m.normalisation.activity_factor = 3;
    m.save_normalisation();
    const auto calibrated = m.made(m.with_normalisation() + " --nuclide F-18");
    CHECK(calibrated.at("unit") == "kBq/ml");
    CHECK(calibrated.at("activity_factor") == 3);
    CHECK(calibrated.at("nuclide") == "F-18");
    CHECK(calibrated.at("half_life_s").get<double>() == Approx(6586).epsilon(0.001));
    CHECK(calibrated.at("branching_ratio").get<double>() == Approx(0.967).epsilon(0.01));
    CHECK(calibrated.at("time_of_activity_utc") == "2026-11-20T18:45:00.123Z");
    // ln 2 x 60 s / 1.8289 h, half of which has decayed on average; 0.9686 positrons per decay.
    CHECK(m.sum() == Approx(decays / 27 / 60 * 4 * 3 / 0.9686 * (1 + 0.006317 / 2)).epsilon(0.02));
}

TEST_CASE("petlm image: attenuation makes more of the same prompts", "[petlm][image]") {
    Measured m;
    m.made("");
    const double without = m.sum();
    const auto with = m.made("--attenuation 0,0,0,8,200,0.5 --scatter none");
    CHECK(with.at("corrections").at("attenuation").at("made") == true);
    CHECK(with.at("corrections").at("scatter").at("made") == false);
    CHECK(with.at("unit") == "decays per voxel");
    // Chords of up to 16 mm and more: pairs were lost by up to exp(0.8).
    CHECK(m.sum() > 1.5 * without);
    CHECK(m.sum() < 2.5 * without);
    // Nothing was scattered, which the lines that miss the object tell.
    const auto simulated = m.made("--attenuation 0,0,0,8,200,0.3").at("corrections").at("scatter");
    CHECK(simulated.at("made") == true);
    INFO(simulated.dump());
    CHECK(simulated.at("scale_of_simulation") < 0.3);
    CHECK(simulated.at("share_of_prompts") < 0.1);
}

TEST_CASE("petlm image: a file of unknown length states no activity", "[petlm][image]") {
    Measured m;
    // One of several files of a run that does not say what it covers.
    write_run(m.directory / "run", cylinder_source(m.scanner, {0, 0, 0}, 8, 10, 2'000), m.scanner, 2);
    const Outcome outcome = imaged(m.directory / "run/coincidences-0001.plm", m.directory / "out",
                                   "--voxel-mm 4 --iterations 1" + m.with_normalisation());
    REQUIRE(outcome.status == 0);
    CHECK_THAT(outcome.out, contains("length of the measurement is unknown"));
    CHECK(nlohmann::json::parse(read_file(m.directory / "out/image.json")).at("unit") == "decays per voxel");
}

TEST_CASE("petlm image: unusable corrections are refused", "[petlm][image]") {
    Measured m;
    const auto refused = [&](const std::string& options, int status, const std::string& what) {
        CAPTURE(options);
        const Outcome outcome = imaged(m.directory / "run", m.directory / "out", options);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out + outcome.err, contains(what));
        CHECK_FALSE(std::filesystem::exists(m.directory / "out/image.nii"));
    };
    refused("--scatter some", 64, "{simulation,none}");
    refused("--scatter simulation", 64, "--attenuation");
    refused("--nuclide F-18", 64, "--normalisation");
    refused("--nuclide F-19" + m.with_normalisation(), 64, "expected one of C-11");
    refused("--attenuation 0,0,0", 64, "x,y,z,radius,length");
    refused("--attenuation" + quoted(m.directory / "norm.h5"), 78, "NIfTI-1");
    refused("--normalisation" + quoted(m.directory / "none.h5"), 74, "none.h5");
    refused("--normalisation" + quoted(m.directory / "run/run.json"), 78, "run.json");
    const auto longer = export_scanner().geometry;
    save(m.directory / "norm.h5", longer, normalisation::Normalisation::even(longer));
    refused(m.with_normalisation(), 78, "efficiency");
}
