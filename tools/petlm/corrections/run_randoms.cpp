#include "tools/petlm/corrections/run_randoms.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "config/configuration.hpp"
#include "config/error.hpp"
#include "daemon/seconds/sums_reader.hpp"
#include "daemon/settings.hpp"
#include "gpu/randoms.hpp"

namespace petacq::petlm {
namespace {

void add_scaled(std::vector<double>& to, const std::vector<double>& more, double factor) {
    for (std::size_t i = 0; i < to.size(); ++i)
        to[i] += factor * more[i];
}

/// Adds up the dead time of a run, second by second. The boards tell it now and then: seconds shorter than
/// half a second belong to the next one, or at the end of the run to the previous one.
class DeadTimeSum {
  public:
    DeadTimeSum(const daemon::SecondsReader& seconds, std::size_t modules, double least_ticks)
        : field_(seconds.find("module_dead_time")),
          least_ticks_(least_ticks),
          known_(field_ != nullptr && field_->count == modules),
          dead_(modules),
          sums_(modules * modules) {}

    void add(const daemon::SecondsReader& seconds, double trues) {
        if (!known_) return;
        const daemon::FieldValues dead = seconds.values(*field_);
        for (std::size_t m = 0; m < dead_.size(); ++m)
            dead_[m] += dead.number(m);
        ticks_ += static_cast<double>(seconds.length());
        trues_ += trues;
        if (ticks_ < least_ticks_) return;
        live_ = live();
        add_pairs();
    }
    [[nodiscard]] RunDeadTime mean(double trues) && {
        if (known_ && trues_ > 0) {
            if (live_.empty()) live_ = live();
            add_pairs();
        }
        if (!known_ || !(trues > 0)) return {};
        for (double& sum : sums_)
            sum /= trues;
        return {std::move(sums_)};
    }

  private:
    [[nodiscard]] std::vector<double> live() const {
        std::vector<double> out;
        for (const double dead : dead_)
            out.push_back(1 - dead / ticks_);
        return out;
    }
    void add_pairs() {
        // Not of a module that was blind all the time, nor of one that told nothing (NaN).
        for (const double share : live_)
            known_ = known_ && share > 0 && share <= 1;
        for (std::size_t m = 0; m < live_.size(); ++m) {
            for (std::size_t n = 0; n < live_.size(); ++n)
                sums_[m * live_.size() + n] += trues_ / (live_[m] * live_[n]);
        }
        std::fill(dead_.begin(), dead_.end(), 0);
        ticks_ = 0;
        trues_ = 0;
    }

    const daemon::SecondField* field_;
    double least_ticks_;
    bool known_;
    std::vector<double> dead_;  // [module] ticks, not yet in the sums
    double ticks_ = 0;
    double trues_ = 0;
    std::vector<double> live_;  // [module] share of the time, latest
    std::vector<double> sums_;  // [module a * modules + module b]
};

}  // namespace

/// Sums over seconds, each times its ticks.
struct RunRandoms::Frame {
    gpu::CrystalValues rates;
    std::vector<gpu::PairChances> chances;
    double total = 0;  ///< randoms

    Frame(std::size_t crystals, std::size_t cell_pairs) : chances(cell_pairs) {
        for (std::vector<double>& of_kind : rates.of)
            of_kind.resize(crystals);
    }

    void add(const Frame& more) { add_times(more.rates, more.chances, 1, more.total); }
    void add(const gpu::RandomsByPair& second, double randoms) {
        add_times(second.rates, second.chances, second.ticks, randoms);
    }

