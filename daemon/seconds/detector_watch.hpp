// Finds what goes wrong in the detector: a module whose clock or gain has moved, one that takes part in fewer
// prompts, detector units that no longer count, and noisy crystals.
//
// Clocks, gains and prompts are compared with the start of the run: its first seconds are the baseline,
// except the very first, in which some boards may not have sent yet. A module has moved if the change is
// above a limit (detector_watch.cpp) and above 6 sigma. The latest second is compared, or the last 8 together
// where that has too few prompts. Between runs there is no baseline: subjects and phantoms move.
//
// A module whose clock is off moves its partners, too, the other way and by less. So a change by less than
// half of the larger ones of the other sign together is not reported. Likewise, the partners of a module that
// misses prompts have fewer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/geometry.hpp"
#include "daemon/seconds/second.hpp"

namespace petacq::daemon {

/// At most one of each kind in a module.
struct DetectorFault {
    enum class Kind : std::uint8_t { time_step, gain_step, few_prompts, silent_units, noisy_crystal };

    Kind kind = Kind::time_step;
    std::uint32_t bdm = 0;
    /// time_step: ns by which the module's times have moved, later ones positive; gain_step, few_prompts:
    /// relative change; silent_units: how many; noisy_crystal: its counts over the median of its unit.
    double size = 0;
    std::uint32_t part = 0;  ///< silent_units: the first one; noisy_crystal: the crystal
    double since_s = 0;      ///< of the run, or detector time outside runs: begin of the first second with it

    /// "module 7: times moved by 1.02 ns since 12.0 s"
    [[nodiscard]] std::string text() const;
};

/// One thread at a time.
class DetectorWatch {
  public:
    DetectorWatch(const config::Geometry& geometry, std::uint64_t ticks_per_s);

    /// A run starts: the seconds from here on are its own.
    void start_run(std::uint64_t ticks);
    void end_run();
    void observe(const Second& second);
    /// In the latest second; the largest of a kind first.
    [[nodiscard]] const std::shared_ptr<const std::vector<DetectorFault>>& faults() const { return faults_; }

  private:
    using Kind = DetectorFault::Kind;
    /// Sums over a module.
    struct Sums {
        double ends = 0;        ///< of prompts
        double trues = 0;       ///< of these, but for the randoms to be expected
        double dt = 0;          ///< ticks
        double dt_squared = 0;  ///< ticks^2
        double peak = 0;
        double peak_energy = 0;  ///< keV
        double singles = 0;

        Sums& operator+=(const Sums& o);
    };
    struct Value {
        double mean = 0;
        double variance = 0;  ///< of the mean
    };
    using Modules = std::vector<Sums>;

    [[nodiscard]] Modules modules_of(const Second& second) const;
    void count_units(const Second& second);
    void find_silent();
    void find_noisy(const Second& second);
    void compare_modules();
    template <class Measure>
    void compare(Kind kind, double limit, const Measure& measure);
    void extend_baseline(double length_s);
    [[nodiscard]] bool has(Kind kind, std::uint32_t bdm) const;
    void add(Kind kind, std::uint32_t bdm, double size, std::uint32_t part = 0);
    void publish(double begin_s);

    const config::Geometry geometry_;
    const double ticks_per_s_;
    std::vector<std::uint32_t> crystals_;  ///< by detector unit
    std::vector<std::uint8_t> module_of_crystal_;

    std::optional<std::uint64_t> run_start_;
    bool first_second_ = false;  ///< of the run has passed
    double baseline_s_ = 0;
    Modules baseline_;
    std::vector<double> baseline_units_;
    std::deque<Modules> recent_;         ///< the latest at the end
    std::vector<double> units_;          ///< counts in the latest second
    std::vector<std::uint32_t> counts_;  ///< of the crystals of a unit

    std::vector<DetectorFault> found_;
    std::map<std::pair<Kind, std::uint32_t>, double> since_;
    std::shared_ptr<const std::vector<DetectorFault>> faults_;
};

}  // namespace petacq::daemon
