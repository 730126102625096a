// The declared rules and times that each imported record must agree with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/configuration.hpp"
#include "gpu/base/records.hpp"
#include "gpu/tick_range.hpp"

namespace petacq::petlm {

/// Immutable while records are checked: thread-safe.
struct DeclaredLimits {
    std::string file;
    std::optional<std::uint32_t> window_ticks;
    std::optional<config::Energy> energy;
    std::optional<config::Gammas> gammas;
    std::optional<gpu::TickRange> times;
    bool delayeds = true;  ///< there may be some

    /// Throws BadInput, whose message says what was declared.
    void check(const gpu::Single& single) const;
    void check(const gpu::Tag& tag) const;
    void check(const gpu::Coincidence& pair) const;
    void check(const gpu::Triple& triple) const;

  private:
    void check_time(std::uint64_t time) const;
    void check_energy(float energy) const;
};

}  // namespace petacq::petlm
