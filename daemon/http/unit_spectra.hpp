// The document with the spectra of a detector unit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "config/scanner/geometry.hpp"
#include "gpu/spectra.hpp"

namespace petacq::daemon {

/// The counts of a unit (bdm * du_count + du) in the run in progress; nullptr: not known yet. Called in the
/// thread of the server; it must not block. Empty: no spectra.
using SpectraSource = std::function<std::shared_ptr<const gpu::UnitSpectra>(std::uint32_t unit)>;

/// The unit of the path "/spectra/BDM/DU"; none if the scanner has no such unit.
std::optional<std::uint32_t> unit_of(std::string_view path, const config::Geometry& geometry);
/// JSON; "null" without counts.
std::string unit_spectra_document(const config::Geometry& geometry, std::uint32_t unit,
                                  const std::shared_ptr<const gpu::UnitSpectra>& counts);

}  // namespace petacq::daemon
