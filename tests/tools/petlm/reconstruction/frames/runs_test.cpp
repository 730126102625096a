// Series of real runs: each frame is the image of its time, and curves are those of the activity.
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>

#include "tests/tools/petlm/reconstruction/frames/series.hpp"

namespace petacq::test {
namespace {

const std::string grid = "--voxel-mm 4 --subsets 2 --iterations 2 ";
const std::string rb_82 = "--nuclide Rb-82";
const std::string settings = "--normalisation n.h5 --backend cpu " + rb_82 + " " + grid;
const std::string without_gammas =
    std::string("--normalisation n.h5 --backend cpu ") + Scans::without_gammas + " " + grid;

}  // namespace

TEST_CASE("frames of runs: each is, byte for byte, the image of the cut or phase of its time",
          "[petlm][frames]") {
    const Scans scans("75.45");
    scans.acquire("r", "--cylinder 0,0,0,10,20,0.1 --duration-s 12 --cycle 1,0.02 --tag-trigger 1 --seed 41");
    flood(scans);
    const std::string region = "--region middle=sphere:0,0,0,7 ";
    const std::string out =
        scans.good(PETLM_PROGRAM, "frames data/r -o f --schedule 2x2s,0.3s,5.7s " + region + settings);
    CHECK_THAT(out, contains("Frame 3: 4 to 4.3 s, 0.3 s recorded"));
    const Series series(scans.dir / "f/frames.nii");
    const json about = json::parse(read_file(scans.dir / "f/frames.json"));
    REQUIRE(series.frames() == 4);
    CHECK(series.number<float>(92) == Approx(2.5));  // pixdim[4]: the mean, s
    CHECK(series.number<char>(123) == (2 | 8));      // mm and s
    CHECK(about["FrameTimesStart"].get<std::vector<double>>() == std::vector<double>{0, 2, 4, 4.3});
    CHECK(about["FrameDuration"][3].get<double>() == Approx(5.7));
    for (std::size_t i = 0; i < 4; ++i) {
        CAPTURE(i);
        const json& frame = about["Frames"][i];
        scans.good(PETLM_PROGRAM, "cut data/r --from-ticks " + frame["from_ticks"].dump() + " --to-ticks " +
                                      frame["to_ticks"].dump() + " -o data/r/part.plm --force");
        const auto image = scans.image("r/part.plm", grid, rb_82);
        CHECK(series.frame(i) == values_of(scans.dir / "i/image.nii"));
        for (const char* figure : {"randoms", "pile-up", "decay", "loss", "dead time"})
            CHECK(frame["corrections"][figure] == image.about["corrections"][figure]);
        CHECK(about["DecayCorrectionFactor"][i] == image.about["corrections"]["decay"]["factor"]);
    }
    std::filesystem::remove(scans.dir / "data/r/part.plm");

    scans.good(PETLM_PROGRAM, "gate data/r --channel 1 --bins 3 --shortest-s 0.9");
    scans.good(PETLM_PROGRAM,
               "frames data/r -o g --gates 3 --channel 1 --shortest-s 0.9 " + region + without_gammas);
    const Series phases(scans.dir / "g/frames.nii");
    REQUIRE(phases.frames() == 3);
    const json of_phases = json::parse(read_file(scans.dir / "g/frames.json"));
    for (std::size_t i = 0; i < 3; ++i) {
        CAPTURE(i);
        const auto image = scans.image("r/gate-1/phase-0" + std::to_string(i + 1) + ".plm", grid);
        CHECK(image.about["duration_s"] == of_phases["Frames"][i]["recorded_s"]);
        CHECK(phases.frame(i) == values_of(scans.dir / "i/image.nii"));
    }
    // The phases share the memory of one image: half of it is for pairs.
    const std::string little = scans.good(
        PETLM_PROGRAM, "frames data/r -o l --gates 3 --channel 1 --max-memory-gb 0.001 " + without_gammas);
    CHECK_THAT(little, contains("room for 15625 pairs"));
    CHECK_THAT(little, contains("3 frames were collected at a time, each with room for 5208 pairs"));
    CHECK_THAT(little, contains("pairs of crystals fitted into memory"));
    CHECK_THAT(read_file(scans.dir / "g/curves.csv"),
               contains("region,frame,phase_from,phase_to,recorded_s"));
    const json& gates = of_phases["Gates"];
    CHECK(gates["phases"] == 3);
    CHECK(gates["period_s"].get<double>() == Approx(1).margin(0.05));
}

TEST_CASE(
    "frames of runs: the sidecar has every key that BIDS-PET requires, and names those it does not know",
    "[petlm][frames]") {
    const Scans scans("75.45");
    scans.acquire("r", "--cylinder 0,0,0,10,20,0.05 --duration-s 4 --seed 42");
    flood(scans);
    write_file(scans.dir / "bids.json",
               R"({"TracerName": "water", "Manufacturer": "us", "BodyPart": "leg"})");
    const std::string out = scans.good(
        PETLM_PROGRAM, "frames data/r -o f --schedule 1s,2s --injection-s 0.5 --bids bids.json " + settings);
    const json about = json::parse(read_file(scans.dir / "f/frames.json"));
    for (const char* key : {"Manufacturer",
                            "ManufacturersModelName",
                            "Units",
                            "TracerName",
                            "TracerRadionuclide",
                            "InjectedRadioactivity",
                            "InjectedRadioactivityUnits",
                            "InjectedMass",
                            "InjectedMassUnits",
                            "SpecificRadioactivity",
                            "SpecificRadioactivityUnits",
                            "ModeOfAdministration",
                            "TimeZero",
                            "ScanStart",
                            "InjectionStart",
                            "FrameTimesStart",
                            "FrameDuration",
                            "AcquisitionMode",
                            "ImageDecayCorrected",
                            "ImageDecayCorrectionTime",
                            "ReconMethodName",
                            "ReconMethodParameterLabels",
                            "ReconMethodParameterUnits",
                            "ReconMethodParameterValues",
                            "ReconFilterType",
                            "ReconFilterSize",
                            "AttenuationCorrection"}) {
        CAPTURE(key);
        const auto unknown = about["UnknownKeys"].get<std::vector<std::string>>();
        const bool named = std::find(unknown.begin(), unknown.end(), key) != unknown.end();
        // Where BIDS takes numbers only, an unknown key is left out.
        const bool number = key == std::string("InjectedRadioactivity");
        CHECK(about.contains(key) != (named && number));
        CHECK(named == (about.value(key, json("n/a")) == "n/a"));
    }
    CHECK_THAT(out, contains("For BIDS, frames.json lacks InjectedRadioactivity, which nobody stated"));
    CHECK(about["ScaleFactor"] == json({1, 1}));
    CHECK(about["TracerName"] == "water");
    CHECK(about["BodyPart"] == "leg");
    CHECK(about["TracerRadionuclide"] == "Rb82");
    CHECK(about["ManufacturersModelName"] == "s");
    CHECK(about["InjectionStart"].get<double>() == Approx(0.5));
    CHECK(about["FrameTimesStart"][0].get<double>() == Approx(0.5));
    CHECK(about["ImageDecayCorrected"] == true);
    CHECK(about["ImageDecayCorrectionTime"] == 0);
    CHECK(about["ReconMethodName"] == "OSEM");
    CHECK(about["ReconMethodParameterValues"] == json({2, 2}));
    for (const auto& [keys, expected] :
         {std::pair{R"({"FrameDuration": [1]})", "FrameDuration is what petlm states itself"},
          {R"({"InjectedRadioactivity": "5 MBq"})",
           "InjectedRadioactivity: expected a number, found \"5 MBq\""},
          {R"({"InjectionStart": "n/a"})", "InjectionStart: expected a number"},
          {R"({"InjectedMass": "some"})", "InjectedMass: expected a number or \"n/a\""},
          {R"({"TracerName": 5})", "TracerName: expected a text"}}) {
        CAPTURE(keys);
        write_file(scans.dir / "bids.json", keys);
        const Outcome refused =
            scans.run(PETLM_PROGRAM, "frames data/r -o g --schedule 1s --bids bids.json " + settings);
        CHECK(refused.status == 64);
        CHECK_THAT(refused.out, contains(expected));
    }
    // Without a correction for decay there are no factors; the time is still a number.
    scans.good(PETLM_PROGRAM, "frames data/r -o p --schedule 1s --backend cpu --voxel-mm 4");
    const json plain = json::parse(read_file(scans.dir / "p/frames.json"));
    CHECK(plain["ImageDecayCorrected"] == false);
    CHECK(plain["ImageDecayCorrectionTime"] == 0);
    CHECK_FALSE(plain.contains("DecayCorrectionFactor"));
}

TEST_CASE("frames of runs: without counts a mean is 0 and its error unknown, and runs may end a moment early",
          "[petlm][frames]") {
    const Scans scans("75.45");
    scans.acquire("r", "--cylinder 0,0,0,10,20,0.05 --duration-s 3 --seed 47");
    // The last datagram ends some microseconds before the second does.
    const std::string out =
        scans.good(PETLM_PROGRAM,
                   "frames data/r -o f --schedule 0.0000001s,1s,2s --region m=sphere:0,0,0,7 --replicates 3 "
                   "--backend cpu --voxel-mm 4");
    CHECK_THAT(out, contains("Frame 1: 0 to 1e-07 s, 1e-07 s recorded, 0 prompts."));
    const auto rows = curves(scans.dir / "f/curves.csv")["m"];
    REQUIRE(rows.size() == 3);
    CHECK(std::stod(rows[0].at(6)) == 0);
    CHECK(rows[0].at(7).empty());
    CHECK(std::stod(rows[2].at(7)) > 0);
    CHECK(std::stod(rows[2].at(4)) == Approx(2).epsilon(1e-3));
}

TEST_CASE("frames of runs: an interrupted series has no file of the name of a whole one", "[petlm][frames]") {
    const Scans scans("75.45");
    scans.acquire("r", "--cylinder 0,0,0,10,20,0.05 --duration-s 3 --seed 48");
    const std::string out = (scans.dir / "f").string();
    const std::vector<std::string> arguments = {"frames",       (scans.dir / "data/r").string(),
                                                "-o",           out,
                                                "--schedule",   "20x0.1s",
                                                "--region",     "m=sphere:0,0,0,7",
                                                "--backend",    "cpu",
                                                "--voxel-mm",   "1",
                                                "--iterations", "1000"};
    Process process(PETLM_PROGRAM, arguments, scans.dir / "petlm");
    REQUIRE(eventually([&] { return std::filesystem::exists(out + "/frames.nii.partial"); }));
    process.signal(SIGINT);
    CHECK(process.wait() == -SIGINT);
    for (const auto& entry : std::filesystem::directory_iterator(out))
        CHECK(entry.path().extension() == ".partial");
    // Its place is not taken.
    scans.good(PETLM_PROGRAM, "frames data/r -o f --schedule 1s --backend cpu --voxel-mm 4");
    CHECK(Series(out + "/frames.nii").frames() == 1);
    CHECK_FALSE(std::filesystem::exists(out + "/frames.nii.partial"));
}

TEST_CASE("frames of runs: a gap is said to be one, and frames beyond the records are refused",
          "[petlm][frames]") {
    const Scans scans("75.45");
    scans.acquire("r", "--cylinder 0,0,0,10,20,0.05 --duration-s 6 --seed 43");
    flood(scans);
    scans.good(PETLM_PROGRAM, "cut data/r --to-s 2 -o data/r/a.plm");
    scans.good(PETLM_PROGRAM, "cut data/r --from-s 4 -o data/r/b.plm");
    scans.good(PETLM_PROGRAM, "merge data/r/a.plm data/r/b.plm -o data/r/gap.plm");
    const std::string out = scans.good(
        PETLM_PROGRAM,
        "frames data/r/gap.plm -o f --schedule 1.5s,2x1s,1.4s --region m=sphere:0,0,0,7 " + without_gammas);
    CHECK_THAT(out, contains("Frame 2: 1.5 to 2.5 s, only 0.49"));
    CHECK_THAT(out, contains("Frame 3: 2.5 to 3.5 s: no values, as the records have a gap"));
    const Series series(scans.dir / "f/frames.nii");
    const std::string gap = series.frame(2);
    for (std::size_t at = 0; at < gap.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, gap.data() + at, sizeof value);
        REQUIRE(std::isnan(value));
    }
    const json about = json::parse(read_file(scans.dir / "f/frames.json"));
    CHECK(about["Frames"][1]["recorded_s"].get<double>() == Approx(0.5).margin(1e-3));
    CHECK(about["Frames"][2]["data"] == false);
    // What it would have been: BIDS takes numbers only.
    CHECK(about["DecayCorrectionFactor"][2].get<double>() == Approx(std::exp2(3 / 75.45)).epsilon(1e-4));
    const auto rows = curves(scans.dir / "f/curves.csv")["m"];
    REQUIRE(rows.size() == 4);
    CHECK(rows[2][6].empty());
    CHECK(std::stod(rows[1][6]) > 0);
    CHECK(rows[1][7].empty());  // the error is unknown

    const auto refused = [&](const std::string& options, const std::string& expected) {
        CAPTURE(options);
        const Outcome outcome = scans.run(PETLM_PROGRAM, "frames data/r -o g " + options + " " + settings);
        CHECK(outcome.status == 64);
        CHECK_THAT(outcome.out, contains(expected));
        CHECK(!std::filesystem::exists(scans.dir / "g"));
    };
    refused("--schedule 2x2.5s,3s", "frame 3 is from 5 to 8 s; expected frames from 0 to ");
    refused("--schedule 2x2.5s,1.1s", "frame 3 is from 5 to 6.1 s; expected frames from 0 to ");
    refused("--schedule 1s --injection-s 7", "--injection-s: expected up to ");
    refused("--schedule 1", "expected auto, or lengths of frames");
    refused("", "expected either --schedule or --gates");
    refused("--gates 4", "expected --channel");
    refused("--schedule 1s --replicates 4", "expected --region");
    refused("--schedule 1s --region m=sphere:0,0,0,7 --replicates 1", "expected 2 to 1000");
    refused("--schedule 1s --region m=sphere:90,0,0,7", "lies outside of the image");
}

}  // namespace petacq::test
