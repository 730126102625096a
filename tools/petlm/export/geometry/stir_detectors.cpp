#include "tools/petlm/export/geometry/stir_detectors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

#include "config/scanner/arrangement.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint32_t max_layers = 16;
constexpr std::uint32_t max_rings = 256;
constexpr std::uint32_t max_in_ring = 65536;

void check_ring(const config::Scanner& scanner) {
    const auto& g = scanner.geometry;
    const auto refuse = [&](std::uint32_t count, const char* what) {
        throw UsageError(fmt::format("scanner {} has {} {}", scanner.name, count, what));
    };
    if (g.rings() > max_rings)
        refuse(g.rings(), "rings; stir (SAFIR list-mode) numbers rings with 8 bits, at most 256");
    if (g.crystals_in_ring() > max_in_ring)
        refuse(g.crystals_in_ring(), "crystals in a ring; stir (SAFIR list-mode) numbers them with 16 bits");
    if (g.crystals_in_ring() % 2 != 0)
        refuse(g.crystals_in_ring(), "crystals in a ring; STIR's projection data take an even number");
}

/// From -y towards +x, radians from 0 to 2 pi.
double angle_of(const config::Scanner& scanner, std::uint32_t crystal) {
    const auto front = config::crystal_place(scanner, crystal).front_centre_mm;
    const double angle = std::atan2(front[0], -front[1]);
    return angle < -1e-9 ? angle + 2 * std::numbers::pi : angle;
}

}  // namespace

StirDetectors::StirDetectors(const config::Scanner& scanner, const CrystalKinds& kinds) {
    if (scanner.is_ring()) check_ring(scanner);
    if (!number_by_place(scanner)) {
        number_freely(scanner);
        no_template_ = "its rings do not all have as many crystals";
    } else if (layers_ > 1) {
        no_template_ = fmt::format("it has {} layers of crystals", layers_);
    } else if (kinds.kinds().size() > 1) {
        no_template_ = fmt::format("it has crystals of {} kinds", kinds.kinds().size());
    } else if (in_ring_ % 2 != 0) {
        no_template_ = fmt::format("it has {} crystals in a ring, an odd number", in_ring_);
    }
    codes_.resize(crystals_.size());
    for (std::uint32_t i = 0; i < crystals_.size(); ++i) {
        const std::uint64_t layer = i / (rings_ * in_ring_);
        codes_[crystals_[i]] = i / in_ring_ % rings_ | std::uint64_t{i % in_ring_} << 16U | layer << 48U;
    }
}

bool StirDetectors::number_by_place(const config::Scanner& scanner) {
    const config::Geometry& g = scanner.geometry;
    // [layer, ring]: rings are counted over all layers, and need not be in each of them.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<double, std::uint32_t>>> rings;
    std::map<std::uint32_t, std::uint32_t> rings_of_layer;
    for (std::uint32_t crystal = 0; crystal < g.crystal_count(); ++crystal) {
        const std::pair<std::uint32_t, std::uint32_t> at =
            g.is_ring()
                ? std::pair(0U, crystal / g.crystals_in_ring())
                : std::pair(scanner.arrangement->address(crystal).layer, g.pairs->crystals[crystal].ring);
        const auto [ring, fresh] = rings.try_emplace(at);
        if (fresh) ++rings_of_layer[at.first];
        ring->second.emplace_back(angle_of(scanner, crystal), crystal);
    }
    layers_ = static_cast<std::uint32_t>(rings_of_layer.size());
    rings_ = rings_of_layer.begin()->second;
    in_ring_ = static_cast<std::uint32_t>(rings.begin()->second.size());
    if (layers_ > max_layers || rings_ > max_rings || in_ring_ > max_in_ring) return false;
    for (const auto& [layer, count] : rings_of_layer)
        if (count != rings_) return false;
    crystals_.clear();
    for (auto& [at, ring] : rings) {
        if (ring.size() != in_ring_) return false;
        std::sort(ring.begin(), ring.end());
        for (const auto& [angle, crystal] : ring)
            crystals_.push_back(crystal);
    }
    return true;
}

void StirDetectors::number_freely(const config::Scanner& scanner) {
    const std::uint32_t count = scanner.geometry.crystal_count();
    layers_ = 1;
    rings_ = 1;
    while (rings_ <= max_rings && (count % rings_ != 0 || count / rings_ > max_in_ring))
        ++rings_;
    if (rings_ > max_rings) {
        throw UsageError(
            fmt::format("scanner {} has {} crystals; stir (SAFIR list-mode) numbers those of a scanner "
                        "without equal rings "
                        "by at most {} times {}",
                        scanner.name, count, max_rings, max_in_ring));
    }
    in_ring_ = count / rings_;
    crystals_.resize(count);
    std::iota(crystals_.begin(), crystals_.end(), 0U);
}

}  // namespace petacq::petlm
