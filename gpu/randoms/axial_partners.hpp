// Where along the axis the partners of singles lie, and which of them are near enough to make a good pair.
//
// With a condition on rings only some of the pairs of partners can become prompts. Known are, for each zone
// of rings, the singles with a partner and those among them whose partner makes a good pair. A pair with one
// single at z and the other at z' comes from the middle, (z + z') / 2, along a line of the slope |z - z'|.
// The pairs are taken as a product of the activity there and of how often such a line is found; both are
// fitted to what is known, by expectation maximisation.
#pragma once

#include <vector>

#include "gpu/randoms/pair_cells.hpp"

namespace petacq::gpu {

/// [zone a * zones + zone b]
struct AxialPartners {
    std::vector<double> partners;  ///< part of the partners of singles in a that lie in b
    std::vector<double> good;      ///< part of these pairs that are good
};

/// `paired`: [zone] singles with a partner; `good`: those that make a good pair with it, at most as many.
AxialPartners find_axial_partners(const PairCells& cells, const std::vector<double>& paired,
                                  const std::vector<double>& good);

}  // namespace petacq::gpu
