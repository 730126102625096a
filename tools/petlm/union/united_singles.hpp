// The singles of several runs of one stream as those of one host: in order, a hit as often as the run has it
// that has it most often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "gpu/base/records.hpp"
#include "gpu/tick_range.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/union/heard_run.hpp"

namespace petacq::petlm {

/// Where the hits of a module came from.
struct HitOrigins {
    std::uint64_t several = 0;        ///< in more than one run
    std::vector<std::uint64_t> only;  ///< [run] in it alone
};

/// One thread at a time.
class UnitedSingles {
  public:
    /// Writes to `file`, which must not exist.
    UnitedSingles(const std::filesystem::path& file, std::uint32_t block_bytes,
                  const nlohmann::json& description, const config::Geometry& geometry);
    ~UnitedSingles();
    UnitedSingles(const UnitedSingles&) = delete;
    UnitedSingles& operator=(const UnitedSingles&) = delete;

    /// Writes the hits of which it is known that no run has more, or earlier ones: up to where the first run
    /// that has not ended has been written. Runs may be added between calls. A block that cannot be read is
    /// left out of its run.
    void advance(std::span<HeardRun* const> runs);
    /// As RecordFile::close().
    void close(const nlohmann::json& closing);

    /// A run that was added had hits earlier than what was written: they are missing.
    [[nodiscard]] bool was_overtaken() const { return overtaken_; }
    [[nodiscard]] std::uint64_t hits() const { return file_.records(); }
    /// The times of the first and the last hit.
    [[nodiscard]] gpu::TickRange times() const { return times_; }
    /// [bdm] The order of the runs may be another one than when they were added.
    [[nodiscard]] std::vector<HitOrigins> origins(std::span<HeardRun* const> runs) const;

  private:
    class RunHits;

    void write(const gpu::Single& hit);
    void count(const gpu::Single& hit, std::size_t run, bool several);

    RecordFile file_;
    const std::vector<std::uint16_t> module_of_;  ///< [crystal]
    std::vector<std::unique_ptr<RunHits>> runs_;
    std::vector<gpu::Single> written_;  ///< not yet handed to the file
    std::vector<HitOrigins> origins_;   ///< [bdm] `only`: [number in runs_], up to the last one that has any
    std::optional<gpu::Single> latest_;
    gpu::TickRange times_;
    bool overtaken_ = false;
};

}  // namespace petacq::petlm
