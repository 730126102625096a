// The figures beside those of the standard, on a scanner of its own, against the truth of the simulator.
#include "tests/end_to_end/nema/simulated.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// Ten sides of 18 crystals, four rings of blocks.
json pentagon() {
    json sources = json::array();
    for (int bdm = 0; bdm < 20; ++bdm)
        sources.push_back({{"id", bdm}, {"bdms", {bdm}}});
    return {{"name", "pentagon"},
            {"tick_ps", 12.5},
            {"geometry",
             {{"channels", 5},
              {"modules", {{"y", 2}, {"z", 2}}},
              {"blocks", {{"y", 2}, {"z", 2}}},
              {"crystals", {{"y", 9}, {"z", 9}}},
              {"bdm_count", 20},
              {"du_count", 4},
              {"position_size", 128}}},
            {"dimensions",
             {{"ring_radius_mm", 36},
              {"crystal_pitch_y_mm", 1.12},
              {"crystal_pitch_z_mm", 1.12},
              {"crystal_length_mm", 11},
              {"block_gap_y_mm", 0.2},
              {"block_gap_z_mm", 0.3},
              {"module_gap_z_mm", 0.7}}},
            {"sources", sources}};
}
}  // namespace

TEST_CASE("experiment", "[e2e][nemax]") {
    Simulated simulated;
    simulated.use(pentagon());
    const auto scanner = simulated.scanner();
    const auto pairs = simulated.run("low", {"--line", "10,0,-30,10,0,30,0.5", "--object", "0,0,0,12.5,70",
                                             "--duration-s", "4", "--seed", "5"});
    const auto in = in_phantom(scanner, pairs);
    for (const auto& [o, p] : in.projections) {
        std::printf("origin %d total %g\n", (int)o, in.counts.at(o));
        for (int i = 60; i <= 140; ++i)
            std::printf("%g ", p[i]);
        std::printf("\n");
    }
    std::printf("background %g\n", background_of(in));
    auto r = simulated.nema("scatter", {"low"}, {});
    std::printf("%s\n", r["figures"].dump(1).c_str());
}
