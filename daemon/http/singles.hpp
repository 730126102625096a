// The documents /singles (singles by crystal, energy spectra) and /randoms (expected randoms). They are large
// and made only on request.
#pragma once

#include <string>

#include "config/scanner/scanner.hpp"
#include "daemon/seconds/second.hpp"
#include "gpu/pipeline.hpp"

namespace petacq::daemon {

/// JSON; docs/reference/http.md has it field by field. `now` and `before` (since the start, `seconds` apart)
/// may be null; values that depend on them are then null.
std::string singles_document(const config::Geometry& geometry, const gpu::SinglesHistograms* now,
                             const gpu::SinglesHistograms* before, double seconds);
/// The expected randoms of a second; null without one.
std::string randoms_document(const Second* second);

}  // namespace petacq::daemon
