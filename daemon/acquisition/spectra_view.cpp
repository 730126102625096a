#include "daemon/acquisition/spectra_view.hpp"

#include <utility>
#include <vector>

namespace petacq::daemon {

std::shared_ptr<const gpu::UnitSpectra> SpectraView::ask(std::uint32_t unit) {
    const net::MutexLock lock(mutex_);
    if (units_.size() >= max_units && !units_.contains(unit)) return nullptr;
    ViewedUnit& asked = units_[unit];
    asked.left = patience;
    return asked.counts;
}

void SpectraView::refresh(PipelineFeed& pipeline) {
    std::vector<std::uint32_t> wanted;
    {
        const net::MutexLock lock(mutex_);
        for (auto unit = units_.begin(); unit != units_.end();) {
            if (--unit->second.left < 0) {
                unit = units_.erase(unit);
            } else {
                wanted.push_back((unit++)->first);
            }
        }
    }
    for (const std::uint32_t unit : wanted) {
        auto counts = std::make_shared<gpu::UnitSpectra>();
        if (!pipeline.unit_spectra(unit, *counts)) return;
        const net::MutexLock lock(mutex_);
        units_[unit].counts = std::move(counts);
    }
}

}  // namespace petacq::daemon
