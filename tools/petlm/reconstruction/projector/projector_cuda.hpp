// The projector on a GPU: a kernel traces the rows, cuSPARSE computes the products.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/petlm/reconstruction/projector/projector.hpp"

namespace petacq::image {

/// The reason why it cannot be used here, for a message; none if it can.
std::optional<std::string> cuda_projector_unusable_reason();

/// A projector on the first device. It stores each matrix and its transpose as CSR, so that both products add
/// in a fixed order. Its budget is 85 % of the free memory of the device, but at most `max_budget`. Throws
/// as Projector does.
std::unique_ptr<Projector> make_cuda_projector(const Grid& grid, const config::LineGeometry& geometry,
                                               std::uint64_t max_budget = UINT64_MAX);

}  // namespace petacq::image
