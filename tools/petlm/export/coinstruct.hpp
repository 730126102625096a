// CoinStruct, the pair format of existing scanners (two singles in succession, 32 bytes, little-endian), as
// export and import have it. docs/reference/formats/coinstruct.md.
#pragma once

#include <cstdint>

namespace petacq::petlm {

struct CoinStructSingle {
    std::uint32_t crystal = 0;
    float energy = 0;  ///< keV
    double time = 0;   ///< ticks
};
static_assert(sizeof(CoinStructSingle) == 16);

struct CoinStructPair {
    CoinStructSingle first;
    CoinStructSingle second;
};
static_assert(sizeof(CoinStructPair) == 32);

}  // namespace petacq::petlm
