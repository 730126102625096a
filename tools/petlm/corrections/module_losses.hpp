// What the boards of a run did not find or did not deliver, by pair of modules: dead time and lost data.
//
// In each second a module delivers the share l of its data (module_live), and sees the share s of the photons
// (1 less its dead time). Of the true pairs T of a second, those of modules m and n that arrive are
//     T p_mn l_m l_n s_m s_n,
// where p_mn is the share of the pair in all trues, without losses. T and p follow in turn from the trues
// and the prompts by pair of modules, so a board that is silent for a part of a run is right also if the
// source decays. In seconds in which nearly nothing arrives T is unknown and taken from the seconds around.
// Losses of two modules in the same second are taken as independent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "daemon/seconds/reader.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petlm {

/// True pairs of two modules that would be found without dead time, for each one found, of those that
/// arrive. Empty: the boards did not report it.
struct RunDeadTime {
    std::vector<double> factor;  ///< [module a * modules + module b]
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
    double least_factor = 1;
    double largest_factor = 1;
    bool silent_pairs = false;     ///< some delivered nothing
    bool unknown_modules = false;  ///< taken as if all of their data had arrived
};

/// One thread at a time.
class ModuleLosses {
  public:
    /// Boards tell their dead time now and then: seconds shorter than `least_ticks` belong to the next one,
    /// or at the end of a run to the one before.
    ModuleLosses(std::size_t modules, double least_ticks);

    /// A second of which `share` counts, recorded for `ticks`. `module_pairs`: its prompts, [m * modules +
    /// n].
    void add(const daemon::SecondsReader& seconds, double ticks, double share, double trues,
             const std::vector<std::uint32_t>& module_pairs);
    void end_run();
    /// After the last end_run().
    void finish(RunDeadTime& dead_time, RunLoss& loss);

  private:
    /// One second, or a few that are short.
    struct Moment {
        double ticks = 0;          ///< recorded
        double covered = 0;        ///< of these, in the file
        double trues = 0;          ///< covered
        std::vector<double> live;  ///< [module]; until the moment is complete, times ticks
        std::vector<double> seen;  ///< [module]; until then, the ticks in which it was blind
    };
    void close_moment(bool dead_time_told);
    [[nodiscard]] double delivered(const Moment& moment, std::size_t m, std::size_t n) const {
        return moment.live[m] * moment.live[n] * moment.seen[m] * moment.seen[n];
    }
    /// [moment] true pairs, as if nothing were lost.
    [[nodiscard]] std::vector<double> all_trues() const;
    [[nodiscard]] std::vector<double> trues_by_share(const std::vector<double>& share_of_pair) const;

    std::size_t modules_;
    double least_ticks_;
    bool dead_time_known_ = true;
    bool live_known_ = false;
    bool live_unknown_ = false;
    Moment open_;
    std::vector<Moment> moments_;
    std::size_t run_start_ = 0;
    std::vector<double> prompts_;  ///< [m * modules + n], m <= n
};

/// For people: "Loss: ...".
std::string sentence_of(const RunLoss& loss);
/// What the ledger of the run says, where the seconds do not tell the loss: a sentence that begins with a
/// space; empty if it says nothing.
std::string lost_datagrams(const ExportSource& source);

}  // namespace petacq::petlm
