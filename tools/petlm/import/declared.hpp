// What the user declares of records whose file does not hold it: rules, start and duration.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "daemon/coverage/coverage.hpp"
#include "gpu/base/records.hpp"
#include "gpu/tick_range.hpp"
#include "tools/petlm/import/foreign_file.hpp"
#include "tools/petlm/import/import.hpp"

namespace petacq::petlm {

/// What no record of the file may contradict, since it was declared. Immutable: thread-safe.
struct DeclaredLimits {
    std::string file;
    std::optional<std::uint32_t> window_ticks;
    std::optional<config::Energy> energy;
    std::optional<gpu::TickRange> times;
    bool delayeds = true;  ///< there may be some

    /// Throws BadInput, whose message says what was declared.
    void check(const gpu::Single& single) const;
    void check(const gpu::Tag& tag) const;
    void check(const gpu::Coincidence& pair) const;
    void check(const gpu::Triple& triple) const { check(triple.pair); }

  private:
    void check_time(std::uint64_t time) const;
    void check_energy(float found_energy) const;
};

struct WithDeclared {
    daemon::Coverage coverage;
    std::shared_ptr<const nlohmann::json> declared;  ///< what was taken, for people; empty: nothing
    DeclaredLimits limits;
};

/// `coverage`: as far as the file tells it. What it tells may be declared, too, if it is the same. Throws
/// UsageError for what contradicts it, cannot be true of these records, or is not enough.
WithDeclared with_declared(daemon::Coverage coverage, const ImportOptions& options, const ForeignFile& file);

}  // namespace petacq::petlm
