// The spectra of some detector units while a run is in progress, for those who watch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "daemon/acquisition/pipeline_feed.hpp"
#include "gpu/spectra.hpp"
#include "net/base/mutex.hpp"

namespace petacq::daemon {

/// Any thread asks for a unit and gets its counts as of the last second. The acquisition thread copies only
/// the units that somebody has asked for lately.
class SpectraView {
  public:
    /// Units at a time; others are not shown.
    static constexpr std::size_t max_units = 8;
    /// Refreshes after which a unit that nobody asks for is forgotten.
    static constexpr int patience = 10;

    /// Any thread. nullptr: not yet.
    std::shared_ptr<const gpu::UnitSpectra> ask(std::uint32_t unit);
    /// The acquisition thread, once a second. The pipeline has spectra.
    void refresh(PipelineFeed& pipeline);

  private:
    struct ViewedUnit {
        std::shared_ptr<const gpu::UnitSpectra> counts;
        int left = patience;
    };
    net::Mutex mutex_;
    std::map<std::uint32_t, ViewedUnit> units_ PETACQ_GUARDED_BY(mutex_);
};

}  // namespace petacq::daemon