  private:
    void add_times(const gpu::CrystalValues& more_rates, const std::vector<gpu::PairChances>& more_chances,
                   double factor, double randoms) {
        for (std::size_t kind = 0; kind < gpu::single_kinds; ++kind)
            add_scaled(rates.of[kind], more_rates.of[kind], factor);
        for (std::size_t i = 0; i < chances.size(); ++i) {
            for (std::size_t x = 0; x < gpu::single_kinds; ++x) {
                for (std::size_t y = 0; y < gpu::single_kinds; ++y)
                    chances[i].of[x][y] += factor * more_chances[i].of[x][y];
            }
        }
        total += randoms;
    }
};

RunRandoms::RunRandoms(daemon::SecondsReader& seconds, const config::Scanner& scanner,
                       const gpu::CoincidenceRules& rules)
    : geometry_(scanner.geometry), cells_(gpu::PairCells::of(scanner.geometry, rules)) {
    const config::Geometry& geometry = scanner.geometry;
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    const daemon::SecondField* const pile_up = seconds.find("pile_up");
    daemon::SumsReader sums(seconds, geometry);
    DeadTimeSum dead_time(seconds, geometry.bdm_count, 0.5e12 / scanner.tick_ps);
    gpu::RandomsEstimator estimator(geometry, rules);
    gpu::ExpectedRandoms randoms;
    std::vector<Frame> frames;
    std::size_t in_frame = 1;  // seconds
    double found = 0;          // trues
    double without_losses = 0;
    while (seconds.next()) {
        if (seconds_.size() == most_frames * in_frame) {
            // All frames are full: two become one.
            for (std::size_t f = 0; f < most_frames / 2; ++f) {
                frames[2 * f].add(frames[2 * f + 1]);
                if (f != 0) frames[f] = std::move(frames[2 * f]);
            }
            frames.erase(frames.begin() + most_frames / 2, frames.end());
            in_frame *= 2;
        }
        const gpu::IntervalSums& of_second = sums.read();
        estimator.estimate(of_second, seconds.length(), randoms);
        const double trues = static_cast<double>(of_second.counts.prompts) - randoms.total;
        if (trues > 0) {
            const double factor = pile_up != nullptr ? seconds.values(*pile_up).number() : unknown;
            found += trues;
            without_losses += factor * trues;
            pile_up_.least = std::min(pile_up_.least, factor);
            pile_up_.most = std::max(pile_up_.most, factor);
        }
        dead_time.add(seconds, std::max(trues, 0.0));
        if (seconds_.size() % in_frame == 0)
            frames.emplace_back(geometry.crystal_count(), std::size_t{cells_.count()} * cells_.count());
        frames.back().add(estimator.by_pair(), randoms.total);
        const double s = static_cast<double>(seconds.length()) * scanner.tick_ps * 1e-12;
        seconds_.push_back({seconds.start(), 0, s > 0 ? std::max(randoms.total, 0.0) / s : 0});
    }
    for (std::size_t i = 0; i < seconds_.size(); ++i) {
        seconds_[i].frame = i / in_frame;
        const double total = frames[seconds_[i].frame].total;
        seconds_[i].per_s = total > 0 ? seconds_[i].per_s / total : 0;
    }
    if (found > 0) pile_up_.mean = without_losses / found;
    dead_time_ = std::move(dead_time).mean(found);
    finish(frames, geometry, rules);
}

void RunRandoms::finish(const std::vector<Frame>& frames, const config::Geometry& geometry,
                        const gpu::CoincidenceRules& rules) {
    constexpr std::size_t kinds = gpu::single_kinds;
    const std::size_t count = frames.size();
    rates_.resize(geometry.crystal_count() * kinds * count);
    chances_.resize(std::size_t{cells_.count()} * cells_.count() * kinds * kinds * count);
    gpu::GoodPairs pairs(geometry, rules);
    for (std::size_t f = 0; f < count; ++f) {
        const Frame& frame = frames[f];
        pairs.use(frame.rates);
        const double unscaled = pairs.total(frame.chances);
        const double scale = unscaled > 0 ? std::max(frame.total, 0.0) / unscaled : 0;
        totals_.push_back(scale * unscaled);
        for (std::size_t x = 0; x < kinds; ++x) {
            for (std::size_t i = 0; i < geometry.crystal_count(); ++i)
                rates_[(i * kinds + x) * count + f] = frame.rates.of[x][i];
            for (std::size_t i = 0; i < frame.chances.size(); ++i) {
                for (std::size_t y = 0; y < kinds; ++y)
                    chances_[((i * kinds + x) * kinds + y) * count + f] = scale * frame.chances[i].of[x][y];
            }
        }
    }
}

std::unique_ptr<RunRandoms> RunRandoms::of_run(const std::filesystem::path& directory,
                                               const nlohmann::json& run, const config::Scanner& scanner,
                                               std::string& why) {
    const auto file = directory / "seconds.plm";
    const bool is_run = std::filesystem::is_directory(directory);
    if (!is_run || !std::filesystem::exists(file)) {
        why = is_run ? "the run has no seconds.plm" : "a file need not be the whole run";
        return nullptr;
    }
    try {
        const auto rules =
            daemon::coincidence_rules(config::configuration_from_json(run.at("configuration"), "/"));
        daemon::SecondsReader seconds(file);
        auto randoms = std::make_unique<RunRandoms>(seconds, scanner, rules);
        if (seconds.reader().condition().state == daemon::FileState::complete) return randoms;
        why = "seconds.plm is not complete; petlm recover makes a sound file of its whole blocks";
    } catch (const nlohmann::json::exception&) {
        why = "run.json has no configuration";
    } catch (const std::invalid_argument& error) {
        why = std::string("seconds.plm cannot be used: ") + error.what();
    } catch (const daemon::NotListMode& error) {
        why = error.what();
    } catch (const config::Error& error) {
        why = std::string("the configuration in run.json: ") + error.what();
    }
    return nullptr;
}

double RunRandoms::product(std::size_t frame, std::uint32_t a, std::uint32_t b) const {
    constexpr std::size_t kinds = gpu::single_kinds;
    const std::size_t count = totals_.size();
    const std::size_t place = std::size_t{cells_.of_crystal(a)} * cells_.count() + cells_.of_crystal(b);
    const double* const of_a = rates_.data() + a * kinds * count + frame;
    const double* const of_b = rates_.data() + b * kinds * count + frame;
    const double* const chances = chances_.data() + place * kinds * kinds * count + frame;
    double sum = 0;
    for (std::size_t x = 0; x < kinds; ++x) {
        double partners = 0;
        for (std::size_t y = 0; y < kinds; ++y)
            partners += chances[(x * kinds + y) * count] * of_b[y * count];
        sum += of_a[x * count] * partners;
    }
    return sum;
}

double RunRandoms::sum(std::uint32_t a, std::uint32_t b) const {
    if (!cells_.rule.good(a, b)) return 0;
    double sum = 0;
    for (std::size_t frame = 0; frame < totals_.size(); ++frame)
        sum += product(frame, a, b);
    return std::max(sum, 0.0);
}

double RunRandoms::rate(std::uint64_t time, std::uint32_t a, std::uint32_t b) const {
    if (seconds_.empty() || !cells_.rule.good(a, b)) return 0;
    auto after = std::upper_bound(seconds_.begin(), seconds_.end(), time,
                                  [](std::uint64_t t, const Moment& second) { return t < second.start; });
    const Moment& second = after == seconds_.begin() ? *after : *(after - 1);
    return std::max(product(second.frame, a, b), 0.0) * second.per_s;
}

double RunRandoms::live(std::uint32_t a, std::uint32_t b) const {
    if (dead_time_.factor.empty()) return 1;
    const auto module = [this](std::uint32_t crystal) {
        const std::uint32_t ring = crystal / geometry_.crystals_in_ring();
        const std::uint32_t row = ring / (geometry_.blocks.z * geometry_.crystals.z);
        const std::uint32_t around =
            crystal % geometry_.crystals_in_ring() / geometry_.crystals_per_module_y();
        return std::size_t{row} * geometry_.modules_in_ring() + around;
    };
    return 1 / dead_time_.factor[module(a) * geometry_.bdm_count + module(b)];
}

double RunRandoms::total() const {
    return std::accumulate(totals_.begin(), totals_.end(), 0.0);
}

}  // namespace petacq::petlm
