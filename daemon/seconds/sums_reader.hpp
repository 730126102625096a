// The sums of the pipeline, read back from the seconds of a run.
#pragma once

#include <cstddef>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "daemon/seconds/reader.hpp"
#include "gpu/interval_sums.hpp"

namespace petacq::daemon {

class SumsReader {
  public:
    /// `seconds` outlives this object. Throws std::invalid_argument if its fields are not those of the
    /// scanner.
    SumsReader(const SecondsReader& seconds, const config::Geometry& geometry);

    /// The sums of the current second, valid until the next call; the caller may take their memory.
    gpu::IntervalSums& read();

  private:
    [[nodiscard]] const SecondField& field(const char* name, std::size_t count) const;
    void copy(const SecondField& from, std::vector<std::uint32_t>& to) const;

    const SecondsReader& seconds_;
    const config::Geometry geometry_;
    std::vector<const SecondField*> crystals_;  ///< in the order of the vectors in IntervalSums
    const SecondField* module_pairs_ = nullptr;
    /// nullptr: not in the file; the sums then have none.
    const SecondField* refused_pairs_ = nullptr;
    const SecondField* energies_ = nullptr;
    std::vector<const SecondField*> modules_;  ///< in the order of the members of PromptEnds
    std::vector<const SecondField*> counts_;   ///< in the order of the members of SingleCounts
    gpu::IntervalSums sums_;
};

}  // namespace petacq::daemon
