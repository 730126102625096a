// A scanner for the figures of petlm nema.
#pragma once

#include <nlohmann/json.hpp>

namespace petacq::test {

/// Ten sides of 18 crystals, six rings of blocks.
inline nlohmann::json decagon() {
    nlohmann::json sources = nlohmann::json::array();
    for (int bdm = 0; bdm < 30; ++bdm)
        sources.push_back({{"id", bdm}, {"bdms", {bdm}}});
    return {{"name", "decagon"},
            {"tick_ps", 12.5},
            {"geometry",
             {{"channels", 5},
              {"modules", {{"y", 2}, {"z", 3}}},
              {"blocks", {{"y", 2}, {"z", 2}}},
              {"crystals", {{"y", 9}, {"z", 9}}},
              {"bdm_count", 30},
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

}  // namespace petacq::test
