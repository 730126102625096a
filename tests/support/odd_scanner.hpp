// A scanner of the long form in which everything is uneven.
#pragma once

#include <nlohmann/json.hpp>

#include "config/scanner/arrangement.hpp"
#include "config/scanner/scanner.hpp"

namespace petacq::test {

/// Rings of modules of two layers with gaps, unequal crystals and different materials, of which each layer is
/// a unit; a module that closes the bore at one end; a tilted module outside the rings. Its BDMs hold parts
/// of several modules, and two units of the last one do not exist.
inline nlohmann::json odd_description() {
    return nlohmann::json::parse(R"({
        "name": "odd", "tick_ps": 10, "position_size": 32,
        "module_types": [
            {"name": "phoswich", "time_resolution_ps": 800, "energy_resolution": 0.1, "layers": [
                {"y": {"sizes_mm": [1, 2, 3], "gaps": [{"after": 1, "mm": 0.5}]}, "z": {"count": 4, "pitch_mm": 2.5, "size_mm": 2.2}, "length_mm": 5},
                {"y": {"count": 2, "pitch_mm": 3.5, "size_mm": 3}, "z": {"sizes_mm": [2, 4, 3]}, "length_mm": 7, "gap_mm": 1, "material": "GSO"}],
             "units": [{"layers": [0, 0]}, {"layers": [1, 1]}]},
            {"name": "cap", "layers": [{"y": {"count": 6, "pitch_mm": 3}, "z": {"count": 5, "pitch_mm": 3}, "length_mm": 10, "material": "LSO", "attenuation_per_cm": 0.6}]}],
        "modules": [
            {"type": "phoswich", "ring": {"count": 7, "radius_mm": 14}, "along_z": {"count": 2, "pitch_mm": 11}},
            {"type": "cap", "place": {"front_mm": [0.5, -1, 25], "outward": [0, 0, 1], "turn_deg": 20}},
            {"type": "cap", "place": {"front_mm": [40, 12, 5], "outward": [1, 0.3, 0.4], "turn_deg": -35}}],
        "channel_map": {"units_per_bdm": 4}})");
}

inline config::Scanner odd_scanner() {
    return config::scanner_from_json(odd_description());
}

}  // namespace petacq::test
