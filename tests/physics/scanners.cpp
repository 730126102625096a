#include "tests/physics/scanners.hpp"

#include <nlohmann/json.hpp>

namespace petacq::test {

namespace {

/// All modules are those of one board.
nlohmann::json with_source(nlohmann::json scanner) {
    nlohmann::json bdms = nlohmann::json::array();
    for (unsigned bdm = 0; bdm < scanner["geometry"]["bdm_count"]; ++bdm)
        bdms.push_back(bdm);
    scanner["sources"] = {{{"id", 0}, {"bdms", bdms}}};
    return scanner;
}

}  // namespace

nlohmann::json ten_modules() {
    return with_source({{"name", "ten modules"},
                        {"tick_ps", 25},
                        {"geometry",
                         {{"channels", 10},
                          {"modules", {{"y", 1}, {"z", 2}}},
                          {"blocks", {{"y", 2}, {"z", 2}}},
                          {"crystals", {{"y", 6}, {"z", 6}}},
                          {"bdm_count", 20},
                          {"du_count", 4},
                          {"position_size", 72}}},
                        {"dimensions",
                         {{"ring_radius_mm", 41},
                          {"crystal_pitch_y_mm", 2.0},
                          {"crystal_pitch_z_mm", 2.5},
                          {"crystal_length_mm", 15},
                          {"block_gap_y_mm", 0.4},
                          {"block_gap_z_mm", 0.4},
                          {"module_gap_z_mm", 1}}}});
}

nlohmann::json twelve_modules(double crystal_length_mm) {
    return with_source({{"name", "twelve modules"},
                        {"tick_ps", 35},
                        {"geometry",
                         {{"channels", 12},
                          {"modules", {{"y", 1}, {"z", 2}}},
                          {"blocks", {{"y", 2}, {"z", 1}}},
                          {"crystals", {{"y", 6}, {"z", 10}}},
                          {"bdm_count", 24},
                          {"du_count", 2},
                          {"position_size", 80}}},
                        {"dimensions",
                         {{"ring_radius_mm", 44},
                          {"crystal_pitch_y_mm", 1.8},
                          {"crystal_pitch_z_mm", 1.8},
                          {"crystal_length_mm", crystal_length_mm},
                          {"block_gap_y_mm", 0.3},
                          {"module_gap_z_mm", 0.8}}}});
}

}  // namespace petacq::test
