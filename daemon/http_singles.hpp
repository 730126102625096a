// The singles crystal by crystal and the energy spectra, as /singles gives them out, and the expected randoms
// of /randoms. Large: each is made only when somebody asks for it.
#pragma once

#include <string>

#include "config/scanner.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/randoms.hpp"

namespace petacq::daemon {

/// JSON; docs/http.md has it field by field. `now` and `before` (since the start, `seconds` apart) may be
/// null: then what follows from them is null.
std::string singles_document(const config::Geometry& geometry, const gpu::SinglesHistograms* now,
                             const gpu::SinglesHistograms* before, double seconds);
/// JSON, likewise; null: not known.
std::string randoms_document(const gpu::ExpectedRandoms* randoms);

}  // namespace petacq::daemon
