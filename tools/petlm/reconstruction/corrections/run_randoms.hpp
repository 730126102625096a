// The randoms to be expected among the prompts of each pair of crystals of a run, or of a part of it or of
// several, from the seconds of the runs.
//
// Every second has its estimate (gpu/randoms/randoms.hpp). To add up thousands of them for each pair would
// take too long, and in one second most crystals have too few singles for the rate of a pair. So neighbouring
// seconds form frames, at most 16 in a run. Within a frame the rates of a crystal and the chances of a pair
// of cells are taken as their means over time, and the product is scaled so that the total over all good
// pairs is exactly the sum of that of the seconds. A second has the randoms of its frame in proportion to its
// own total. The approximation is that the distribution over the crystals does not change within a frame; its
// level may.
//
// Of a second that a file covers in part, its share of the randoms counts. So the totals of the parts of a
// run add up to that of the run.
//
// The same pass over the seconds gives the pile-up factor, dead time and losses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/randoms/pair_cells.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "tools/petlm/reconstruction/corrections/module_losses.hpp"
#include "tools/petlm/records/covered_seconds.hpp"

namespace petacq::petlm {

/// True pairs that would be found if no window held others, for each one found (gpu/randoms/window_load.hpp).
/// NaN: unknown in a second with trues, or no trues.
struct RunPileUp {
    /// Of the run: that of each second, weighted with its trues (prompts less randoms). With it the trues of
    /// the run add up to what they would be without losses.
    double mean = std::numeric_limits<double>::quiet_NaN();
    double least = std::numeric_limits<double>::infinity();  ///< of the seconds with trues
    double most = 0;
};

/// How many randoms each delayed of the records stands for, on average over the run; none if run.json does
/// not tell, or if the records were made by other rules.
std::optional<double> mean_weight_of_delayeds(const ExportSource& source);

/// With a field of view, the sum over all pairs is that of the seconds as far as gpu::PairBins are exact.
/// sum() gives 0 for pairs that the rules refuse, and where noise makes the estimate
/// negative. The order of the crystals does not matter.
class RunRandoms : public PairLosses {
  public:
    static constexpr std::size_t max_frames = 16;

    /// Reads all seconds. Throws std::invalid_argument when they lack a field or are those of another
    /// scanner. `decays`: the weights of times of a scanner that turns (module_losses.hpp).
    RunRandoms(CoveredSeconds& seconds, const config::Scanner& scanner, const gpu::CoincidenceRules& rules,
               const DecaysIn& decays);

    /// Of the records of a file or run directory, or of the part of them that `coverage` describes; its
    /// activity tells the nuclide. Null if its runs have no seconds that can be used; `why` gives the reason
    /// in that case.
    static std::unique_ptr<RunRandoms> of(const ExportSource& source, const daemon::Coverage& coverage,
                                          const config::Scanner& scanner, std::string& why);
    static std::unique_ptr<RunRandoms> of(const ExportSource& source, const config::Scanner& scanner,
                                          std::string& why) {
        return of(source, source.coverage(), scanner, why);
    }

    /// Over all that the file covers.
    [[nodiscard]] double sum(std::uint32_t crystal_a, std::uint32_t crystal_b) const;
    /// Over all that the file covers and all pairs.
    [[nodiscard]] double total() const;
    [[nodiscard]] const RunPileUp& pile_up() const { return pile_up_; }

  private:
    struct Frame;
    class Frames;
    void finish(const std::vector<Frame>& frames, const config::Geometry& geometry,
                const gpu::CoincidenceRules& rules);
    [[nodiscard]] double product(std::size_t frame, std::uint32_t a, std::uint32_t b) const;

    gpu::PairCells cells_;
    std::vector<double> totals_;   ///< [frame]
    std::vector<double> rates_;    ///< [crystal][kind of single][frame]
    std::vector<double> chances_;  ///< [pair of cells][kind][kind][frame], scaled
    RunPileUp pile_up_;
};

}  // namespace petacq::petlm
