// The energy resolution that petlm image finds, against that of the simulator.
#include "tests/end_to_end/nema/simulated.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// Ten sides of 3 x 8 crystals: few lines, so that an image takes little time.
json coarse_ring() {
    return {{"name", "coarse"},
            {"tick_ps", 25},
            {"geometry",
             {{"channels", 10},
              {"modules", {{"y", 1}, {"z", 1}}},
              {"blocks", {{"y", 1}, {"z", 2}}},
              {"crystals", {{"y", 3}, {"z", 4}}},
              {"bdm_count", 10},
              {"du_count", 2},
              {"position_size", 64}}},
            {"dimensions",
             {{"ring_radius_mm", 30},
              {"crystal_pitch_y_mm", 5},
              {"crystal_pitch_z_mm", 4},
              {"crystal_length_mm", 12},
              {"block_gap_z_mm", 0.4}}},
            {"sources", {{{"id", 0}, {"bdms", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}}}}};
}

double resolution_in_image(const std::string& nuclide, const std::string& mbq) {
    Simulated simulated;
    simulated.use(coarse_ring());
    const auto source = simulated.directory() / "source.json";
    write_file(source, R"({"sources": [{"type": "cylinder", "centre_mm": [2, -1, 0], "radius_mm": 8,
                           "length_mm": 20, "activity_MBq": )" +
                           mbq + R"(, "nuclide": ")" + nuclide + R"("}]})");
    (void)simulated.run("r", {"--source", source.string(), "--efficiency", "1", "--scatter", "0", "--object",
                              "2,-1,0,12,24", "--energy-resolution", "0.15", "--duration-s", "1"});
    const auto image = simulated.directory() / "image";
    const Outcome made =
        run_program(PETLM_PROGRAM, {"image", simulated.path("r").string(), "-o", image.string(), "--voxel-mm",
                                    "4", "--iterations", "1", "--attenuation", "2,-1,0,12,24"});
    INFO(made.out << made.err);
    REQUIRE(made.status == 0);
    return json::parse(read_file(image / "image.json"))
        .at("/corrections/scatter/energy_resolution"_json_pointer);
}

}  // namespace

TEST_CASE("petlm image: the energy resolution is that of the scanner, whatever gammas the nuclide has",
          "[e2e][nema][gammas][.long]") {
    const auto [nuclide, mbq] = GENERATE(std::pair("F-18", "0.3"), std::pair("I-124", "1"),
                                         std::pair("Sc-44", "0.3"), std::pair("Na-22", "0.3"));
    CAPTURE(nuclide);
    CHECK(resolution_in_image(nuclide, mbq) == Approx(0.15).epsilon(0.02));
}
