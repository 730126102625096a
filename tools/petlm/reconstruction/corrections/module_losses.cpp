#include "tools/petlm/reconstruction/corrections/module_losses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "config/base/sum.hpp"
#include "tools/petlm/reconstruction/corrections/found_decays.hpp"
#include "tools/petlm/records/covered_seconds.hpp"

namespace petacq::petlm {
namespace {

constexpr int rounds = 4;
constexpr double min_seen = 0.01;       // by a unit
constexpr double min_delivered = 0.02;  // with less, the trues of a moment are taken from those around it

using config::sum_of;

}  // namespace

ModuleLosses::ModuleLosses(const config::Scanner& scanner, double min_ticks)
    : modules_(scanner.geometry.bdm_count),
      turns_(scanner.rotation.has_value()),
      sectors_(gpu::Sectors::of(scanner.geometry)),
      units_(scanner.geometry.du_count),
      unit_of_(units_of_crystals(scanner.geometry)),
      board_(modules_),
      told_(modules_),
      min_ticks_(min_ticks),
      open_(none()),
      prompts_(modules_ > max_modules ? 0 : modules_ * modules_),
      exists_(modules_ * units_),
      has_singles_(modules_ * units_) {
    for (const std::uint32_t unit : unit_of_)
        exists_[unit] = true;
    // A module that no board lists, or several, is one of its own.
    std::vector<std::size_t> boards(modules_);
    for (std::size_t board = 0; board < scanner.sources.size(); ++board) {
        for (const std::uint32_t bdm : scanner.sources[board].bdms) {
            if (bdm >= modules_) continue;
            ++boards[bdm];
            board_[bdm] = modules_ + board;
        }
    }
    for (std::size_t m = 0; m < modules_; ++m)
        if (boards[m] != 1) board_[m] = m;
}

ModuleLosses::LossMoment ModuleLosses::none() const {
    LossMoment moment;
    for (std::vector<double>* of_modules : {&moment.live, &moment.seen, &moment.silent})
        of_modules->resize(modules_);
    moment.unit_seen.resize(modules_ * units_);
    return moment;
}

void ModuleLosses::add(const daemon::SecondsReader& seconds, double ticks, double share, double trues,
                       const std::vector<std::uint32_t>& module_pairs) {
    if (modules_ > max_modules) return;
    const auto field_of = [&](const char* name) {
        const daemon::SecondField* const field = seconds.find(name);
        return field != nullptr && field->count == modules_ ? field : nullptr;
    };
    const daemon::SecondField* const dead = field_of("module_dead_time");
    const daemon::SecondField* const live = field_of("module_live");
    const daemon::SecondField* const singles = field_of("module_singles");
    for (std::size_t m = 0; m < modules_; ++m) {
        const double of_module =
            live != nullptr ? seconds.values(*live).number(m) : std::numeric_limits<double>::quiet_NaN();
        double arrived = 0;
        if (!std::isnan(of_module)) {
            told_[m] = live_known_ = true;
            arrived = std::clamp(of_module, 0.0, 1.0);
        } else if (live != nullptr && singles != nullptr && seconds.values(*singles).number(m) == 0) {
            open_.silent[m] += ticks;
        } else {
            live_unknown_ = true;
            arrived = 1;
        }
        open_.live[m] += ticks * arrived;
        // A board that delivers nothing tells nothing.
        if (arrived > 0) {
            open_.seen[m] +=
                dead != nullptr ? seconds.values(*dead).number(m) : std::numeric_limits<double>::quiet_NaN();
        }
        for (std::size_t n = 0; n < modules_; ++n) {
            prompts_[std::min(m, n) * modules_ + std::max(m, n)] +=
                share *
                sectors_.share(module_pairs, static_cast<std::uint32_t>(m), static_cast<std::uint32_t>(n));
        }
    }
    add_singles(seconds);
    if (open_.ticks == 0) open_.time.start = seconds.start();
    open_.time.end = seconds.start() + seconds.length();
    open_.ticks += ticks;
    open_.covered += share * ticks;
    open_.trues += share * trues;
    if (open_.ticks >= min_ticks_) close_moment(true);
}

void ModuleLosses::add_singles(const daemon::SecondsReader& seconds) {
    for (const char* const name : {"crystal_unpaired", "crystal_grouped"}) {
        const daemon::SecondField* const field = seconds.find(name);
        if (field == nullptr || field->count != unit_of_.size()) continue;
        const daemon::FieldValues singles = seconds.values(*field);
        for (std::size_t i = 0; i < unit_of_.size(); ++i)
            open_.unit_seen[unit_of_[i]] += singles.number(i);
    }
}

/// From the singles of each unit what it sees.
void ModuleLosses::divide_dead_time() {
    struct Singles {
        double sum = 0;
        std::size_t units = 0;
    };
    std::map<std::size_t, Singles> of_board;
    for (std::size_t m = 0; m < modules_; ++m) {
        Singles& board = of_board[board_[m]];
        for (std::size_t u = m * units_; u < (m + 1) * units_; ++u) {
            board.sum += open_.unit_seen[u];
            board.units += exists_[u] ? 1 : 0;
            if (open_.unit_seen[u] > 0) has_singles_[u] = true;
        }
    }
    for (std::size_t m = 0; m < modules_; ++m) {
        const Singles& board = of_board[board_[m]];
        const double dead_per_single =
            board.sum > 0 ? (1 - open_.seen[m]) * static_cast<double>(board.units) / board.sum : 0;
        for (std::size_t u = m * units_; u < (m + 1) * units_; ++u)
            open_.unit_seen[u] = std::max(1 - dead_per_single * open_.unit_seen[u], min_seen);
    }
}

void ModuleLosses::close_moment(bool dead_time_told) {
    for (std::size_t m = 0; m < modules_; ++m) {
        const double arrived = open_.live[m];  // ticks
        open_.live[m] = open_.ticks > 0 ? arrived / open_.ticks : 1;
        open_.silent[m] = open_.ticks > 0 ? open_.silent[m] / open_.ticks : 0;
        if (dead_time_told) {
            // Of the dead time, too, only the part that arrived was told.
            open_.seen[m] = arrived > 0 ? 1 - open_.seen[m] / arrived : 1;
        } else {
            open_.seen[m] = moments_.back().seen[m];
        }
        // Not of a module that was blind all the time, nor of one that told nothing (NaN).
        dead_time_known_ = dead_time_known_ && open_.seen[m] > 0 && open_.seen[m] <= 1;
    }
    if (dead_time_told) {
        divide_dead_time();
    } else {
        open_.unit_seen = moments_.back().unit_seen;
    }
    moments_.push_back(std::move(open_));
    open_ = none();
}

void ModuleLosses::end_run() {
    if (open_.ticks > 0) close_moment(moments_.size() == run_start_);
    for (std::size_t m = 0; m < modules_; ++m) {
        if (told_[m]) continue;
        // Nobody has heard of it.
        for (std::size_t i = run_start_; i < moments_.size(); ++i) {
            live_unknown_ = live_unknown_ || moments_[i].silent[m] > 0;
            moments_[i].live[m] += moments_[i].silent[m];
        }
    }
    told_.assign(modules_, false);
    run_start_ = moments_.size();
}

std::vector<double> ModuleLosses::trues_by_share(const std::vector<double>& share_of_pair) {
    std::vector<double> all(moments_.size());
    std::vector<std::size_t> known;
    for (std::size_t i = 0; i < moments_.size(); ++i) {
        double share = 0;
        for (std::size_t m = 0; m < modules_; ++m) {
            for (std::size_t n = m; n < modules_; ++n)
                share += share_of_pair[m * modules_ + n] * delivered(moments_[i], m, n);
        }
        moments_[i].found = share;
        if (share < min_delivered) continue;
        all[i] = moments_[i].trues / share;
        known.push_back(i);
    }
    const auto rate = [&](std::size_t i) {
        return moments_[i].covered > 0 ? all[i] / moments_[i].covered : 0;
    };
    for (std::size_t i = 0, next = 0; i < moments_.size() && !known.empty(); ++i) {
        while (next < known.size() && known[next] < i)
            ++next;
        if (next < known.size() && known[next] == i) continue;
        const std::size_t after = known[std::min(next, known.size() - 1)];
        const std::size_t before = next > 0 ? known[next - 1] : after;
        const double way = before < after && before < i
                               ? static_cast<double>(i - before) / static_cast<double>(after - before)
                               : 0;
        all[i] = moments_[i].covered * (rate(before) + way * (rate(after) - rate(before)));
    }
    return all;
}

std::vector<double> ModuleLosses::all_trues() {
    std::vector<double> share(modules_ * modules_);
    const double prompts = sum_of(prompts_);
    for (std::size_t i = 0; i < share.size(); ++i)
        share[i] = prompts > 0 ? prompts_[i] / prompts : 0;
    std::vector<double> trues = trues_by_share(share);
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t m = 0; m < modules_; ++m) {
            for (std::size_t n = m; n < modules_; ++n) {
                double& of_pair = share[m * modules_ + n];
                if (prompts_[m * modules_ + n] == 0) continue;
                double arrived = 0;
                for (std::size_t i = 0; i < moments_.size(); ++i)
                    arrived += trues[i] * delivered(moments_[i], m, n);
                if (arrived > 0) of_pair = prompts_[m * modules_ + n] / arrived;
            }
        }
        const double all = sum_of(share);
        for (double& of_pair : share)
            of_pair = all > 0 ? of_pair / all : 0;
        trues = trues_by_share(share);
    }
    return trues;
}

