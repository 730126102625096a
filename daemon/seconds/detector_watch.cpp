#include "daemon/seconds/detector_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace petacq::daemon {

namespace {

/// ns. Half of the smallest step to be found, so that a second that is off for half of its time shows it. A
/// source would have to move by 7 cm.
constexpr double time_limit = 0.5;
/// Less than half of a step of 2 %, since scatter in the range of the peak does not move with it. The warming
/// up of a detector stays below.
constexpr double gain_limit = 0.0075;
/// A module that is off by more than the window loses all its true prompts. A source that moves changes less.
constexpr double prompts_limit = 0.3;
/// A hundred modules, three measures and a day of seconds are 3e7 comparisons, of which 0.06 exceed 6 sigma.
constexpr double sigmas = 6;
/// A reported fault lasts until its size falls below this share of the limit.
constexpr double hysteresis = 0.7;
/// Seconds. Long enough that the baseline adds little noise.
constexpr double longest_baseline = 10;
constexpr std::size_t most_recent = 8;
/// Counts: none or half of them is no chance.
constexpr double enough_singles = 100;
/// Sensitivity, geometry and intensity vary by less within a unit.
constexpr double noisy_ratio = 5;
/// keV. The standard deviation in a range of 204 keV with one peak is at most that of an even spread.
constexpr double peak_spread = 59;

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

std::string DetectorFault::text() const {
    const auto since = fmt::format("since {:.1f} s", since_s);
    switch (kind) {
        case Kind::time_step:
            return fmt::format("module {}: its times moved by {:+.2f} ns {}", bdm, size, since);
        case Kind::gain_step:
            return fmt::format("module {}: its photopeak moved by {:+.2f} % {}", bdm, 100 * size, since);
        case Kind::few_prompts:
            return fmt::format("module {}: its prompts per single changed by {:+.0f} % {}", bdm, 100 * size,
                               since);
        case Kind::silent_units:
            return size > 1 ? fmt::format("module {}: {:.0f} detector units from unit {} do not count {}",
                                          bdm, size, part, since)
                            : fmt::format("module {}: detector unit {} does not count {}", bdm, part, since);
        case Kind::noisy_crystal:
            return fmt::format("module {}: crystal {} counts {:.0f} times as much as its neighbours {}", bdm,
                               part, size, since);
    }
    return "";
}

DetectorWatch::DetectorWatch(const config::Geometry& geometry, std::uint64_t ticks_per_s)
    : geometry_(geometry),
      ticks_per_s_(static_cast<double>(ticks_per_s)),
      module_of_crystal_(gpu::modules_of_crystals(geometry)),
      faults_(std::make_shared<std::vector<DetectorFault>>()) {
    for (std::uint32_t bdm = 0; bdm < geometry.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < geometry.du_count; ++du) {
            for (std::uint32_t local = 0; local < geometry.crystals_per_du(); ++local)
                crystals_.push_back(geometry.crystal(bdm, du, local));
        }
    }
    end_run();
}

void DetectorWatch::start_run(std::uint64_t ticks) {
    end_run();
    run_start_ = ticks;
}

void DetectorWatch::end_run() {
    run_start_.reset();
    first_second_ = false;
    baseline_s_ = 0;
    baseline_.assign(geometry_.bdm_count, {});
    baseline_units_.assign(std::size_t{geometry_.bdm_count} * geometry_.du_count, 0);
    recent_.clear();
    since_.clear();
    faults_ = std::make_shared<std::vector<DetectorFault>>();
}

DetectorWatch::Sums& DetectorWatch::Sums::operator+=(const Sums& o) {
    ends += o.ends;
    trues += o.trues;
    dt += o.dt;
    dt_squared += o.dt_squared;
    peak += o.peak;
    peak_energy += o.peak_energy;
    singles += o.singles;
    return *this;
}

void DetectorWatch::observe(const Second& second) {
    found_.clear();
    count_units(second);
    find_noisy(second);
    find_silent();
    if (run_start_) {
        recent_.push_back(modules_of(second));
        if (recent_.size() > most_recent) recent_.pop_front();
        compare_modules();
        extend_baseline(second.length_s);
    }
    const double start = run_start_ ? static_cast<double>(*run_start_) : 0;
    publish((static_cast<double>(second.range.start) - start) / ticks_per_s_);
}

