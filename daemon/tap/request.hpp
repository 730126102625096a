// The first line of each side of the tap: what a client asks for, and what the daemon answers.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "daemon/listmode/format.hpp"

namespace petacq::daemon {

/// What the tap tells each client, and which kinds of records the runs have.
struct TapSource {
    std::string scanner;
    double tick_ps = 0;
    std::uint32_t crystals = 0;
    bool coincidences = true;  ///< listmode.write_coincidences
    bool singles = false;      ///< listmode.write_singles
    bool triples = false;      ///< gammas and coincidences
};

struct TapRequest {
    static constexpr std::size_t max_bytes = 4096;
    static constexpr std::uint64_t max_prescale = std::uint64_t{1} << 32U;

    RecordKind kind = RecordKind::coincidences;
    std::uint64_t prescale = 1;

    /// Reads a line. Throws std::invalid_argument that says what was expected.
    static TapRequest parse(std::string_view line, const TapSource& source);
};

/// The answer to an accepted request, without the end of the line.
std::string tap_answer(const TapRequest& request, const TapSource& source);

}  // namespace petacq::daemon
