// Descriptions of the largest scanners: one has as many modules as are allowed, the other 4.25 M crystals.
#pragma once

#include <nlohmann/json.hpp>

namespace petacq::test {

/// The description of 65,536 modules of one crystal each: 256 rings of 256.
inline nlohmann::json largest_description() {
    return nlohmann::json::parse(R"({
        "name": "largest", "tick_ps": 10, "position_size": 16, "frame_version": 2,
        "module_types": [{"name": "m", "layers": [
            {"y": {"count": 1, "pitch_mm": 4}, "z": {"count": 1, "pitch_mm": 4}, "length_mm": 20, "material": "LYSO"}]}],
        "modules": [{"type": "m", "ring": {"count": 256, "radius_mm": 168}, "along_z": {"count": 256, "pitch_mm": 4.1}}],
        "good_pairs": {"min_angle_deg": 45}})");
}

/// The description of 4,250,000 crystals in 1,700 modules: 20 rings of 85.
inline nlohmann::json description_of_most_crystals() {
    return nlohmann::json::parse(R"({
        "name": "most crystals", "tick_ps": 10, "position_size": 64, "frame_version": 2,
        "module_types": [{"name": "m", "layers": [
            {"y": {"count": 50, "pitch_mm": 1}, "z": {"count": 50, "pitch_mm": 1}, "length_mm": 20, "material": "LYSO"}]}],
        "modules": [{"type": "m", "ring": {"count": 85, "radius_mm": 700}, "along_z": {"count": 20, "pitch_mm": 50.5}}],
        "good_pairs": {"min_angle_deg": 45}})");
}

}  // namespace petacq::test
