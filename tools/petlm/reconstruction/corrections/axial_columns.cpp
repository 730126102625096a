#include "tools/petlm/reconstruction/corrections/axial_columns.hpp"

#include <array>
#include <cmath>
#include <map>

namespace petacq::corrections {

AxialColumns::AxialColumns(const config::Scanner& scanner, const std::vector<config::CrystalPlace>& places)
    : count_(0) {
    if (scanner.geometry.is_ring()) {
        count_ = scanner.geometry.crystals_in_ring();
        return;
    }
    std::map<std::array<std::int64_t, 2>, std::uint32_t> columns;  // [x, y in micrometres]
    of_crystal_.reserve(places.size());
    for (const config::CrystalPlace& place : places) {
        const auto um = [&](std::size_t axis) { return std::llround(1000 * place.front_centre_mm[axis]); };
        const auto next = static_cast<std::uint32_t>(columns.size());
        of_crystal_.push_back(columns.try_emplace({um(0), um(1)}, next).first->second);
    }
    count_ = static_cast<std::uint32_t>(columns.size());
}

}  // namespace petacq::corrections
