// CoinStruct, the pair format of existing scanners (two singles in succession, 32 bytes, little-endian), and
// petlm import, which reads it. docs/reference/formats/coinstruct.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

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

struct ImportOptions {
    std::string format;                             ///< coinstruct
    std::filesystem::path pairs;                    ///< prompts
    std::optional<std::filesystem::path> delayeds;  ///< another file
    std::filesystem::path output;                   ///< list-mode file
    bool force = false;                             ///< replace the output
    std::filesystem::path scanner;                  ///< scanner description
};
/// Makes a list-mode file of the pairs of other software. Returns an exit status. Throws UsageError,
/// BadInput, config::Error, std::system_error.
int import_pairs(const ImportOptions& options);

}  // namespace petacq::petlm
