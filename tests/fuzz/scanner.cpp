// The scanner description.
#include "config/scanner/scanner.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "config/base/schemas.hpp"
#include "tests/fuzz/base/json_target.hpp"

using namespace petacq;

std::string_view fuzz::schema_of_target() {
    return config::scanner_schema_text();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto scanner = config::scanner_from_json(config::parse_json(fuzz::text_of(data, size)));
        fuzz::accept();
        const config::Geometry& g = scanner.geometry;
        fuzz::require(g.bdm_count <= config::max_bdm_count(scanner.frame_version) && g.du_count <= 16 &&
                          g.position_size <= 256,
                      "within the wire format");
        std::uint64_t crystals = 0;
        for (std::uint32_t unit = 0; unit < g.unit_count(); ++unit) {
            const std::uint32_t count = g.crystals_of_unit(unit);
            crystals += count;
            fuzz::require(count <= g.crystals_per_du(), "no unit has more crystals than tables hold");
            fuzz::require(
                count == 0 || g.crystal(unit / g.du_count, unit % g.du_count, count - 1) < g.crystal_count(),
                "the last crystal of a unit is in range");
        }
        fuzz::require(g.crystal_count() == crystals, "every local crystal has a number");
        (void)config::crystal_place(scanner, g.crystal_count() - 1);
        fuzz::require(
            config::to_json(config::scanner_from_json(config::to_json(scanner))) == config::to_json(scanner),
            "a description that is written out reads back the same");
    } catch (const config::Error&) {
    }
    return 0;
}
