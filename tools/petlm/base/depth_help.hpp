// What --help says of the depth of interaction: docs/reference/geometry.md explains it.
#pragma once

namespace petacq::petlm {

inline constexpr const char* depth_help =
    "Where lines end, in mm behind the front faces of the crystals: the mean depth at which photons "
    "interact. Leave it out for a real scanner: it then follows from length and material of the crystals. 0 "
    "for data of petsim --crystals surface";
/// Of commands with --normalisation.
inline constexpr const char* depth_help_with_normalisation =
    "Where lines end, in mm behind the front faces of the crystals: the mean depth at which photons "
    "interact. Leave it out for a real scanner: it then is that of the normalisation, or follows from length "
    "and material of the crystals. 0 for data of petsim --crystals surface";

}  // namespace petacq::petlm
