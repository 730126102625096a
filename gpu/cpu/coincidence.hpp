// Coincidences among ordered singles on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpu/cpu/thread_sums.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/pair_rule.hpp"

namespace petacq::gpu {

/// The search for the coincidences of one slice, divided into shares that different threads may search. Keeps
/// its memory between slices.
struct Search {
    struct alignas(64) Share {
        std::size_t from = 0;  ///< anchors of prompts
        std::size_t to = 0;
        std::vector<Coincidence> records;  ///< in record order, and before those of the next share
        std::vector<Coincidence> delayeds;
        std::vector<bool> used;  ///< members of the current group that belong to a pair
        SingleCounts counts;
        std::vector<Triple> triples;  ///< of the records that are not held back
        GammaCounts gamma_counts;
        std::size_t next = 0;  ///< the first single after the last group
    };
    /// Ordered singles; they include every single within window + delay of an opener.
    std::span<const Single> singles;
    /// Singles below this index may open windows; the others serve only as partners.
    std::size_t decided = 0;
    std::span<const Single> gammas;  ///< in order; all that pairs of decided singles may use
    std::vector<Share> shares;       ///< the first `count` are in use
    std::size_t count = 0;

    [[nodiscard]] std::span<Share> in_use() { return std::span(shares).first(count); }
};

/// Finds coincidences. Stateless: threads may share it.
class CoincidenceFinder {
  public:
    CoincidenceFinder(const config::Geometry& geometry, const CoincidenceRules& rules)
        : geometry_(geometry),
          rule_(PairRule::of(geometry_, rules)),
          rules_(rules),
          module_of_(modules_of_crystals(geometry)) {}

    /// Divides a search of which singles and decided are set. `first_anchor` is the first single that no
    /// earlier prompt group has taken. `held` has the earlier records that are to be merged with the new
    /// ones.
    void divide(Search& search, std::size_t first_anchor, std::span<const Coincidence> held) const;
    void find(Search& search, std::size_t share, ThreadSums& sums) const;

  private:
    static void take_all(std::span<const Single> singles, Search::Share& share, ThreadSums& sums);
    /// `sampled`: samples_energies(). `Rule`: RingRule or LongFormRule.
    template <bool sampled, class Rule>
    void scan_groups(const Rule& rule, std::span<const Single> singles, Search::Share& share,
                     ThreadSums& sums) const;
    template <bool sampled, class Rule>
    void scan_openers(const Rule& rule, std::span<const Single> singles, Search::Share& share,
                      ThreadSums& sums) const;
    template <class Rule>
    void scan(const Rule& rule, std::span<const Single> singles, Search::Share& share,
              ThreadSums& sums) const;
    /// By either rule for delayeds. [from, to): the openers of DelayedRule::delayed_window.
    void find_delayeds(std::span<const Single> singles, std::size_t from, std::size_t to,
                       Search::Share& share) const;
    template <class Rule>
    void scan_delayed(const Rule& rule, std::span<const Single> singles, std::size_t from, std::size_t to,
                      Search::Share& share) const;
    template <class Rule>
    void scan_shifted(const Rule& rule, std::span<const Single> singles, Search::Share& share) const;

    void add_prompts(std::span<const Coincidence> prompts, ThreadSums& sums) const;

    config::Geometry geometry_;  // the rule is a view of it
    PairRule rule_;
    CoincidenceRules rules_;
    std::vector<std::uint16_t> module_of_;  ///< [crystal]
};

}  // namespace petacq::gpu
