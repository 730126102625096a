// How many lines between crystals a bin of a sinogram has.
#pragma once

#include <vector>

#include "config/geometry.hpp"
#include "daemon/sinogram/line_bins.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::sinogram {

/// [bin of LineBins] the good pairs of crystals. In a ring those of crystals of one ring, since all its rings
/// are alike. Otherwise the pairs of all crystals: one by one, or, if they are more than `max_pairs`, a
/// sample of about as many from all pairs of columns, always the same.
std::vector<double> lines_per_bin(const LineBins& lines, const config::Geometry& geometry,
                                  const gpu::PairRule& rule, double max_pairs = 2e7);

}  // namespace petacq::sinogram
