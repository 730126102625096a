#include "tools/petsim/simulation/board/pile_up.hpp"

#include <algorithm>

namespace petacq::sim {

void PileUp::add(std::span<const Hit> hits) {
    hits_ = hits;
    next_ = 0;
    if (!waiting_.empty()) {
        merged_.resize(waiting_.size() + hits.size());
        std::merge(waiting_.begin(), waiting_.end(), hits.begin(), hits.end(), merged_.begin(),
                   [](const Hit& a, const Hit& b) { return a.raw_time < b.raw_time; });
        hits_ = merged_;
    }
    if (ticks_ > 0) piled_.assign(hits_.size(), 0);
}

std::span<const Hit> PileUp::keep() {
    waiting_.clear();
    for (; next_ < hits_.size(); ++next_) {
        if (!piled(next_)) waiting_.push_back(hits_[next_]);
    }
    return waiting_;
}

}  // namespace petacq::sim
