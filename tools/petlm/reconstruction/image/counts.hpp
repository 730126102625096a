// What an image needs of its records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/base/records.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/energy_window.hpp"
#include "tools/petlm/reconstruction/em/angles.hpp"
#include "tools/petlm/reconstruction/em/lines.hpp"
#include "tools/petlm/reconstruction/em/pair_counts.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"

namespace petacq::image {

/// Not thread-safe.
struct ImageCounts {
    PairCounts pairs;
    RandomsByModules delayeds;
    corrections::PhotopeakWidth photopeak;
    std::uint64_t prompts = 0;  ///< all, whether or not they are used
    /// Of the randoms that are expected in the time of the records, those that are expected among these.
    double share_of_randoms = 1;
    /// Pairs with prompt gammas that are expected among them; null: none.
    std::shared_ptr<const gammas::SpuriousPairs> spurious;

    /// `angles`: of the scanner; must outlive it. The pairs have the numbers of its crystals. `capacity`: of
    /// the pairs.
    ImageCounts(const config::Geometry& geometry, const Angles& angles, const gpu::PairRule& rule,
                std::size_t capacity, net::WorkerPool& pool, const TofBins& tof)
        : pairs(angles.numbers(), capacity, pool, tof), delayeds(geometry, rule), angles_(angles) {}

    /// However the records are divided among calls, the counts are the same.
    void add(std::span<const gpu::Coincidence> records);
    /// Must be called once, after the last add().
    void finish() { pairs.finish(); }
    /// With PairCounts::resampled(); all else is the same.
    [[nodiscard]] ImageCounts resampled(std::uint64_t seed) const { return {*this, pairs.resampled(seed)}; }

  private:
    ImageCounts(const ImageCounts& all_else, PairCounts these)
        : pairs(std::move(these)),
          delayeds(all_else.delayeds),
          photopeak(all_else.photopeak),
          prompts(all_else.prompts),
          share_of_randoms(all_else.share_of_randoms),
          spurious(all_else.spurious),
          angles_(all_else.angles_) {}

    const Angles& angles_;
    std::vector<gpu::Coincidence> numbered_;
};

}  // namespace petacq::image
