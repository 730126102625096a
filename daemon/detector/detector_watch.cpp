#include "daemon/detector/detector_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "config/median.hpp"

namespace petacq::daemon {

namespace {

/// ns. Half of the smallest step to be found, so that a second that is off for half of its time shows it. A
/// source would have to move by 7 cm.
constexpr double time_limit = 0.5;
/// Less than half of a step of 2 %, since scatter in the range of the peak does not move with it. The warming
/// up of a detector stays below.
constexpr double gain_limit = 0.0075;
/// A module that is off by more than the window loses all its true prompts.
constexpr double prompts_limit = 0.5;
/// A hundred modules with three measures, each compared twice, with the start and with the reference: 1e8
/// comparisons a day, of which 0.01 exceed 6.5 sigma.
constexpr double sigmas = 6.5;
/// A reported fault lasts until its size falls below this share of the limit.
constexpr double hysteresis = 0.7;
constexpr std::size_t max_recent = 8;
/// Counts: none or a third of them is no chance.
constexpr double enough_singles = 100;
/// More or fewer singles by this factor, and by this many sigma: the source has moved.
constexpr double moved_singles = 1.3;
constexpr double moved_sigmas = 4;
/// A unit that counts less than this share of the singles expected of it is silent. A source that moves away
/// leaves more.
constexpr double silent_share = 0.3;
/// Sensitivity, geometry and intensity vary by less within a unit.
constexpr double noisy_ratio = 5;
/// keV. The standard deviation of the energies in the range of the peak, also where its width is 20 % and a
/// fifth of them are spread evenly.
constexpr double peak_spread = 45;
/// Ends of prompts. The mean of as many is normally distributed.
constexpr double enough_ends = 30;

/// "BDM 7 (source 3)"
std::string board_text(std::uint32_t bdm, std::optional<std::uint16_t> source) {
    return source ? fmt::format("BDM {} (source {})", bdm, *source) : fmt::format("BDM {}", bdm);
}

/// [unit] its row around the ring. Units of the long form are in one row if their middles are at the same z
/// and their modules among as many around the axis: those of an insert and of the ring around it see a source
/// that moves along the axis differently.
std::vector<std::uint32_t> rows_of_units(const config::Geometry& g) {
    std::vector<std::uint32_t> rows(g.unit_count());
    if (g.is_ring()) {
        for (std::uint32_t u = 0; u < rows.size(); ++u) {
            const std::uint32_t ring = u / g.du_count / g.modules_in_ring();
            rows[u] = ring * g.blocks.z + u % g.du_count % g.blocks.z;
        }
        return rows;
    }
    std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> known;
    for (std::uint32_t u = 0; u < rows.size(); ++u) {
        const std::uint32_t count = g.crystals_of_unit(u);
        if (count == 0) continue;
        std::int64_t z_um = 0;
        std::uint32_t around = 0;
        for (std::uint32_t local = 0; local < count; ++local) {
            const auto& crystal = g.pairs->crystals[g.crystal(u / g.du_count, u % g.du_count, local)];
            z_um += crystal.z_um;
            around = g.pairs->groups[crystal.group].around_of;
        }
        const auto tenths = static_cast<std::int64_t>(std::lround(static_cast<double>(z_um) / count / 100));
        rows[u] =
            known.emplace(std::pair(around, tenths), static_cast<std::uint32_t>(known.size())).first->second;
    }
    return rows;
}

}  // namespace

std::string DetectorFault::text() const {
    if (kind == FaultKind::out_of_step || kind == FaultKind::no_partners) return what();
    return fmt::format("{} since {:.1f} s", what(), since_s);
}

std::string DetectorFault::what() const {
    switch (kind) {
        case FaultKind::time_step:
            return fmt::format("BDM {}: its times moved by {:+.2f} ns", bdm, size);
        case FaultKind::gain_step:
            return fmt::format("BDM {}: its photopeak moved by {:+.2f} %", bdm, 100 * size);
        case FaultKind::few_prompts:
            return fmt::format("BDM {}: its prompts per single changed by {:+.0f} %", bdm, 100 * size);
        case FaultKind::time_off:
            return fmt::format("BDM {}: its times differ by {:+.2f} ns from the reference", bdm, size);
        case FaultKind::gain_off:
            return fmt::format("BDM {}: its photopeak differs by {:+.2f} % from the reference", bdm,
                               100 * size);
        case FaultKind::prompts_off:
            return fmt::format("BDM {}: its prompts per single differ by {:+.0f} % from the reference", bdm,
                               100 * size);
        case FaultKind::silent_units:
            return size > 1
                       ? fmt::format("BDM {}: {:.0f} DUs, the first DU {}, do not count", bdm, size, part)
                       : fmt::format("BDM {}: DU {} does not count", bdm, part);
        case FaultKind::noisy_crystal:
            return fmt::format("BDM {}: crystal {} counts {:.0f} times as much as its neighbours", bdm, part,
                               size);
        case FaultKind::out_of_step:
            return fmt::format(
                "{} is {:.1f} ns {} against the others: {}; add {:+.1f} ns ({:+d} ticks) to its time offsets",
                board_text(bdm, source), std::abs(size), size > 0 ? "late" : "early",
                loses_prompts ? "its prompts are lost" : "it loses prompts at the edge of the window", -size,
                add_ticks);
        case FaultKind::no_partners:
            return fmt::format(
                "{} has no coincidences with the others at all: it is out of step by more than {:g} us, or "
                "sees no source",
                board_text(bdm, source), size * 1e-3);
    }
    return "";
}

void note_faults(std::vector<DetectorFault>& seen, const std::vector<DetectorFault>& now) {
    for (const DetectorFault& fault : now) {
        const auto known = std::find_if(seen.begin(), seen.end(), [&](const DetectorFault& f) {
            return f.kind == fault.kind && f.bdm == fault.bdm;
        });
        if (known == seen.end()) {
            seen.push_back(fault);
        } else if (std::abs(fault.size) > std::abs(known->size)) {
            *known = fault;
        }
    }
}

DetectorWatch::DetectorWatch(const config::Geometry& geometry, std::uint64_t ticks_per_s,
                             std::shared_ptr<const DetectorBaseline> reference)
    : geometry_(geometry),
      ticks_per_s_(static_cast<double>(ticks_per_s)),
      reference_(std::move(reference)),
      crystals_(crystals_by_unit(geometry)),
      rows_(rows_of_units(geometry)),
      faults_(std::make_shared<std::vector<DetectorFault>>()) {
    end_run();
}

void DetectorWatch::start_run(std::uint64_t ticks) {
    end_run();
    run_start_ = ticks;
}

void DetectorWatch::end_run() {
    run_start_.reset();
    first_second_ = false;
    baseline_ = {0, DetectorSums::none(geometry_)};
    usual_units_.assign(baseline_.sums.units.size(), 0);
    recent_.clear();
    since_.clear();
    faults_ = std::make_shared<std::vector<DetectorFault>>();
}

void DetectorWatch::observe(const Second& second, const SynchronyReport* synchrony) {
    found_.clear();
    latest_ = detector_sums(second, geometry_, crystals_);
    find_noisy(second);
    find_silent();
    if (synchrony != nullptr) find_out_of_step(*synchrony);
    if (run_start_) {
        recent_.push_back(latest_);
        if (recent_.size() > max_recent) recent_.pop_front();
        compare_modules();
        extend_baseline(second.length_s);
    }
    const double start = run_start_ ? static_cast<double>(*run_start_) : 0;
    publish((static_cast<double>(second.range.start) - start) / ticks_per_s_);
}

/// A unit is silent if it has nothing while units have a hundred, or, in a run, less than 30 % of what it had
/// while it was well, scaled like its module since then. Noise is no such growth.
void DetectorWatch::find_silent() {
    const std::vector<UnitSums>& now = latest_.units;
    std::vector<double> counts;
    counts.reserve(now.size());
    for (std::uint32_t u = 0; u < now.size(); ++u)
        if (exists(u)) counts.push_back(now[u].singles);
    const double usual = config::median(std::move(counts));
    std::vector<double> growth;
    for (std::uint32_t bdm = 0; bdm < geometry_.bdm_count; ++bdm) {
        const std::size_t first = std::size_t{bdm} * geometry_.du_count;
        growth.clear();
        for (std::size_t u = first; u < first + geometry_.du_count; ++u) {
            if (usual_units_[u] > 0) growth.push_back(now[u].singles / usual_units_[u]);
        }
        const double of_module = has(FaultKind::noisy_crystal, bdm) ? 0 : config::median(growth);
        std::uint32_t silent = 0;
        std::uint32_t first_silent = 0;
        for (std::uint32_t du = 0; du < geometry_.du_count; ++du) {
            const std::size_t u = first + du;
            if (!exists(u)) continue;
            const double expected = of_module * usual_units_[u];
            const bool none = now[u].singles == 0 && usual >= enough_singles;
            const bool few = expected >= enough_singles && now[u].singles < silent_share * expected;
            if ((none || few) && silent++ == 0) first_silent = du;
            if (!run_start_) continue;
            // Nothing can be scaled from a few counts, such as those of the part of a second in which a run
            // starts.
            const double known = now[u].singles >= enough_singles ? now[u].singles : 0;
            usual_units_[u] = none || few ? expected : known;
        }
        if (silent > 0) add(FaultKind::silent_units, bdm, silent, first_silent);
    }
}

/// The noisiest crystal of each module.
void DetectorWatch::find_noisy(const Second& second) {
    constexpr std::size_t fewest = 8;  // a median of fewer says little
    const std::uint32_t* crystals = crystals_.data();
    for (std::uint32_t bdm = 0; bdm < geometry_.bdm_count; ++bdm) {
        double ratio = 0;
        std::uint32_t noisiest = 0;
        for (std::uint32_t du = 0; du < geometry_.du_count; ++du) {
            const std::size_t n = geometry_.crystals_of_unit(bdm * geometry_.du_count + du);
            const std::uint32_t* const of_unit = std::exchange(crystals, crystals + n);
            if (n < fewest) continue;
            counts_.clear();
            for (std::size_t i = 0; i < n; ++i)
                counts_.push_back(second.sums.unpaired[of_unit[i]] + second.sums.grouped[of_unit[i]]);
            const auto most = std::max_element(counts_.begin(), counts_.end());
            const double count = *most;
            const std::uint32_t crystal = of_unit[most - counts_.begin()];
            // A median of 0 may stand for a mean of almost 1.
            const double usual = config::median(counts_) + 1.0;
            if (count < noisy_ratio * usual + 2 * sigmas * std::sqrt(usual) || count / usual <= ratio)
                continue;
            ratio = count / usual;
            noisiest = crystal;
        }
        if (ratio > 0) add(FaultKind::noisy_crystal, bdm, ratio, noisiest);
    }
}

void DetectorWatch::find_out_of_step(const SynchronyReport& report) {
    const double tick_ns = 1e9 / ticks_per_s_;
    for (std::uint32_t bdm = 0; bdm < report.modules.size(); ++bdm) {
        const ModuleSynchrony& module = report.modules[bdm];
        const bool off = module.state == ModuleSynchrony::SynchronyState::out_of_step;
        if (!off && module.state != ModuleSynchrony::SynchronyState::no_partners) continue;
        add(off ? FaultKind::out_of_step : FaultKind::no_partners, bdm,
            (off ? module.late_ticks : report.reach_ticks) * tick_ns);
        DetectorFault& fault = found_.back();
        fault.source = module.source;
        if (!off) continue;
        fault.add_ticks = -std::llround(module.late_ticks);
        fault.loses_prompts = std::abs(module.late_ticks) > static_cast<double>(report.window_ticks);
    }
}

void DetectorWatch::compare_modules() {
    several_ = DetectorSums::none(geometry_);
    for (const DetectorSums& second : recent_)
        several_ += second;
    const bool module_silent = std::any_of(found_.begin(), found_.end(), [&](const DetectorFault& f) {
        return f.kind == FaultKind::silent_units && f.size == units_of(f.bdm);
    });
    const auto compare_with = [&](const DetectorBaseline& with, FaultKind times, FaultKind gains,
                                  FaultKind prompts) {
        compare_times(times, with);
        compare_gains(gains, with);
        if (!module_silent) compare_prompts(prompts, with);  // its partners have fewer, too
    };
    if (baseline_.length_s > 0)
        compare_with(baseline_, FaultKind::time_step, FaultKind::gain_step, FaultKind::few_prompts);
    if (reference_ && first_second_)
        compare_with(*reference_, FaultKind::time_off, FaultKind::gain_off, FaultKind::prompts_off);
}

/// The time of the other single less that of this one: a module whose times are late makes it smaller.
void DetectorWatch::compare_times(FaultKind kind, const DetectorBaseline& with) {
    const double tick_ns = 1e9 / ticks_per_s_;
    // That of a few ends of one module says little, so it counts as at least that of all modules.
    const auto spread_of = [](const ModuleTable& modules) {
        ModuleSums all;
        for (const ModuleSums& m : modules)
            all += m;
        return all.ends > 0 ? std::max(all.dt_squared / all.ends, 1.0) : 1.0;
    };
    const auto value = [&](const ModuleSums& m, double spread_of_all) -> std::optional<Value> {
        const auto mean = m.mean_dt();
        if (!mean || m.ends < enough_ends) return {};
        const double spread = std::max(spread_of_all, m.dt_squared / m.ends);
        return Value{-*mean * tick_ns, m.ends * spread / (m.trues * m.trues) * tick_ns * tick_ns};
    };
    const double spread_before = spread_of(with.sums.modules);
    compare(kind, time_limit, [&](const DetectorSums& now, std::uint32_t bdm) -> std::optional<Value> {
        const auto before = value(with.sums.modules[bdm], spread_before);
        const auto after = value(now.modules[bdm], spread_of(now.modules));
        if (!before || !after) return {};
        return Value{after->mean - before->mean, after->variance + before->variance};
    });
}

void DetectorWatch::compare_gains(FaultKind kind, const DetectorBaseline& with) {
    const auto variance = [](const ModuleSums& m) { return peak_spread * peak_spread / m.peak; };
    compare(kind, gain_limit, [&](const DetectorSums& now, std::uint32_t bdm) -> std::optional<Value> {
        const ModuleSums& before = with.sums.modules[bdm];
        const ModuleSums& after = now.modules[bdm];
        if (before.peak < enough_ends || after.peak < enough_ends) return {};
        const double keV = *before.photopeak_keV();
        return Value{*after.photopeak_keV() / keV - 1, (variance(after) + variance(before)) / (keV * keV)};
    });
}

/// True prompts of each unit: the least of what its singles, its row, and the singles and its row together
/// let expect.
std::vector<std::optional<double>> DetectorWatch::expected_trues(const DetectorSums& now,
                                                                 const DetectorBaseline& with) const {
    const std::vector<UnitSums>& before = with.sums.units;
    // Changes since the baseline.
    const std::size_t rows = *std::max_element(rows_.begin(), rows_.end()) + std::size_t{1};
    std::vector<double> singles;
    std::vector<std::vector<double>> trues(rows);
    std::vector<std::vector<double>> per_single(rows);
    for (std::size_t u = 0; u < before.size(); ++u) {
        if (before[u].singles <= 0 || now.units[u].singles <= 0) continue;
        singles.push_back(now.units[u].singles / before[u].singles);
        if (before[u].trues <= 0) continue;
        trues[rows_[u]].push_back(now.units[u].trues / before[u].trues);
        per_single[rows_[u]].push_back(trues[rows_[u]].back() / singles.back());
    }
    const double usual = config::median(std::move(singles));
    std::vector<double> usual_trues(rows);
    std::vector<double> usual_per_single(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        usual_trues[row] = config::median(std::move(trues[row]));
        usual_per_single[row] = config::median(std::move(per_single[row]));
    }
    std::vector<std::optional<double>> expected(before.size(), 0);
    for (std::size_t u = 0; u < before.size(); ++u) {
        if (before[u].singles <= 0 || now.units[u].singles <= 0) continue;
        const double change = now.units[u].singles / before[u].singles;
        const double noise = moved_sigmas * std::sqrt(1 / before[u].singles + 1 / now.units[u].singles);
        if (std::abs(std::log(change / usual)) > std::log(moved_singles) + noise) {
            expected[u].reset();
        } else if (before[u].trues > 0) {
            const double per_one = std::min(usual_per_single[rows_[u]], 1.0);
            const double scale = std::min(usual_trues[rows_[u]], per_one * change);
            expected[u] = std::max(scale, 0.0) * before[u].trues;
        }
    }
    return expected;
}

void DetectorWatch::compare_prompts(FaultKind kind, const DetectorBaseline& with) {
    const auto in_latest = expected_trues(latest_, with);
    const auto in_several = expected_trues(several_, with);
    compare(kind, prompts_limit, [&](const DetectorSums& now, std::uint32_t bdm) -> std::optional<Value> {
        const ModuleSums& before = with.sums.modules[bdm];
        const ModuleSums& after = now.modules[bdm];
        if (!before.has_trues() || before.ends < enough_ends || after.singles < enough_singles) return {};
        const auto& expected = &now == &several_ ? in_several : in_latest;
        const std::size_t first = std::size_t{bdm} * geometry_.du_count;
        double sum = 0;
        for (std::size_t u = first; u < first + geometry_.du_count; ++u) {
            if (!expected[u]) return {};
            const bool keeps = now.units[u].trues > (1 - hysteresis * prompts_limit) * *expected[u];
            if (*expected[u] > 0 && keeps) return {};
            sum += *expected[u];
        }
        if (sum < enough_ends) return {};
        const double variance = sum + std::max(after.ends - after.trues, 0.0) +
                                sum * sum * before.ends / (before.trues * before.trues);
        // Where one module has fewer, others have relatively more.
        return Value{std::min(after.trues / sum - 1, 0.0), variance / (sum * sum)};
    });
}

/// `change_of` gives the change of a module from the baseline to the sums.
template <class ChangeOf>
void DetectorWatch::compare(FaultKind kind, double limit, const ChangeOf& change_of) {
    std::vector<ModuleChange> changes;
    for (std::uint32_t bdm = 0; bdm < geometry_.bdm_count; ++bdm) {
        const double least = limit * (since_.count({kind, bdm}) > 0 ? hysteresis : 1);
        for (const DetectorSums* const now : {&latest_, &several_}) {
            const std::optional<Value> change = change_of(*now, bdm);
            const double error = change ? sigmas * std::sqrt(change->variance) : 0;
            if (change && std::abs(change->mean) >= std::max(least, error)) {
                changes.push_back({change->mean, bdm});
                break;
            }
            if (change && error <= limit) break;  // the latest second is enough
        }
    }
    std::sort(changes.begin(), changes.end(), [](const ModuleChange& a, const ModuleChange& b) {
        return std::abs(a.size) > std::abs(b.size);
    });
    // How far the modules reported so far may have moved their partners, up and down.
    double up = 0;
    double down = 0;
    for (const auto& [size, bdm] : changes) {
        const bool is_up = size > 0;
        if (std::abs(size) < (is_up ? up : down)) continue;
        add(kind, bdm, size);
        if (kind == FaultKind::time_step || kind == FaultKind::time_off)
            (is_up ? down : up) += std::abs(size) / 2;
        if (kind == FaultKind::few_prompts || kind == FaultKind::prompts_off) down += std::abs(size) / 2;
    }
}

/// With the latest second, if no module has moved in it.
void DetectorWatch::extend_baseline(double length_s) {
    const bool anything = std::any_of(latest_.units.begin(), latest_.units.end(),
                                      [](const UnitSums& unit) { return unit.singles > 0; });
    const bool moved = std::any_of(found_.begin(), found_.end(), [](const DetectorFault& f) {
        return f.kind == FaultKind::time_step || f.kind == FaultKind::gain_step ||
               f.kind == FaultKind::few_prompts;
    });
    if (!anything || moved || baseline_.length_s >= longest_baseline_s) return;
    if (!std::exchange(first_second_, true)) return recent_.clear();
    baseline_.length_s += length_s;
    baseline_.sums += latest_;
}

double DetectorWatch::units_of(std::uint32_t bdm) const {
    double count = 0;
    for (std::uint32_t du = 0; du < geometry_.du_count; ++du)
        if (exists(std::size_t{bdm} * geometry_.du_count + du)) ++count;
    return count;
}

bool DetectorWatch::has(FaultKind kind, std::uint32_t bdm) const {
    return std::any_of(found_.begin(), found_.end(),
                       [&](const DetectorFault& f) { return f.kind == kind && f.bdm == bdm; });
}

void DetectorWatch::add(FaultKind kind, std::uint32_t bdm, double size, std::uint32_t part) {
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
