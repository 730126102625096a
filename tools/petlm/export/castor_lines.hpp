// CASToR: the normalisation data file, which tells its sensitivity image what each line can find.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/geometry/crystal_kinds.hpp"
#include "tools/petlm/export/line_model.hpp"

namespace petacq::petlm {

/// CASToR's numbers of crystals: kind by kind, since it states the size of all crystals of one of its layers.
class CastorIds {
  public:
    explicit CastorIds(const CrystalKinds& kinds);
    [[nodiscard]] std::uint32_t of(std::uint32_t crystal) const { return ids_[crystal]; }
    /// [id]
    [[nodiscard]] const std::vector<std::uint32_t>& crystals() const { return crystals_; }

  private:
    std::vector<std::uint32_t> crystals_;
    std::vector<std::uint32_t> ids_;
};

/// CASToR divides by it, and leaves out events for which it is 0.
inline float normalisation_factor(const LineModel& model, std::uint32_t a, std::uint32_t b) {
    const double trues = model.trues(a, b);
    return trues > 0 ? static_cast<float>(1 / trues) : 0;
}

/// Throws UsageError if the file would be larger than the options allow.
void check_castor_lines(const ExportSource& source, const config::Scanner& scanner,
                        const ExportOptions& options);
/// Writes lines.cdh and lines.cdf: every pair that the run accepts and whose crystals are alive, the lower
/// number first. Returns how many there are.
std::uint64_t write_castor_lines(const std::filesystem::path& directory, const config::Scanner& scanner,
                                 const CastorIds& ids, const LineModel& model, net::WorkerPool& pool);

}  // namespace petacq::petlm