std::vector<double> ModuleLosses::weights(const DecaysIn& decays) {
    std::vector<double> weights = all_trues();
    const bool any = sum_of(weights) > 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const LossMoment& moment = moments_[i];
        if (turns_) {
            weights[i] = moment.ticks > 0 ? decays(moment.time) * moment.covered / moment.ticks : 0;
        } else if (!any) {
            weights[i] = moment.covered;  // all times count alike
        }
    }
    return weights;
}

void ModuleLosses::finish(const DecaysIn& decays, RunDeadTime& dead_time, RunLoss& loss,
                          std::vector<LiveTime>& live_times) {
    loss.too_many_modules = modules_ > max_modules;
    if (loss.too_many_modules) return;
    if (!dead_time_known_) {
        for (LossMoment& moment : moments_)
            std::fill(moment.seen.begin(), moment.seen.end(), 1);
    }
    const std::vector<double> weights = this->weights(decays);
    for (const LossMoment& moment : moments_)
        live_times.push_back({moment.time, moment.found});
    if (live_known_) loss.arrived.resize(modules_ * modules_);
    if (dead_time_known_ && !moments_.empty()) dead_time.factor.resize(modules_ * modules_);
    const double all = sum_of(weights);
    double prompts_of_all = 0;
    double prompts_arrived = 0;
    loss.min_factor = std::numeric_limits<double>::infinity();
    for (std::size_t m = 0; m < modules_; ++m) {
        for (std::size_t n = m; n < modules_; ++n) {
            double all_arrived = 0;
            double found = 0;
            for (std::size_t i = 0; i < moments_.size(); ++i) {
                all_arrived += weights[i] * arrived(moments_[i], m, n);
                found += weights[i] * delivered(moments_[i], m, n);
            }
            for (const std::size_t place : {m * modules_ + n, n * modules_ + m}) {
                if (!loss.arrived.empty())
                    loss.arrived[place] = all > 0 ? std::max(all_arrived, 0.0) / all : 1;
                if (!dead_time.factor.empty()) dead_time.factor[place] = found > 0 ? all_arrived / found : 1;
            }
            if (loss.arrived.empty() || m == n) continue;
            const double share = loss.arrived[m * modules_ + n];
            const double prompts = prompts_[m * modules_ + n];
            if (share > 0) {
                prompts_of_all += prompts / share;
                prompts_arrived += prompts;
                loss.min_factor = std::min(loss.min_factor, 1 / share);
                loss.largest_factor = std::max(loss.largest_factor, 1 / share);
            } else {
                loss.silent_pairs += 2 / static_cast<double>(modules_ * (modules_ - 1));
            }
        }
    }
    if (!dead_time.factor.empty()) find_units(dead_time, weights);
    if (!(loss.min_factor <= loss.largest_factor)) loss.min_factor = loss.largest_factor;
    if (prompts_arrived > 0) loss.factor = prompts_of_all / prompts_arrived;
    loss.unknown_modules = live_unknown_;
    if (!live_known_) return;
    double covered = 0;
    double lost = 0;
    for (const LossMoment& moment : moments_) {
        covered += moment.covered;
        for (const double live : moment.live)
            lost += moment.covered * (1 - live) / static_cast<double>(modules_);
    }
    loss.lost = covered > 0 ? lost / covered : 0;
}

