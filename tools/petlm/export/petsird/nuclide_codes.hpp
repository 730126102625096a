// Codes of nuclides in DICOM (PS3.16, CID 4020).
#pragma once

#include <string>
#include <string_view>

namespace petacq::petsird {

struct NuclideCode {
    std::string scheme;
    std::string value;
};

/// Empty for a nuclide that has none.
NuclideCode code_of(std::string_view nuclide);

}  // namespace petacq::petsird
