// What the boards of a run did not find or did not deliver: dead time and lost data, by pair of modules, and
// dead time also by detector unit.
//
// In each second a module delivers the share l of its data (module_live), and sees the share s of the photons
// (1 less its dead time). Of the true pairs T of a second, those of modules m and n that arrive are
//     T p_mn l_m l_n s_m s_n,
// where p_mn is the share of the pair in all trues, without losses. T and p follow in turn from the trues
// and the prompts by pair of modules, so a board that is silent for a part of a run is right also if the
// source decays. In seconds in which nearly nothing arrives T is unknown and taken from the seconds around.
// Two modules of one board lose the same data. Losses of two boards within one second are taken as
// independent: the seconds do not tell when within them data were lost.
//
// A board tells one dead time, the mean of its detector units. Each unit is blind for a fixed time after each
// hit that it takes, so a unit has the part of that time that it has of the singles of the board. Of the two
// units of a pair, seen[u] = s_u / s_m multiplies what the modules leave.
//
// A module of which a second of the run tells anything had delivered nothing in those that tell nothing of it
// and have no singles of it, as in daemon/seconds/live_sums.hpp.
//
// In a scanner that turns T also depends on its angle, and is no measure of the decays. There the decays
// themselves weight the seconds, as they weight the angles (found_decays.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "config/base/sha256.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/coverage/coverage.hpp"
#include "daemon/seconds/reader.hpp"
#include "gpu/sectors.hpp"
#include "tools/petlm/reconstruction/corrections/found_decays.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petlm {

/// True pairs of two modules that would be found without dead time, for each one found, of those that
/// arrive. Empty: the boards did not report it.
struct RunDeadTime {
    std::vector<double> factor;  ///< [module a * modules + module b]
    /// [module * units of a module + unit] what a unit sees, for each that its module sees; 1 for a unit
    /// without singles.
    std::vector<double> seen;
    double least = 1;  ///< of all pairs of units that have singles
    double most = 1;
};

/// What did not arrive. Empty: the seconds do not tell.
struct RunLoss {
    /// [module a * modules + module b] the share of the true pairs that arrived; 0: none, so the pair found
    /// nothing.
    std::vector<double> arrived;
    /// The share of the data of the boards that did not arrive, mean over modules and time.
    double lost = std::numeric_limits<double>::quiet_NaN();
    /// By which trues have to be multiplied: all together, and of the pairs that delivered anything.
    double factor = 1;
    double min_factor = 1;
    double largest_factor = 1;
    double silent_pairs = 0;  ///< share of the pairs of modules that delivered nothing
    /// Of some, in some seconds, it is not known; they are taken as if all of their data had arrived, and
    /// what is said to be lost is the least.
    bool unknown_modules = false;
    bool too_many_modules = false;  ///< for the shares of all pairs; nothing is known
};

/// One thread at a time.
class ModuleLosses {
  public:
    /// The shares of all pairs of modules of a larger scanner would not fit into memory: nothing is found.
    static constexpr std::size_t max_modules = 4096;

    /// Boards tell their dead time now and then: seconds shorter than `min_ticks` belong to the next one,
    /// or at the end of a run to the one before.
    ModuleLosses(const config::Scanner& scanner, double min_ticks);

    /// A second of which `share` counts, recorded for `ticks`. `module_pairs`: its prompts, by
    /// gpu::Sectors::pair().
    void add(const daemon::SecondsReader& seconds, double ticks, double share, double trues,
             const std::vector<std::uint32_t>& module_pairs);
    void end_run();
    /// After the last end_run(). `live_times`: of each run in order of time; none of a scanner with too many
    /// modules.
    void finish(const DecaysIn& decays, RunDeadTime& dead_time, RunLoss& loss,
                std::vector<LiveTime>& live_times);

  private:
    /// One second, or a few that are short.
    struct LossMoment {
        gpu::TickRange time;
        double ticks = 0;          ///< recorded
        double covered = 0;        ///< of these, in the file
        double trues = 0;          ///< covered
        double found = 0;          ///< the share of all true pairs, by trues_by_share()
        std::vector<double> live;  ///< [module]; until the moment is complete, times ticks
        std::vector<double> seen;  ///< [module]; until then, the ticks in which it was blind
        /// [module] for which nobody tells of it and it has no singles; likewise. Until the run has ended,
        /// not live.
        std::vector<double> silent;
        /// [module * units_ + unit] like `seen`; until the moment is complete, the singles.
        std::vector<double> unit_seen;
    };
    [[nodiscard]] LossMoment none() const;
    void close_moment(bool dead_time_told);
    void divide_dead_time();
    void add_singles(const daemon::SecondsReader& seconds);
    void find_units(RunDeadTime& dead_time, const std::vector<double>& weights) const;
    [[nodiscard]] double arrived(const LossMoment& moment, std::size_t m, std::size_t n) const {
        return board_[m] == board_[n] ? std::min(moment.live[m], moment.live[n])
                                      : moment.live[m] * moment.live[n];
    }
    [[nodiscard]] double delivered(const LossMoment& moment, std::size_t m, std::size_t n) const {
        return arrived(moment, m, n) * moment.seen[m] * moment.seen[n];
    }
    /// [moment] true pairs, as if nothing were lost.
    [[nodiscard]] std::vector<double> all_trues();
    /// [moment] what it counts in the means over the run.
    [[nodiscard]] std::vector<double> weights(const DecaysIn& decays);
    [[nodiscard]] std::vector<double> trues_by_share(const std::vector<double>& share_of_pair);