void ModuleLosses::find_units(RunDeadTime& dead_time, const std::vector<double>& weights) const {
    dead_time.seen.assign(modules_ * units_, 1);
    std::vector<double> least(modules_, std::numeric_limits<double>::infinity());  // of 1 / seen
    std::vector<double> most(modules_);
    for (std::size_t u = 0; u < dead_time.seen.size(); ++u) {
        const std::size_t m = u / units_;
        if (!has_singles_[u]) continue;
        double of_module = 0;
        double of_unit = 0;
        for (std::size_t i = 0; i < moments_.size(); ++i) {
            const double arrived = weights[i] * moments_[i].live[m];
            of_module += arrived * moments_[i].seen[m];
            of_unit += arrived * moments_[i].unit_seen[u];
        }
        if (of_module > 0 && of_unit > 0) dead_time.seen[u] = of_unit / of_module;
        least[m] = std::min(least[m], 1 / dead_time.seen[u]);
        most[m] = std::max(most[m], 1 / dead_time.seen[u]);
    }
    dead_time.least = std::numeric_limits<double>::infinity();
    for (std::size_t m = 0; m < modules_; ++m) {
        for (std::size_t n = 0; n < modules_; ++n) {
            const double of_modules = dead_time.factor[m * modules_ + n];
            dead_time.least = std::min(dead_time.least, of_modules * least[m] * least[n]);
            dead_time.most = std::max(dead_time.most, of_modules * most[m] * most[n]);
        }
    }
    if (dead_time.least > dead_time.most) dead_time.least = dead_time.most;
}

