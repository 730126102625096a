// What a run has and a PETSIRD file of it lacks.
#pragma once

#include <string>
#include <vector>

#include "tools/petlm/export/petsird/bins.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petsird {

struct RunFacts {
    const petlm::ExportSource& source;
    const config::Scanner& scanner;
    const Bins& bins;
    const PetsirdOptions& options;
    bool singles = false;  ///< it has single photons one by one
    bool triples = false;
    bool normalised = false;
};

/// A phrase each.
std::vector<std::string> not_held(const RunFacts& facts);

}  // namespace petacq::petsird
