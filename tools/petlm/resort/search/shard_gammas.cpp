#include "tools/petlm/resort/search/shard_gammas.hpp"

#include <algorithm>

#include "daemon/tracking/saturate.hpp"
#include "gpu/rules/record_order.hpp"
#include "gpu/triples/triple_search.hpp"

namespace petacq::petlm {

using daemon::add_or_max;
using daemon::subtract_or_zero;

void ShardGammas::start(gpu::TickRange shard, gpu::TickRange all) {
    shard_ = range_ = shard;
    last_ = shard.end >= all.end;
    if (!rules_) return;
    range_.start = std::max(all.start, subtract_or_zero(shard.start, rules_->before));
    range_.end = std::min(all.end, add_or_max(shard.end, rules_->reach()));
    gammas_.clear();
    done_ = 0;
}

std::span<const gpu::Single> ShardGammas::take(std::span<const gpu::Single> singles) {
    if (!rules_) return singles;
    rest_.clear();
    for (const gpu::Single& single : singles) {
        if (!rules_->contains(single.energy)) {
            rest_.push_back(single);
        } else if (range_.start <= single.time && (single.time < range_.end || range_.end == UINT64_MAX)) {
            gammas_.push_back(single);
        }
    }
    return rest_;
}

void ShardGammas::finish(ShardResult& result) {
    if (!rules_) return;
    std::sort(gammas_.begin(), gammas_.end(),
              [](const gpu::Single& a, const gpu::Single& b) { return gpu::before(a, b); });
    const std::size_t first = count_below(shard_.start);
    const std::size_t end = count_below(shard_.end);
    const auto unknown = static_cast<std::uint64_t>(
        std::count_if(gammas_.begin() + static_cast<std::ptrdiff_t>(first),
                      gammas_.begin() + static_cast<std::ptrdiff_t>(end),
                      [&](const gpu::Single& gamma) { return gamma.crystal >= crystals_; }));
    result.taken.received += end - first;
    result.taken.bad_address += unknown;
    result.taken.accepted += end - first - unknown;
    find_triples(result);
}

void ShardGammas::find_triples(ShardResult& result) {
    used_.assign(gammas_.size(), 0);
    triples_.clear();
    GammaBorder& border = result.border.emplace();
    border.first.resize(count_below(add_or_max(shard_.start, rules_->after)));
    std::size_t list = 0;  // of coincidences, the next one and its next record
    std::size_t next = 0;
    for (std::uint32_t second = 0; second < result.sums.size(); ++second) {
        const bool is_last = second + 1 == result.sums.size();
        const std::uint64_t end = is_last ? UINT64_MAX : result.sums[second + 1].first;
        gpu::GammaCounts& counts = result.sums[second].second.gammas;
        while (list < result.coincidences.size()) {
            const std::span<const gpu::Coincidence> left =
                std::span<const gpu::Coincidence>(result.coincidences[list]).subspan(next);
            const auto to = is_last ? left.end()
                                    : std::partition_point(left.begin(), left.end(),
                                                           [&](const auto& pair) { return pair.time < end; });
            const auto pairs = left.first(static_cast<std::size_t>(to - left.begin()));
            gpu::find_triples(pairs, gammas_, *rules_, used_, triples_, counts);
            next += pairs.size();
            if (pairs.size() < left.size()) break;
            ++list;
            next = 0;
        }
        for (std::size_t i = 0; i < border.first.size(); ++i) {
            if (used_[i] != 0) border.first[i].used_in = std::min(border.first[i].used_in, second);
        }
        count_unused(result, second, is_last ? shard_.end : end);
    }
    border.last_from = last_ ? gammas_.size() : count_below(subtract_or_zero(shard_.end, rules_->before));
    const auto last_to = last_ ? gammas_.size() : count_below(add_or_max(shard_.end, rules_->after));
    border.last.assign(used_.begin() + static_cast<std::ptrdiff_t>(border.last_from),
                       used_.begin() + static_cast<std::ptrdiff_t>(last_to));
    result.triples.assign(triples_.begin(), triples_.end());
}

/// Those that only pairs before the horizon may use; after the last shard, all.
void ShardGammas::count_unused(ShardResult& result, std::uint32_t second, std::uint64_t horizon) {
    const bool all = last_ && second + 1 == result.sums.size();
    const std::size_t end = all ? gammas_.size() : count_below(subtract_or_zero(horizon, rules_->before));
    for (; done_ < end; ++done_) {
        if (used_[done_] != 0) continue;
        ++result.sums[second].second.gammas.unused;
        if (done_ < result.border->first.size()) result.border->first[done_].unused_in = second;
    }
}

/// UINT64_MAX stands for the end of time, which nothing reaches.
std::size_t ShardGammas::count_below(std::uint64_t time) const {
    if (time == UINT64_MAX) return gammas_.size();
    return static_cast<std::size_t>(
        std::partition_point(gammas_.begin(), gammas_.end(),
                             [&](const gpu::Single& gamma) { return gamma.time < time; }) -
        gammas_.begin());
}

}  // namespace petacq::petlm
