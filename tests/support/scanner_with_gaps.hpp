// A small scanner whose BDM numbers have gaps.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace petacq::test {

/// The BDMs 3, 5, ..., 25: each is one module of a ring of 12. Each of four sources, whose ids are no
/// positions, carries three of them.
inline nlohmann::json description_with_gaps() {
    nlohmann::json document = nlohmann::json::parse(R"({
        "name": "gaps", "tick_ps": 10, "position_size": 16,
        "module_types": [{"name": "m", "layers": [
            {"y": {"count": 4, "pitch_mm": 2.5}, "z": {"count": 4, "pitch_mm": 2.5}, "length_mm": 12}]}],
        "modules": [{"type": "m", "ring": {"count": 12, "radius_mm": 20}}]})");
    std::vector<std::vector<std::uint32_t>> bdms(4);
    for (std::uint32_t m = 0; m < 12; ++m) {
        bdms[m % 4].push_back(3 + 2 * m);
        document["channel_map"]["units"].push_back(
            {{"bdm", 3 + 2 * m}, {"du", 0}, {"module", m}, {"unit", 0}});
    }
    for (std::uint32_t s = 0; s < 4; ++s)
        document["sources"].push_back({{"id", 70 + s}, {"bdms", bdms[s]}});
    return document;
}

}  // namespace petacq::test
