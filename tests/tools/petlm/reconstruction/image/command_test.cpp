// petlm image, run as users run it.
#include <cstdlib>

#include "tests/tools/petlm/reconstruction/image/support.hpp"
#include "tools/normalisation/normalisation.hpp"
#include "tools/petlm/reconstruction/image/pictures.hpp"
#include "tools/petlm/reconstruction/projector/backend.hpp"
#include "tools/report/cairo.hpp"

using namespace petacq;
using namespace petacq::test;

namespace {

const std::string not_for_quantification = "not for quantification";

/// Several points in succession.
gpu::RecordVector<gpu::Coincidence> points_at(const std::vector<config::Vector3>& places, std::size_t each,
                                              const config::Scanner& scanner = export_scanner()) {
    gpu::RecordVector<gpu::Coincidence> all;
    for (const auto& place : places) {
        const std::uint64_t shift = all.empty() ? 0 : all.back().time - run_start;
        for (auto c : point_source(scanner, place, each)) {
            c.time += shift;
            all.push_back(c);
        }
    }
    return all;
}

void check_near(const config::Vector3& found, const config::Vector3& expected, double mm) {
    CAPTURE(found[0], found[1], found[2], expected[0], expected[1], expected[2]);
    for (std::size_t axis = 0; axis < 3; ++axis)
        CHECK(std::abs(found[axis] - expected[axis]) < mm);
}

}  // namespace

