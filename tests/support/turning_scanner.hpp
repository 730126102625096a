// A small scanner that turns.
#pragma once

#include <nlohmann/json.hpp>

namespace petacq::test {

/// Two heads of 64 crystals on opposite sides, 44 mm apart; tags of channel 1 tell its angle.
inline nlohmann::json turning_scanner() {
    return nlohmann::json::parse(R"({
        "name": "turning", "tick_ps": 10, "position_size": 32,
        "module_types": [
            {"name": "head", "layers": [
                {"y": {"count": 8, "pitch_mm": 2.5}, "z": {"count": 8, "pitch_mm": 2.5}, "length_mm": 10, "material": "LYSO"}]}],
        "modules": [
            {"type": "head", "group": "first", "panel": {"radius_mm": 22, "angle_deg": 0, "count": 1, "pitch_mm": 20}},
            {"type": "head", "group": "second", "panel": {"radius_mm": 22, "angle_deg": 180, "count": 1, "pitch_mm": 20}}],
        "good_pairs": {"between": [["first", "second"]]},
        "rotation": {"tag_channel": 1, "counts_per_turn": 3600000},
        "sources": [{"id": 0, "bdms": [0]}, {"id": 1, "bdms": [1]}]})");
}

}  // namespace petacq::test