std::string too_many_modules() {
    return fmt::format("it is found for scanners of at most {} BDMs", ModuleLosses::max_modules);
}

std::string sentence_of(const RunLoss& loss) {
    if (loss.too_many_modules) return "Loss: not corrected, as " + too_many_modules() + ".";
    if (loss.arrived.empty())
        return "Loss: not corrected, as the seconds of the run do not tell which data did not arrive.";
    std::string text = loss.unknown_modules ? "Loss: all data of the boards of which it is known arrived."
                                            : "Loss: all data of the boards arrived.";
    if (loss.lost > 0) {
        text = fmt::format(
            "Loss: {}{:.3g} % of the data of the boards did not arrive (lost datagrams, silent boards); "
            "values multiplied by {:.4g}, by pair of BDMs {:.4g} to {:.4g}.",
            loss.unknown_modules ? "at least " : "", 100 * loss.lost, loss.factor, loss.min_factor,
            loss.largest_factor);
    }
    if (loss.silent_pairs > 0) {
        text += fmt::format(
            " Pairs of BDMs of which one was silent all the time count as dead: {:.3g} % of all. Where an "
            "image has few lines left, its values are too small, however many iterations are made.",
            100 * loss.silent_pairs);
    }
    if (loss.unknown_modules) text += " What was lost is not known of some BDMs in some seconds.";
    return text;
}

