// The randoms to be expected among the prompts of each pair of crystals, from the seconds of a run.
//
// Every second has its estimate (gpu/randoms.hpp). To add up thousands of them for each pair would take too
// long, and in one second most crystals have too few singles for the rate of a pair. So neighbouring seconds
// form frames, at most 16 in a run. Within a frame the rates of a crystal and the chances of a pair of
// cells are taken as their means over time, and the product is scaled so that the total over all good pairs
// is exactly the sum of that of the seconds. A second has the randoms of its frame in proportion to its own
// total. The approximation is that the distribution over the crystals does not change within a frame; its
// level may.
//
// The same pass over the seconds gives the pile-up factor of the run, and its dead time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "config/scanner.hpp"
#include "daemon/seconds/reader.hpp"
#include "gpu/coincidence_rules.hpp"
#include "gpu/pair_cells.hpp"

namespace petacq::petlm {

/// True pairs that would be found if no window held others, for each one found (gpu/window_load.hpp). NaN: no
/// formula for the policy, or no trues.
struct RunPileUp {
    /// Of the run: that of each second, weighted with its trues (prompts less randoms). With it the trues of
    /// the run add up to what they would be without losses.
    double mean = std::numeric_limits<double>::quiet_NaN();
    double least = std::numeric_limits<double>::infinity();  ///< of the seconds with trues
    double most = 0;
};

/// True pairs of two modules that would be found without dead time, for each one found: 1 / ((1 - d) (1 -
/// e)), where d and e are the shares of the time in which they were blind (module_dead_time); of each second,
/// weighted with the trues of the run. Empty: the boards did not report it, or there are no trues.
struct RunDeadTime {
    std::vector<double> factor;  ///< [module a * modules + module b]
};

/// Both functions of a pair give 0 for pairs that the rules refuse, and where noise makes the estimate
/// negative. The order of the crystals does not matter.
class RunRandoms {
  public:
    static constexpr std::size_t most_frames = 16;

    /// Reads all seconds. Throws std::invalid_argument when they lack a field or are those of another
    /// scanner.
    RunRandoms(daemon::SecondsReader& seconds, const config::Scanner& scanner,
               const gpu::CoincidenceRules& rules);

    /// Of a run directory and its run.json. Null if the run has no seconds, or none that can be used; `why`
    /// gives the reason in that case.
    static std::unique_ptr<RunRandoms> of_run(const std::filesystem::path& directory,
                                              const nlohmann::json& run, const config::Scanner& scanner,
                                              std::string& why);

    /// Over the whole run.
    [[nodiscard]] double sum(std::uint32_t crystal_a, std::uint32_t crystal_b) const;
    /// Per second, in the second that holds the time (ticks), or else in the last one before it.
    [[nodiscard]] double rate(std::uint64_t time, std::uint32_t crystal_a, std::uint32_t crystal_b) const;
    /// Over the whole run and all pairs.
    [[nodiscard]] double total() const;
    [[nodiscard]] const RunPileUp& pile_up() const { return pile_up_; }
    [[nodiscard]] const RunDeadTime& dead_time() const { return dead_time_; }
    /// The share of the true pairs of two crystals that dead time leaves; 1 if it is unknown.
    [[nodiscard]] double live(std::uint32_t crystal_a, std::uint32_t crystal_b) const;

  private:
    struct Frame;
    struct Moment {
        std::uint64_t start;
        std::size_t frame;
        double per_s;  ///< its randoms per second, divided by those of the frame
    };
    void finish(const std::vector<Frame>& frames, const config::Geometry& geometry,
                const gpu::CoincidenceRules& rules);
    [[nodiscard]] double product(std::size_t frame, std::uint32_t a, std::uint32_t b) const;

    config::Geometry geometry_;
    gpu::PairCells cells_;
    std::vector<Moment> seconds_;
    std::vector<double> totals_;   ///< [frame]
    std::vector<double> rates_;    ///< [crystal][kind of single][frame]
    std::vector<double> chances_;  ///< [pair of cells][kind][kind][frame], scaled
    RunPileUp pile_up_;
    RunDeadTime dead_time_;
};

}  // namespace petacq::petlm
