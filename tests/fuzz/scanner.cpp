// The scanner description.
#include "config/scanner/scanner.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/base/error.hpp"
#include "config/base/json_file.hpp"
#include "tests/fuzz/fuzz.hpp"

using namespace petacq;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    try {
        const auto scanner = config::scanner_from_json(config::parse_json(fuzz::text_of(data, size)));
        const config::Geometry& g = scanner.geometry;
        fuzz::require(g.bdm_count <= 256 && g.du_count <= 16 && g.position_size <= 256,
                      "within the wire format");
        fuzz::require(g.crystal_count() == std::uint64_t{g.bdm_count} * g.du_count * g.crystals_per_du(),
                      "every local crystal has a number");
        fuzz::require(g.crystal(g.bdm_count - 1, g.du_count - 1, g.crystals_per_du() - 1) < g.crystal_count(),
                      "the last crystal is in range");
        (void)config::crystal_place(scanner, g.crystal_count() - 1);
        fuzz::require(
            config::to_json(config::scanner_from_json(config::to_json(scanner))) == config::to_json(scanner),
            "a description that is written out reads back the same");
    } catch (const config::Error&) {
    }
    return 0;
}
