// The order of the hits of a chunk: by source, then by raw time.
#pragma once

#include <cstdint>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "tools/petsim/simulation/base/chunk.hpp"
#include "tools/petsim/simulation/base/options.hpp"

namespace petacq::sim {

class HitOrder {
  public:
    HitOrder(const Options& options, const config::Scanner& scanner);
    /// Moves the unsorted hits of the chunk to their places.
    void sort(Chunk& chunk) const;

  private:
    std::vector<std::uint16_t> source_of_unit_;
    std::uint32_t sources_ = 0;
};

}  // namespace petacq::sim