TEST_CASE("petlm image: points are where they were, each axis with its sign", "[petlm][image]") {
    const TemporaryDirectory directory;
    const std::vector<config::Vector3> places = {{9, -6, 4}, {-12, -3, -11}, {2, 14, 13}};
    write_run(directory / "run", points_at(places, 15'000), export_scanner(), 3);
    const Outcome outcome = imaged(directory / "run", directory / "out");
    CAPTURE(outcome.out);
    REQUIRE(outcome.status == 0);
    const Volume volume(directory / "out" / "image.nii");
    // The bore of 64 mm, the length of the crystals, voxels of the smaller pitch.
    CHECK(volume.n == std::array<std::size_t, 3>{40, 40, 28});
    CHECK(volume.voxel_mm[0] == Approx(1.6));
    CHECK(volume.origin_mm[0] == Approx(-0.5 * 39 * 1.6));
    CHECK(volume.origin_mm[2] == Approx(-0.5 * 27 * 1.6));
    for (const auto& place : places) {
        check_near(volume.peak(place, 8), place, 1.6);
        check_near(volume.centre(place, 6), place, 0.5);
    }
    // All outputs carry the warning.
    const std::string text = read_file(directory / "out" / "README.txt");
    CHECK_THAT(text, contains(not_for_quantification));
    CHECK_THAT(text, contains("30000 prompts"));
    CHECK_THAT(text, contains("15000 delayeds"));
    CHECK_THAT(text, contains(" A value is the number of decays in the voxel if every photon "));
    CHECK_THAT(outcome.out, contains(not_for_quantification));
    CHECK_THAT(volume.description, contains("not quantification"));
    CHECK_THAT(run_petlm("image --help").out, contains(not_for_quantification));
    if (!report::with_cairo) {
        WARN(report::without_cairo);
        CHECK_THAT(outcome.out, contains("no PNG pictures"));
        return;
    }
    for (const char* picture : {"projections.png", "slices.png"}) {
        const std::string bytes = read_file(directory / "out" / picture);
        CHECK(bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n");
        CHECK(bytes.size() > 1000);
    }
    CHECK(names_in(directory / "out") ==
          std::set<std::string>{"README.txt", "image.json", "image.nii", "projections.png", "slices.png"});
}

TEST_CASE("petlm image: the same bytes for every number of threads and every memory", "[petlm][image]") {
    const TemporaryDirectory directory;
    const config::Vector3 middle = {9, -6, 4};
    write_run(directory / "run", cylinder_source(short_scanner(), middle, 5, 8, 40'000), short_scanner());
    const auto bytes_with = [&](const std::string& options) {
        const Outcome outcome = imaged(directory / "run", directory / "out", "--force " + options);
        CAPTURE(options, outcome.out);
        REQUIRE(outcome.status == 0);
        return std::pair(read_file(directory / "out" / "image.nii"), outcome.out);
    };
    const std::string expected = bytes_with("--threads 1").first;
    CHECK(bytes_with("--threads 2").first == expected);
    CHECK(bytes_with("--threads 5").first == expected);
    CHECK(bytes_with("--max-memory-gb 0.5").first == expected);
    CHECK(bytes_with("--iterations 4").first != expected);
    // With too little memory for all pairs, the text states the share that was used.
    const auto [few, said_of_few] = bytes_with("--max-memory-gb 0.0009 --voxel-mm 6.4");
    CHECK_THAT(said_of_few, contains("Only 1 of "));
    const Volume volume(directory / "out" / "image.nii");
    check_near(volume.centre(middle, 14), middle, 2);
}

TEST_CASE("petlm image: the time of flight is used where the run states a resolution that helps",
          "[petlm][image][tof]") {
    const TemporaryDirectory directory;
    const config::Vector3 where = {9, -6, 4};
    write_run(directory / "run", points_at({where}, 6000, short_scanner()), short_scanner());
    const auto image_with = [&](const std::string& options, const char* said) {
        const Outcome outcome = imaged(directory / "run", directory / "out", "--force " + options);
        CAPTURE(options, outcome.out);
        REQUIRE(outcome.status == 0);
        CHECK_THAT(outcome.out, contains(std::string("Time of flight: ") + said));
        const Volume volume(directory / "out" / "image.nii");
        check_near(volume.peak(where, 10), where, 1.5 * volume.voxel_mm[0]);
        return nlohmann::json::parse(read_file(directory / "out" / "image.json"));
    };
    const auto state = [&](const nlohmann::json& resolution) {
        auto run = nlohmann::json::parse(read_file(directory / "run" / "run.json"));
        run["coincidence_fwhm_ps"] = resolution;
        write_file(directory / "run" / "run.json", run.dump());
    };
    auto document = image_with("", "not used, as the run states no resolution");
    CHECK(document.at("tof_fwhm_ps").is_null());
    CHECK(document.at("psf_mm").is_null());
    document = image_with("--tof 200 --psf-mm 1.5", "used, with a resolution of 200 ps (FWHM), 30 mm");
    CHECK(document.at("tof_fwhm_ps") == 200);
    CHECK(document.at("psf_mm") == 1.5);
    state(180);
    CHECK(image_with("", "used, with a resolution of 180 ps").at("tof_fwhm_ps") == 180);
    CHECK(image_with("--tof off", "not used, as asked for").at("tof_fwhm_ps").is_null());
    image_with("--attenuation 0,0,0,10,20",
               "not used, as its resolution, 180 ps or 27 mm along a line, tells "
               "nothing about an object of 20 mm");
    state(900);
    image_with("", "not used, as its resolution, 900 ps");
    state("fast");
    image_with("", "not used, as the run states no resolution");
}

TEST_CASE("petlm image: voxels and field of view are as asked for", "[petlm][image]") {
    const TemporaryDirectory directory;
    const config::Vector3 where = {9, -6, 4};
    write_run(directory / "run", points_at({where}, 6000, short_scanner()), short_scanner());
    const auto volume_with = [&](const std::string& options) {
        const Outcome outcome = imaged(directory / "run", directory / "out", "--force " + options);
        CAPTURE(options, outcome.out);
        REQUIRE(outcome.status == 0);
        Volume volume(directory / "out" / "image.nii");
        check_near(volume.peak(where, 10), where, volume.voxel_mm[0]);
        return volume;
    };
    CHECK(volume_with("--size 32").n == std::array<std::size_t, 3>{32, 32, 11});
    CHECK(volume_with("--voxel-mm 3").n == std::array<std::size_t, 3>{21, 21, 8});
    const Volume narrow = volume_with("--fov-mm 30 --voxel-mm 1 --smooth-mm 0 --subsets 1");
    CHECK(narrow.n == std::array<std::size_t, 3>{30, 30, 22});
    CHECK(narrow.origin_mm[0] == Approx(-14.5));
    // One file of the run, beside run.json.
    CHECK(imaged(directory / "run" / "coincidences.plm", directory / "file").status == 0);
    CHECK_THAT(imaged(directory / "run", directory / "other", "--fov-mm 4").out, contains("miss the image"));
}

TEST_CASE("petlm image: without prompts it is an image of zeros", "[petlm][image]") {
    const TemporaryDirectory directory;
    const auto scanner = short_scanner();
    write_run(directory / "empty", {}, scanner);
    write_run(directory / "delayeds", of_kind(points_at({{3, 4, 5}}, 3000, scanner), gpu::Kind::delayed),
              scanner);
    save(directory / "norm.h5", scanner.geometry, normalisation::Normalisation::even(scanner.geometry));
    const std::string corrected =
        "--normalisation" + quoted(directory / "norm.h5") + "--attenuation 0,0,0,8,20";
    for (const char* run : {"empty", "delayeds"}) {
        for (const std::string& options : {std::string(), corrected}) {
            const Outcome outcome = imaged(directory / run, directory / "out", "--force " + options);
            CAPTURE(run, options, outcome.out);
            REQUIRE(outcome.status == 0);
            CHECK_THAT(outcome.out, contains("0 prompts"));
            const Volume volume(directory / "out/image.nii");
            CHECK(std::all_of(volume.values.begin(), volume.values.end(), [](float v) { return v == 0; }));
        }
    }
}

TEST_CASE("petlm image: what is not known and problems of the run are reported", "[petlm][image]") {
    const TemporaryDirectory directory;
    write_run(directory / "run", points_at({{9, -6, 4}}, 3000, short_scanner()), short_scanner(), 1,
              {{"min_module_difference", 1}});
    const auto text_of = [&](const std::string& options = "") {
        const Outcome outcome = imaged(directory / "run", directory / "out", "--force " + options);
        CAPTURE(outcome.out);
        REQUIRE(outcome.status == 0);
        std::string text = read_file(directory / "out" / "README.txt");
        for (const char* doubt : {"does not tell", "The state of this run", "not closed"})
            CHECK((text.find(doubt) == std::string::npos) == (outcome.out.find(doubt) == std::string::npos));
        return text;
    };
    const std::string all_well = text_of("--max-memory-gb 0.5");
    CHECK_THAT(all_well, contains("Memory allowed: 0.5 GB (--max-memory-gb), room for 7812500 pairs"));
    for (const char* doubt : {"does not tell", "The state of this run", "not closed"})
        CHECK(all_well.find(doubt) == std::string::npos);
    auto run = nlohmann::json::parse(read_file(directory / "run" / "run.json"));
    run["ledger"] = {
        {"pairs", {{"written", 3000}}}};  // of a part of a run: nobody can tell whether it closes
    write_file(directory / "run" / "run.json", run.dump());
    CHECK(text_of().find("not closed") == std::string::npos);
    run["state"] = "failed";
    run["stop_reason"] = "the disk is full \u001b[2J";
    run["ledger"] = {{"closed", false}};
    run.erase("configuration");
    write_file(directory / "run" / "run.json", run.dump());
    const std::string text = text_of();
    CHECK_THAT(
        text,
        contains("The state of this run is \"failed\", not complete: \"the disk is full \\u001b[2J\"."));
    CHECK_THAT(text, contains("The ledger of this run is not closed."));
    CHECK_THAT(text, contains("The file does not tell: min_module_difference, max_ring_difference, "));
}

TEST_CASE("petlm image: nibabel reads the values that were written", "[petlm][image]") {
    if (std::system("python3 -c 'import nibabel' 2>/dev/null") != 0) {  // NOLINT(cert-env33-c)
        WARN("skipped: python3 has no nibabel (pip install nibabel)");
        return;
    }
    const TemporaryDirectory directory;
    const config::Vector3 where = {9, -6, 4};
    write_run(directory / "run", points_at({where}, 6000));
    REQUIRE(imaged(directory / "run", directory / "out").status == 0);
    const Volume volume(directory / "out" / "image.nii");
    const auto peak = volume.peak(where, 10);
    std::ofstream(directory / "check.py") << R"(
import sys, nibabel, numpy
image = nibabel.load(sys.argv[1])
assert type(image) is nibabel.Nifti1Image and image.get_data_dtype() == numpy.float32
assert image.header.get_xyzt_units()[0] == "mm"
assert numpy.array_equal(image.get_qform(), image.get_sform()) and image.header["sform_code"] == 1
assert b"not quantification" in image.header["descrip"].tobytes()
values = image.get_fdata()
at = numpy.unravel_index(values.argmax(), values.shape)
print(*image.shape, *nibabel.affines.apply_affine(image.affine, at))
)";
    const std::string command = "python3" + quoted(directory / "check.py") +
                                quoted(directory / "out" / "image.nii") + ">" + quoted(directory / "said");
    REQUIRE(std::system(command.c_str()) == 0);  // NOLINT(cert-env33-c)
    std::istringstream said(read_file(directory / "said"));
    std::array<std::size_t, 3> shape{};
    config::Vector3 found{};
    said >> shape[0] >> shape[1] >> shape[2] >> found[0] >> found[1] >> found[2];
    CHECK(shape == volume.n);
    check_near(found, peak, 1e-4);
}

TEST_CASE("petlm image: unusable input is refused, and nothing is left behind", "[petlm][image]") {
    const TemporaryDirectory directory;
    const auto records = points_at({{3, 4, 5}}, 3000, short_scanner());
    write_run(directory / "run", records, short_scanner());
    write_file(directory / "foreign", "P6 this is a picture of a mouse");
    std::filesystem::create_directory(directory / "nothing");
    write_plm(directory / "alone.plm", records, file_description(short_scanner()));
    std::filesystem::copy(directory / "run", directory / "cut");
    std::filesystem::resize_file(directory / "cut" / "coincidences.plm", 50'000);
    write_run(directory / "wrong", {[] {
                  gpu::Coincidence c;
                  c.time = run_start + 5;
                  c.crystal_b = 60'000;
                  return c;
              }()});

    const auto refused = [&](const std::string& target, const std::string& options, int status,
                             const std::string& why) {
        const Outcome outcome = imaged(directory / target, directory / "out", options);
        CAPTURE(target, options, outcome.out);
        CHECK(outcome.status == status);
        CHECK_THAT(outcome.out, contains(why));
        CHECK_FALSE(std::filesystem::exists(directory / "out"));
    };
    refused("nothing", "", 65, "without coincidences");
    refused("foreign", "", 65, "foreign");
    refused("missing", "", 74, "missing");
    refused("alone.plm", "", 64, "--scanner");
    refused("cut", "", 1, "recover");
    refused("wrong", "", 1, "crystal");
    for (const char* bad : {"--voxel-mm 0",
                            "--voxel-mm -1",
                            "--voxel-mm 100",
                            "--voxel-mm 0.001",
                            "--voxel-mm nan",
                            "--size 0",
                            "--size 5000",
                            "--size 32 --voxel-mm 2",
                            "--fov-mm 65",
                            "--fov-mm 0",
                            "--iterations 0",
                            "--subsets 0",
                            "--subsets 1001",
                            "--smooth-mm -1",
                            "--psf-mm 0",
                            "--psf-mm 101",
                            "--tof on",
                            "--tof 0",
                            "--tof -100",
                            "--tof nan",
                            "--tof 200ps",
                            "--max 0",
                            "--max -1",
                            "--max nan",
                            "--max inf",
                            "--depth-mm 13",
                            "--backend gpu",
                            "--threads 5000",
                            "--max-memory-gb 0",
                            "--max-memory-gb 0.0001",
                            "--max-memory-gb inf",
                            "--sideways"}) {
        const std::string options = bad;
        refused("run", options, 64, options.substr(0, options.find(' ')));
    }
    // Options are checked before the records are read: these are damaged.
    std::string damaged = read_file(directory / "run" / "coincidences.plm");
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 4);
    std::filesystem::copy(directory / "run", directory / "damaged");
    write_file(directory / "damaged" / "coincidences.plm", damaged);
    refused("damaged", "", 1, "coincidences.plm");
    refused("damaged", "--size 512 --max-memory-gb 1", 64, "--max-memory-gb");
    if (image::cuda_projectors().unusable) {
        const Outcome outcome = run_petlm("image" + quoted(directory / "damaged") + "--output" +
                                          quoted(directory / "out") + "--backend cuda");
        CHECK(outcome.status == 78);
        CHECK_THAT(outcome.out, contains("'cuda' cannot be used"));
        CHECK_FALSE(std::filesystem::exists(directory / "out"));
    }
    // An existing file.
    std::filesystem::create_directory(directory / "full");
    write_file(directory / "full" / "image.nii", "mine");
    CHECK(imaged(directory / "run", directory / "full").status == 64);
    CHECK(read_file(directory / "full" / "image.nii") == "mine");
    CHECK(names_in(directory / "full") == std::set<std::string>{"image.nii"});
    CHECK(imaged(directory / "run", directory / "full", "--force").status == 0);
    CHECK(read_file(directory / "full" / "image.nii") != "mine");
    CHECK(imaged(directory / "run", directory / "foreign").status == 64);
    // A single file needs the scanner.
    write_file(directory / "scanner.json", config::to_json(short_scanner()).dump());
    CHECK(
        imaged(directory / "alone.plm", directory / "alone", "--scanner" + quoted(directory / "scanner.json"))
            .status == 0);
}