    std::size_t modules_;
    bool turns_;
    gpu::Sectors sectors_;
    std::size_t units_;                   ///< of a module
    std::vector<std::uint32_t> unit_of_;  ///< [crystal] module * units_ + unit
    std::vector<std::size_t> board_;      ///< [module]
    std::vector<bool> told_;              ///< [module] a second of the run has its share
    double min_ticks_;
    bool dead_time_known_ = true;
    bool live_known_ = false;
    bool live_unknown_ = false;
    LossMoment open_;
    std::vector<LossMoment> moments_;
    std::size_t run_start_ = 0;
    std::vector<double> prompts_;    ///< [m * modules + n], m <= n
    std::vector<bool> exists_;       ///< [module * units_ + unit] whether it has crystals
    std::vector<bool> has_singles_;  ///< [module * units_ + unit]
};

/// [crystal] module (BDM) * units of a module + unit.
std::vector<std::uint32_t> units_of_crystals(const config::Geometry& geometry);

/// Dead time and losses of the pairs of crystals in the records of a file. No rule changes what the boards
/// did not find or deliver, so they are known of a file that has been sorted again by other rules, too.
class PairLosses {
  public:
    /// Seconds that tell less than this share of the time of a file are not used; others stand for all of it.
    static constexpr double min_known = 0.8;

    explicit PairLosses(const config::Geometry& geometry)
        : geometry_(geometry), unit_of_(units_of_crystals(geometry)) {}
    /// Of the records that `coverage` describes, of a file or run directory; its activity tells the nuclide.
    /// Null if its runs have no seconds that can be used; `why` gives the reason in that case.
    static std::unique_ptr<PairLosses> of(const ExportSource& source, const daemon::Coverage& coverage,
                                          const config::Scanner& scanner, std::string& why);

    [[nodiscard]] const RunDeadTime& dead_time() const { return dead_time_; }
    [[nodiscard]] const RunLoss& loss() const { return loss_; }
    /// For the times of the file that seconds tell.
    [[nodiscard]] const std::vector<LiveTime>& live_times() const { return live_times_; }
    /// The share of the time of the file for which there are seconds; they stand for all of it.
    [[nodiscard]] double known() const { return known_; }
    /// The share of the true pairs of two crystals that dead time leaves; 1 if it is unknown.
    [[nodiscard]] double seen(std::uint32_t crystal_a, std::uint32_t crystal_b) const;
    /// The share of those that arrived; 1 if it is unknown, 0 if one of the modules was silent all the time.
    [[nodiscard]] double arrived(std::uint32_t crystal_a, std::uint32_t crystal_b) const;
    /// Of both together.
    [[nodiscard]] double live(std::uint32_t crystal_a, std::uint32_t crystal_b) const {
        return seen(crystal_a, crystal_b) * arrived(crystal_a, crystal_b);
    }

    /// All that these shares depend on.
    void add_to(config::Sha256& digest) const {
        digest.add_values(dead_time_.factor);
        digest.add_values(dead_time_.seen);
        digest.add_values(loss_.arrived);
    }

  protected:
    [[nodiscard]] std::size_t modules_of(std::uint32_t crystal_a, std::uint32_t crystal_b) const;

    config::Geometry geometry_;
    std::vector<std::uint32_t> unit_of_;  ///< [crystal]
    RunDeadTime dead_time_;
    RunLoss loss_;
    std::vector<LiveTime> live_times_;
    double known_ = 1;
};

/// For people, why neither is known of a scanner with too many modules.
std::string too_many_modules();
/// For people: "Loss: ...".
std::string sentence_of(const RunLoss& loss);
/// What the ledger of the run says, where the seconds do not tell the loss: a sentence that begins with a
/// space; empty if it says nothing.
std::string lost_datagrams(const ExportSource& source);

}  // namespace petacq::petlm