DetectorWatch::Modules DetectorWatch::modules_of(const Second& second) const {
    Modules modules(geometry_.bdm_count);
    for (std::size_t i = 0; i < module_of_crystal_.size(); ++i) {
        Sums& m = modules[module_of_crystal_[i]];
        m.ends += second.sums.prompts[i];
        m.trues += second.sums.prompts[i];
        m.singles += second.sums.unpaired[i];
        m.singles += second.sums.grouped[i];
        if (!second.randoms.per_crystal.empty()) m.trues -= second.randoms.per_crystal[i];
    }
    for (std::size_t bdm = 0; bdm < modules.size(); ++bdm) {
        const gpu::PromptEnds& ends = second.sums.modules[bdm];
        modules[bdm].dt = static_cast<double>(static_cast<std::int64_t>(ends.dt));
        modules[bdm].dt_squared = static_cast<double>(ends.dt_squared);
        modules[bdm].peak = static_cast<double>(ends.peak);
        modules[bdm].peak_energy = static_cast<double>(ends.peak_energy) / 16;
    }
    return modules;
}

void DetectorWatch::count_units(const Second& second) {
    units_.assign(baseline_units_.size(), 0);
    const std::size_t crystals_per_du = geometry_.crystals_per_du();
    for (std::size_t i = 0; i < crystals_.size(); ++i) {
        const std::uint32_t crystal = crystals_[i];
        units_[i / crystals_per_du] += second.sums.unpaired[crystal];
        units_[i / crystals_per_du] += second.sums.grouped[crystal];
    }
}

/// A unit is silent if it has nothing while units have a hundred, or less than half of what the growth of its
/// module since the start of the run lets expect. Noise is no such growth.
void DetectorWatch::find_silent() {
    const double usual = median(units_);
    std::vector<double> growth;
    for (std::uint32_t bdm = 0; bdm < geometry_.bdm_count; ++bdm) {
        const std::size_t first = std::size_t{bdm} * geometry_.du_count;
        growth.clear();
        for (std::size_t u = first; u < first + geometry_.du_count; ++u) {
            if (baseline_units_[u] > 0) growth.push_back(units_[u] / baseline_units_[u]);
        }
        const double of_module = has(Kind::noisy_crystal, bdm) ? 0 : median(growth);
        std::uint32_t silent = 0;
        std::uint32_t first_silent = 0;
        for (std::uint32_t du = 0; du < geometry_.du_count; ++du) {
            const double expected = of_module * baseline_units_[first + du];
            const bool none = units_[first + du] == 0 && usual >= enough_singles;
            const bool few = baseline_units_[first + du] >= enough_singles && expected >= enough_singles &&
                             units_[first + du] < expected / 2;
            if ((none || few) && silent++ == 0) first_silent = du;
        }
        if (silent > 0) add(Kind::silent_units, bdm, silent, first_silent);
    }
}

/// The noisiest crystal of each module.
void DetectorWatch::find_noisy(const Second& second) {
    const std::size_t n = geometry_.crystals_per_du();
    constexpr std::size_t fewest = 8;  // a median of fewer says little
    if (n < fewest) return;
    for (std::uint32_t bdm = 0; bdm < geometry_.bdm_count; ++bdm) {
        double ratio = 0;
        std::uint32_t noisiest = 0;
        for (std::size_t du = 0; du < geometry_.du_count; ++du) {
            const auto* const crystals = &crystals_[(std::size_t{bdm} * geometry_.du_count + du) * n];
            counts_.clear();
            for (std::size_t i = 0; i < n; ++i)
                counts_.push_back(second.sums.unpaired[crystals[i]] + second.sums.grouped[crystals[i]]);
            const auto most = std::max_element(counts_.begin(), counts_.end());
            const double count = *most;
            const std::uint32_t crystal = crystals[most - counts_.begin()];
            const auto middle = counts_.begin() + static_cast<std::ptrdiff_t>(n / 2);
            std::nth_element(counts_.begin(), middle, counts_.end());
            // A median of 0 may stand for a mean of almost 1.
            const double usual = *middle + 1.0;
            if (count < noisy_ratio * usual + 2 * sigmas * std::sqrt(usual) || count / usual <= ratio)
                continue;
            ratio = count / usual;
            noisiest = crystal;
        }
        if (ratio > 0) add(Kind::noisy_crystal, bdm, ratio, noisiest);
    }
}

void DetectorWatch::compare_modules() {
    if (baseline_s_ == 0) return;
    const double tick_ns = 1e9 / ticks_per_s_;
    // The time of the other single less that of this one: a module whose times are late makes it smaller.
    // Random prompts have a mean of 0, whatever the clocks.
    compare(Kind::time_step, time_limit, [tick_ns](const Sums& m, const Sums&) -> std::optional<Value> {
        if (m.ends < 2 || m.trues < m.ends / 100) return {};
        const double spread = std::max(m.dt_squared - m.dt * m.dt / m.ends, 1.0);
        return Value{-m.dt / m.trues * tick_ns, spread / (m.trues * m.trues) * tick_ns * tick_ns};
    });
    // The logarithm: its change is the relative one.
    compare(Kind::gain_step, gain_limit, [](const Sums& m, const Sums&) -> std::optional<Value> {
        if (m.peak < 2) return {};
        const double mean = m.peak_energy / m.peak;
        return Value{std::log(mean), peak_spread * peak_spread / (mean * mean * m.peak)};
    });
    const bool module_silent = std::any_of(found_.begin(), found_.end(), [&](const DetectorFault& f) {
        return f.kind == Kind::silent_units && f.size == geometry_.du_count;
    });
    if (module_silent) return;  // its partners have fewer prompts, too
    compare(Kind::few_prompts, prompts_limit, [](const Sums& m, const Sums& all) -> std::optional<Value> {
        if (m.singles < enough_singles || all.ends <= 0) return {};
        const double usual = m.singles * all.ends / all.singles;
        return Value{m.ends / usual, (m.ends + 1) / (usual * usual)};
    });
}

