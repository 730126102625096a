// Images of real runs and of their parts: one activity, whatever part is taken and whatever was lost.
#include "config/calibration.hpp"
#include "config/factor_spread.hpp"
#include "tests/tools/petlm/reconstruction/scans.hpp"

namespace petacq::test {

TEST_CASE("image of runs: cuts and phases of a decaying source agree with the whole", "[petlm][image]") {
    const Scans scans("75.45");
    scans.acquire("r", "--cylinder 0,0,0,10,20,0.05 --duration-s 150 --cycle 1,0.02 --tag-trigger 1");
    scans.normalise("r");
    const Scans::Image whole = scans.image("r");
    CHECK(whole.about["duration_s"].get<double>() == Approx(150).margin(0.1));
    const auto agrees = [&](const Scans::Image& part, double duration_s) {
        CHECK(part.about["duration_s"].get<double>() == Approx(duration_s).margin(0.1));
        CHECK(part.about["reference_utc"] == whole.about["reference_utc"]);
        CHECK(part.mean == Approx(whole.mean).epsilon(3 * std::hypot(part.noise, whole.noise)));
        return part.about["corrections"]["randoms"]["expected"].get<double>();
    };
    const double randoms = whole.about["corrections"]["randoms"]["expected"].get<double>();
    double of_cuts = 0;
    for (int i = 0; i < 10; ++i) {
        CAPTURE(i);
        scans.good(PETLM_PROGRAM, "cut data/r --from-s " + std::to_string(15 * i) + " --to-s " +
                                      std::to_string(15 * (i + 1)) + " -o data/r/part.plm --force");
        of_cuts += agrees(scans.image("r/part.plm"), 15);
    }
    CHECK(of_cuts == Approx(randoms).epsilon(0.001));
    scans.good(PETLM_PROGRAM, "gate data/r --channel 1 --bins 4");
    for (int i = 1; i <= 4; ++i) {
        CAPTURE(i);
        const Scans::Image phase = scans.image("r/gate-1/phase-0" + std::to_string(i) + ".plm");
        agrees(phase, phase.about["duration_s"].get<double>());
        CHECK(phase.about["duration_s"].get<double>() == Approx(37).margin(0.7));
    }
    // A frame without prompts.
    scans.good(PETLM_PROGRAM, "cut data/r --from-s 140 --to-s 140.0000001 -o data/r/part.plm --force");
    CHECK(scans.image("r/part.plm").mean == 0);
}

TEST_CASE("image of runs: lost datagrams and a silent board leave the activity as it is", "[petlm][image]") {
    const Scans scans("40");
    const std::string source = "--cylinder 0,0,0,10,20,0.5 --duration-s 6 ";
    scans.acquire("good", source);
    scans.normalise("good");
    const Scans::Image good = scans.image("good");
    CHECK(good.about["corrections"]["loss"]["lost"] == 0);
    int number = 1;
    for (const char* loss : {"--loss 0.1", "--loss 0.3", "--silent 1@3-6"}) {
        CAPTURE(loss);
        const std::string name = "bad-" + std::to_string(number++);
        scans.acquire(name, source + loss);
        const Scans::Image bad = scans.image(name);
        CHECK(bad.about["corrections"]["loss"]["made"] == true);
        CHECK(bad.about["corrections"]["loss"]["lost"].get<double>() > 0.05);
        CHECK_THAT(bad.out, contains("% of the data of the boards did not arrive"));
        CHECK(bad.mean == Approx(good.mean).epsilon(0.03));
    }
}

TEST_CASE("image of runs: positions of the bed become one volume", "[petlm][image]") {
    const Scans scans("1e9");
    scans.acquire("flood", "--cylinder 0,0,0,10,20,0.5 --duration-s 4");
    scans.normalise("flood");
    scans.acquire("bed", "--point 5,0,-10,0.3 --bed-steps 10,1 --duration-s 3 --tag-position 3");
    const Scans::Image combined = scans.image("bed", "--voxel-mm 2 --smooth-mm 0");
    CHECK_THAT(combined.out, contains("The bed moved by 20 mm"));
    CHECK(combined.about["positions"].size() == 3);
    CHECK(combined.about["duration_s"].get<double>() == Approx(3).margin(0.01));
    CHECK(combined.about["voxels"][2].get<int>() == 12 + 20 / 2);
    // With the bed in the middle of its positions the point is at z = 0.
    double sum = 0;
    double place = 0;
    ImageFile(scans.dir / "i/image.nii").each([&](float value, double x, double y, double z) {
        if (std::hypot(x - 5, y) > 4) return;
        sum += value;
        place += value * z;
    });
    CHECK(place / sum == Approx(0).margin(0.3));

    const Scans::Image ignored = scans.image("bed", "--voxel-mm 4 --bed ignore");
    CHECK_THAT(ignored.out, contains("the image is smeared"));
    CHECK_FALSE(ignored.about.contains("positions"));
    scans.acquire("steady", "--point 5,0,-10,0.3 --bed-steps 1,0.1 --duration-s 2 --tag-position 3");
    const Outcome refused = scans.run(PETLM_PROGRAM, "image data/steady -o steady");
    CHECK(refused.status == 1);
    CHECK_THAT(refused.out, contains("The bed moved by 19 mm"));
}

TEST_CASE("image of runs: a normalisation that does not fit is refused", "[petlm][image]") {
    const Scans scans("1e9");
    scans.acquire("flood", "--cylinder 0,0,0,10,20,0.5 --duration-s 4");
    scans.normalise("flood");
    const auto refused = [&](const std::string& arguments, const std::string& with) {
        const Outcome outcome =
            scans.run(PETLM_PROGRAM, "image " + arguments + " --normalisation n.h5 -o no --backend cpu");
        CAPTURE(outcome.out);
        CHECK(outcome.status == 1);
        CHECK_THAT(outcome.out, contains("n.h5: made for another " + with));
        CHECK_FALSE(std::filesystem::exists(scans.dir / "no"));
    };
    refused("data/flood --depth-mm 5", "depth of interaction (mm): expected 5, found 0;");
    scans.good(PETLM_PROGRAM, "resort data/flood -o data/narrow --lower-kev 450");
    refused("data/narrow", "energy window (keV): expected 450 to 650, found 350 to 650");
    json scanner = json::parse(read_file(scans.dir / "s.json"));
    scanner["dimensions"]["ring_radius_mm"] = 33;
    write_file(scans.dir / "larger.json", scanner.dump());
    refused("data/flood --scanner larger.json", "scanner: expected ");
    scans.good(PETCAL_PROGRAM, "make --scanner s.json --output c.h5 --force --time-offset-ticks 3");
    scans.acquire("recalibrated", "--cylinder 0,0,0,10,20,0.5 --duration-s 0.5");
    refused("data/recalibrated", "calibration: expected ");
    // Without --depth-mm it is that of the normalisation.
    CHECK_THAT(scans.image("flood").out, contains("0 mm behind the front face, as for the normalisation"));
}

TEST_CASE(
    "image of runs: the resolution of the calibration turns on the time of flight, which changes no mean by "
    "more than 2 % with scatter, and empties what is cold sooner",
    "[petlm][image][tof]") {
    const Scans scans("6586");
    const config::Scanner scanner = config::load_scanner(scans.dir / "s.json");
    config::Calibration calibration = config::load_calibration(scans.dir / "c.h5", scanner.geometry);
    calibration.origin["coincidence_fwhm_ps"] = "99.0";
    config::save_calibration(scans.dir / "c.h5", scanner.geometry, calibration);
    scans.acquire("r",
                  "--cylinder 0,0,0,22,30,3 --cold 8,0,0,5,30 --object 0,0,0,22,30 --time-resolution-ps 70 "
                  "--duration-s 2 --seed 11");
    const json run = json::parse(read_file(scans.dir / "data/r/run.json"));
    CHECK(run.at("coincidence_fwhm_ps") == 99);
    CHECK(run.at("energy_factor_spread") == config::factor_spread(calibration));
    struct Made {
        double warm;
        double cold;
    };
    const auto made = [&](const std::string& tof, const char* said) {
        const std::string out =
            scans.good(PETLM_PROGRAM,
                       "image data/r -o i --force --backend cpu --depth-mm 0 --voxel-mm 2 --iterations 6 "
                       "--smooth-mm 0 --no-cache --attenuation 0,0,0,22,30 " +
                           tof);
        CHECK_THAT(out, contains(said));
        const ImageFile image(scans.dir / "i/image.nii");
        return Made{image.mean([](double x, double y, double z) {
                        return std::hypot(x, y) < 18 && std::hypot(x - 8, y) > 8 && std::abs(z) < 11;
                    }),
                    image.mean([](double x, double y, double z) {
                        return std::hypot(x - 8, y) < 2.5 && std::abs(z) < 11;
                    })};
    };
    const Made without = made("--tof off", "Time of flight: not used");
    const Made with = made("", "Time of flight: used, with a resolution of 99 ps");
    CHECK(with.warm == Approx(without.warm).epsilon(0.02));
    CHECK(with.cold < 0.8 * without.cold);
}

}  // namespace petacq::test
