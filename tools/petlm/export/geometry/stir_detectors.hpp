// STIR's numbers of crystals, as its crystal maps and SAFIR list-mode have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/export/geometry/crystal_kinds.hpp"

namespace petacq::petlm {

/// Ring, detector in it, and layer of each crystal; all rings of all layers have as many detectors, as STIR's
/// maps demand. Rings follow z; detector 0 of a ring is the first one from -y towards +x. Where the rings of
/// a scanner differ the numbers have no such meaning: crystals fill the rings in their own order.
class StirDetectors {
  public:
    /// Throws UsageError for a scanner whose crystals cannot be numbered like this.
    StirDetectors(const config::Scanner& scanner, const CrystalKinds& kinds);

    [[nodiscard]] std::uint32_t layers() const { return layers_; }
    [[nodiscard]] std::uint32_t rings() const { return rings_; }
    [[nodiscard]] std::uint32_t in_ring() const { return in_ring_; }
    /// In the order of layers, rings and detectors.
    [[nodiscard]] const std::vector<std::uint32_t>& crystals() const { return crystals_; }
    [[nodiscard]] std::uint32_t crystal_of(std::uint32_t ring, std::uint32_t detector) const {
        return crystals_[ring * in_ring_ + detector];
    }
    [[nodiscard]] std::uint32_t detector_of(std::uint32_t crystal) const {
        return static_cast<std::uint32_t>(codes_[crystal] >> 16U & 0xFFFFU);
    }
    /// Ring in bits 0 to 7, detector from bit 16 on, layer from bit 48 on.
    [[nodiscard]] std::uint64_t code(std::uint32_t crystal) const { return codes_[crystal]; }
    /// Why projection data of STIR do not hold the lines of this scanner; empty: they do.
    [[nodiscard]] const std::string& no_template() const { return no_template_; }

  private:
    bool number_by_place(const config::Scanner& scanner);
    void number_freely(const config::Scanner& scanner);

    std::uint32_t layers_ = 1;
    std::uint32_t rings_ = 0;
    std::uint32_t in_ring_ = 0;
    std::vector<std::uint32_t> crystals_;
    std::vector<std::uint64_t> codes_;
    std::string no_template_;
};

}  // namespace petacq::petlm
