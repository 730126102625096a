// As many modules as a scanner may have.
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

}  // namespace petacq::test
