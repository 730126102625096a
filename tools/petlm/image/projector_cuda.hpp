// The projector on a GPU: rows are traced by a kernel, products are cuSPARSE's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/image/projector.hpp"

namespace petacq::image {

/// Why it cannot be used here, in words for a message; empty when it can.
std::optional<std::string> cuda_projector_unusable_reason();

/// On the first device. A matrix is held as CSR, and its transpose as CSR, so that neither product adds in an
/// order that changes. Its budget is 85 % of what is free on the device, or `most_budget` if that is less.
/// Throws as Projector does.
std::unique_ptr<Projector> make_cuda_projector(const Grid& grid, const std::vector<Point>& points,
                                               std::uint64_t most_budget = UINT64_MAX);

}  // namespace petacq::image