std::unique_ptr<PairLosses> PairLosses::of(const ExportSource& source, const daemon::Coverage& coverage,
                                           const config::Scanner& scanner, std::string& why) {
    try {
        const auto seconds = CoveredSeconds::of(source.target(), coverage, why);
        if (!seconds) return nullptr;
        ModuleLosses losses(scanner, 0.5e12 / scanner.tick_ps);
        std::vector<std::uint32_t> pairs(gpu::Sectors::of(scanner.geometry).pairs());
        std::size_t run = 0;
        while (seconds->next()) {
            const daemon::SecondsReader& reader = seconds->reader();
            if (run != seconds->run()) losses.end_run();
            run = seconds->run();
            const daemon::SecondField* const of_pairs = reader.find("module_pairs");
            const daemon::SecondField* const prompts = reader.find("prompts");
            const daemon::SecondField* const randoms = reader.find("randoms");
            if (of_pairs == nullptr || of_pairs->count != pairs.size() || prompts == nullptr ||
                randoms == nullptr)
                throw std::invalid_argument("its fields are not those of the scanner");
            for (std::size_t i = 0; i < pairs.size(); ++i)
                pairs[i] = static_cast<std::uint32_t>(reader.values(*of_pairs).number(i));
            const double trues = reader.values(*prompts).number() - reader.values(*randoms).number();
            losses.add(reader, static_cast<double>(reader.length()), seconds->share(),
                       std::isnan(trues) ? 0 : trues, pairs);
        }
        losses.end_run();
        auto out = std::make_unique<PairLosses>(scanner.geometry);
        out->known_ = seconds->known();
        losses.finish(decays_of(coverage), out->dead_time_, out->loss_, out->live_times_);
        if (out->known_ >= min_known) return out;
        why = fmt::format("seconds.plm tells only {:.3g} % of its time", 100 * out->known_);
    } catch (const std::invalid_argument& error) {
        why = std::string("seconds.plm cannot be used: ") + error.what();
    } catch (const daemon::NotListMode& error) {
        why = error.what();
    }
    return nullptr;
}

std::vector<std::uint32_t> units_of_crystals(const config::Geometry& geometry) {
    std::vector<std::uint32_t> units(geometry.crystal_count());
    for (std::uint32_t bdm = 0; bdm < geometry.bdm_count; ++bdm) {
        for (std::uint32_t du = 0; du < geometry.du_count; ++du) {
            const std::uint32_t unit = bdm * geometry.du_count + du;
            for (std::uint32_t local = 0; local < geometry.crystals_of_unit(unit); ++local)
                units[geometry.crystal(bdm, du, local)] = unit;
        }
    }
    return units;
}

std::size_t PairLosses::modules_of(std::uint32_t a, std::uint32_t b) const {
    return std::size_t{unit_of_[a] / geometry_.du_count} * geometry_.bdm_count +
           unit_of_[b] / geometry_.du_count;
}

double PairLosses::seen(std::uint32_t a, std::uint32_t b) const {
    if (dead_time_.factor.empty()) return 1;
    return dead_time_.seen[unit_of_[a]] * dead_time_.seen[unit_of_[b]] / dead_time_.factor[modules_of(a, b)];
}

double PairLosses::arrived(std::uint32_t a, std::uint32_t b) const {
    return loss_.arrived.empty() ? 1 : loss_.arrived[modules_of(a, b)];
}

std::string lost_datagrams(const ExportSource& source) {
    const nlohmann::json::json_pointer place("/ledger/datagrams/lost");
    const nlohmann::json& run = source.run();
    if (!run.contains(place) || !run.at(place).is_number_unsigned()) return {};
    return fmt::format(" In the whole run {} datagrams were lost, by its ledger.",
                       run.at(place).get<std::uint64_t>());
}

}  // namespace petacq::petlm
