// Which crystals stand in one line along the axis.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner.hpp"

namespace petacq::corrections {

/// The crystals of a column differ in z alone: seen along the axis, the lines between two columns are one.
class AxialColumns {
  public:
    /// `places`: [crystal]
    AxialColumns(const config::Scanner& scanner, const std::vector<config::CrystalPlace>& places);

    [[nodiscard]] std::uint32_t count() const { return count_; }
    [[nodiscard]] std::uint32_t of(std::uint32_t crystal) const {
        return of_crystal_.empty() ? crystal % count_ : of_crystal_[crystal];
    }

  private:
    std::uint32_t count_;
    std::vector<std::uint32_t> of_crystal_;  ///< of the long form
};

}  // namespace petacq::corrections
