// Finds what goes wrong in the detector: a module whose clock or gain has moved, one that takes part in fewer
// prompts, detector units that no longer count, and noisy crystals.
//
// Clocks, gains and prompts are compared with the start of the run: its first seconds are the baseline,
// except the very first, in which some boards may not have sent yet. They are also compared with a reference,
// the baseline of another run, if there is one. A module has moved if the change is above a limit
// (detector_watch.cpp) and above 6.5 sigma. The latest second is compared, or the last 8 together where that
// has too few prompts. Between runs nothing is compared: subjects and phantoms move.
//
// A module whose clock is off moves its partners, too, the other way and by less. So a change by less than
// half of the larger ones of the other sign together is not reported. Likewise, the partners of a module that
// misses prompts have fewer.
//
// A source that moves changes the prompts of a module, too, but not like a fault. Along the axis it changes
// all units in a row around the ring. Across, it gives the modules that it approaches more singles without
// prompts, and those that it leaves less of both. And it spreads the singles over the detector in another
// way. So a module misses prompts only if each of its units has fewer than its singles and fewer than its row
// let expect, and as large a part of all singles as before, within 30 %.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "daemon/detector/module_sums.hpp"
#include "daemon/seconds/second.hpp"
#include "daemon/synchrony/synchrony.hpp"

namespace petacq::daemon {

/// At most one of each kind in a module.
struct DetectorFault {
    enum class FaultKind : std::uint8_t {
        time_step,  ///< compared with the start of the run, like the next two
        gain_step,
        few_prompts,
        time_off,  ///< compared with the reference, like the next two
        gain_off,
        prompts_off,
        silent_units,
        noisy_crystal,
        out_of_step,  ///< found in samples, like the next one (daemon/synchrony/)
        no_partners
    };

    FaultKind kind = FaultKind::time_step;
    std::uint32_t bdm = 0;
    /// Times: ns by which those of the module have moved, later ones positive; gain, prompts: relative
    /// change; silent_units: how many; noisy_crystal: its counts over the median of its unit; out_of_step: ns
    /// by which it is late; no_partners: ns, so far partners were looked for.
    double size = 0;
    std::uint32_t part = 0;  ///< silent_units: the first one; noisy_crystal: the crystal
    double since_s = 0;      ///< of the run, or detector time outside runs: begin of the first second with it
    std::optional<std::uint16_t> source = {};  ///< out_of_step and no_partners: the board, where it is known
    std::int64_t add_ticks = 0;                ///< out_of_step: to its time offsets
    bool loses_prompts = false;                ///< out_of_step: it is off by more than the window

    /// "BDM 7: its times moved by +1.02 ns"
    [[nodiscard]] std::string what() const;
    /// The same, "since 12.0 s"; but those from samples have no time of their own.
    [[nodiscard]] std::string text() const;
};

/// Adds faults to those seen before: each once, at its largest.
void note_faults(std::vector<DetectorFault>& seen, const std::vector<DetectorFault>& now);

/// One thread at a time.
class DetectorWatch {
  public:
    /// `reference`: nullptr if there is none.
    DetectorWatch(const config::Geometry& geometry, std::uint64_t ticks_per_s,
                  std::shared_ptr<const DetectorBaseline> reference = nullptr);

    /// A run starts: the seconds from here on are its own.
    void start_run(std::uint64_t ticks);
    void end_run();
    /// `synchrony`: the latest; nullptr: not known.
    void observe(const Second& second, const SynchronyReport* synchrony = nullptr);
    /// In the latest second; the largest of a kind first.
    [[nodiscard]] const std::shared_ptr<const std::vector<DetectorFault>>& faults() const { return faults_; }
    /// The start of the run, as far as it is known. Its length is 0 before the second second.
    [[nodiscard]] const DetectorBaseline& baseline() const { return baseline_; }
    /// The baseline does not grow beyond this.
    static constexpr double longest_baseline_s = 10;

  private:
    using FaultKind = DetectorFault::FaultKind;
    struct Value {
        double mean = 0;
        double variance = 0;  ///< of the mean
    };
    struct ModuleChange {
        double size = 0;
        std::uint32_t bdm = 0;
    };

    void find_silent();
    void find_noisy(const Second& second);
    void find_out_of_step(const SynchronyReport& report);
    void compare_modules();
    void compare_times(FaultKind kind, const DetectorBaseline& with);
    void compare_gains(FaultKind kind, const DetectorBaseline& with);
    void compare_prompts(FaultKind kind, const DetectorBaseline& with);
    /// By unit; nothing where the source has moved.
    [[nodiscard]] std::vector<std::optional<double>> expected_trues(const DetectorSums& now,
                                                                    const DetectorBaseline& with) const;
    template <class ChangeOf>
    void compare(FaultKind kind, double limit, const ChangeOf& change_of);
    void extend_baseline(double length_s);
    [[nodiscard]] bool exists(std::size_t unit) const {
        return geometry_.crystals_of_unit(static_cast<std::uint32_t>(unit)) > 0;
    }
    /// Units of a module that exist.
    [[nodiscard]] double units_of(std::uint32_t bdm) const;
    [[nodiscard]] bool has(FaultKind kind, std::uint32_t bdm) const;
    void add(FaultKind kind, std::uint32_t bdm, double size, std::uint32_t part = 0);
    void publish(double begin_s);

    const config::Geometry geometry_;
    const double ticks_per_s_;
    const std::shared_ptr<const DetectorBaseline> reference_;
    const std::vector<std::uint32_t> crystals_;  ///< by detector unit
    const std::vector<std::uint32_t> rows_;      ///< [unit]

    std::optional<std::uint64_t> run_start_;
    bool first_second_ = false;  ///< of the run has passed
    DetectorBaseline baseline_;
    std::vector<double> usual_units_;  ///< counts of each in the last second in which it was well; 0: too few
    DetectorSums latest_;
    std::deque<DetectorSums> recent_;    ///< of the run, the latest at the end
    DetectorSums several_;               ///< their sum
    std::vector<std::uint32_t> counts_;  ///< of the crystals of a unit

    std::vector<DetectorFault> found_;
    std::map<std::pair<FaultKind, std::uint32_t>, double> since_;
    std::shared_ptr<const std::vector<DetectorFault>> faults_;
};

}  // namespace petacq::daemon