/// `measure` makes a value of the sums of a module and of all.
template <class Measure>
void DetectorWatch::compare(Kind kind, double limit, const Measure& measure) {
    const auto total = [](const Modules& modules) {
        Sums all;
        for (const Sums& m : modules)
            all += m;
        return all;
    };
    Modules several(geometry_.bdm_count);
    for (const Modules& modules : recent_) {
        for (std::size_t bdm = 0; bdm < several.size(); ++bdm)
            several[bdm] += modules[bdm];
    }
    const Sums all_before = total(baseline_);
    const Sums all_now = total(recent_.back());
    const Sums all_several = total(several);

    std::vector<std::pair<double, std::uint32_t>> changes;
    for (std::uint32_t bdm = 0; bdm < geometry_.bdm_count; ++bdm) {
        const auto before = measure(baseline_[bdm], all_before);
        auto now = measure(recent_.back()[bdm], all_now);
        if (!now || sigmas * std::sqrt(now->variance) > limit) now = measure(several[bdm], all_several);
        if (!before || !now) continue;
        double change = now->mean - before->mean;
        double error = sigmas * std::sqrt(now->variance + before->variance);
        if (kind == Kind::gain_step) change = std::expm1(change);
        if (kind == Kind::few_prompts) {
            if (before->mean <= 0) continue;
            change = change / before->mean;
            error = error / before->mean;
            // Where one module has fewer, others have relatively more. Noise adds singles.
            if (change > 0 || has(Kind::noisy_crystal, bdm)) continue;
        }
        const double least = limit * (since_.count({kind, bdm}) > 0 ? hysteresis : 1);
        if (std::abs(change) >= std::max(least, error)) changes.emplace_back(change, bdm);
    }
    std::sort(changes.begin(), changes.end(),
              [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
    // How far the modules reported so far may have moved their partners, up and down.
    double up = 0;
    double down = 0;
    for (const auto& [change, bdm] : changes) {
        const bool is_up = change > 0;
        if (std::abs(change) < (is_up ? up : down)) continue;
        add(kind, bdm, change);
        if (kind == Kind::time_step) (is_up ? down : up) += std::abs(change) / 2;
        if (kind == Kind::few_prompts) down += std::abs(change) / 2;
    }
}

/// With the latest second, if no module has moved in it.
void DetectorWatch::extend_baseline(double length_s) {
    const Modules& latest = recent_.back();
    const bool anything =
        std::any_of(latest.begin(), latest.end(), [](const Sums& m) { return m.singles > 0; });
    const bool moved = std::any_of(found_.begin(), found_.end(), [](const DetectorFault& f) {
        return f.kind != Kind::silent_units && f.kind != Kind::noisy_crystal;
    });
    if (!anything || moved || baseline_s_ >= longest_baseline) return;
    if (!std::exchange(first_second_, true)) return recent_.clear();
    baseline_s_ += length_s;
    for (std::size_t bdm = 0; bdm < latest.size(); ++bdm)
        baseline_[bdm] += latest[bdm];
    for (std::size_t unit = 0; unit < units_.size(); ++unit)
        baseline_units_[unit] += units_[unit];
}

bool DetectorWatch::has(Kind kind, std::uint32_t bdm) const {
    return std::any_of(found_.begin(), found_.end(),
                       [&](const DetectorFault& f) { return f.kind == kind && f.bdm == bdm; });
}

void DetectorWatch::add(Kind kind, std::uint32_t bdm, double size, std::uint32_t part) {
    found_.push_back({kind, bdm, size, part, 0});
}

void DetectorWatch::publish(double begin_s) {
    decltype(since_) since;
    for (DetectorFault& fault : found_) {
        const std::pair key{fault.kind, fault.bdm};
        const auto before = since_.find(key);
        fault.since_s = before != since_.end() ? before->second : begin_s;
        since.emplace(key, fault.since_s);
    }
    since_ = std::move(since);
    faults_ = std::make_shared<std::vector<DetectorFault>>(found_);
}

}  // namespace petacq::daemon
