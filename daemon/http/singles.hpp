// The documents /singles (singles by crystal, energy spectra) and /randoms (expected randoms). They are large
// and made only on request.
#pragma once

#include <string>

#include "config/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/randoms.hpp"

namespace petacq::daemon {

/// JSON; docs/reference/http.md has it field by field. `now` and `before` (since the start, `seconds` apart)
/// may be null; values that depend on them are then null.
std::string singles_document(const config::Geometry& geometry, const gpu::SinglesHistograms* now,
                             const gpu::SinglesHistograms* before, double seconds);
/// JSON; null if the randoms are unknown.
std::string randoms_document(const gpu::ExpectedRandoms* randoms);

}  // namespace petacq::daemon
