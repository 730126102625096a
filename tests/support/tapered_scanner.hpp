// A scanner whose modules fit only layer by layer: boxes around whole modules overlap.
#pragma once

#include <nlohmann/json.hpp>

namespace petacq::test {

/// A ring of modules whose layers widen outwards, and at each end two panels in which narrow and wide layers
/// interlock.
inline nlohmann::json tapered_description() {
    return nlohmann::json::parse(R"({
        "name": "tapered", "tick_ps": 10, "position_size": 16,
        "module_types": [
            {"name": "tapered", "layers": [
                {"y": {"count": 6, "pitch_mm": 2.7}, "z": {"count": 4, "pitch_mm": 2.7}, "length_mm": 4},
                {"y": {"count": 6, "pitch_mm": 3.2}, "z": {"count": 4, "pitch_mm": 2.7}, "length_mm": 5},
                {"y": {"count": 6, "pitch_mm": 3.2}, "z": {"count": 4, "pitch_mm": 2.7}, "length_mm": 2, "material": "GSO"},
                {"y": {"count": 6, "pitch_mm": 3.5}, "z": {"count": 4, "pitch_mm": 2.7}, "length_mm": 3, "gap_mm": 0.5}]},
            {"name": "wedge", "layers": [
                {"y": {"count": 3, "pitch_mm": 2}, "z": {"count": 2, "pitch_mm": 4}, "length_mm": 5},
                {"y": {"count": 5, "pitch_mm": 2.8}, "z": {"count": 3, "pitch_mm": 4}, "length_mm": 5}]},
            {"name": "plug", "layers": [
                {"y": {"count": 4, "pitch_mm": 3}, "z": {"count": 2, "pitch_mm": 4}, "length_mm": 5},
                {"y": {"count": 2, "pitch_mm": 2.5}, "z": {"count": 3, "pitch_mm": 4}, "length_mm": 5}]}],
        "modules": [
            {"type": "tapered", "ring": {"count": 8, "radius_mm": 20}, "along_z": {"count": 2, "pitch_mm": 11}},
            {"type": "wedge", "panel": {"radius_mm": 22, "count": 2, "pitch_mm": 20}, "along_z": {"count": 2, "pitch_mm": 36}},
            {"type": "plug", "panel": {"radius_mm": 22, "count": 1, "pitch_mm": 20}, "along_z": {"count": 2, "pitch_mm": 36}},
            {"type": "wedge", "panel": {"radius_mm": 22, "angle_deg": 180, "count": 2, "pitch_mm": 20}, "along_z": {"count": 2, "pitch_mm": 36}},
            {"type": "plug", "panel": {"radius_mm": 22, "angle_deg": 180, "count": 1, "pitch_mm": 20}, "along_z": {"count": 2, "pitch_mm": 36}}],
        "good_pairs": {"min_angle_deg": 60}})");
}

}  // namespace petacq::test
