#include "tools/petlm/reconstruction/corrections/run_randoms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <stdexcept>

#include "daemon/backend/pipeline_options.hpp"
#include "daemon/seconds/sums_reader.hpp"
#include "gpu/randoms/randoms.hpp"
#include "tools/petlm/reconstruction/corrections/found_decays.hpp"
#include "tools/petlm/records/origin.hpp"

namespace petacq::petlm {
namespace {

void add_scaled(std::vector<double>& to, const std::vector<double>& more, double factor) {
    for (std::size_t i = 0; i < to.size(); ++i)
        to[i] += factor * more[i];
}

}  // namespace

/// Sums over seconds, each times its ticks: their shape. The total is that of the covered share of each.
struct RunRandoms::Frame {
    gpu::CrystalValues rates;
    std::vector<gpu::PairChances> chances;
    double total = 0;  ///< randoms in the file

    Frame(std::size_t crystals, std::size_t cell_pairs) : chances(cell_pairs) {
        for (std::vector<double>& of_kind : rates.of)
            of_kind.resize(crystals);
    }

    void add(const Frame& more) { add_times(more.rates, more.chances, 1, more.total); }
    void add(const gpu::RandomsByPair& second, double randoms, double share) {
        add_times(second.rates, second.chances, second.ticks, share * randoms);
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

/// The seconds of one run, as frames.
class RunRandoms::Frames {
  public:
    void add(const gpu::RandomsByPair& second, double randoms, double share, const Frame& empty) {
        if (seconds_ == max_frames * in_frame_) {
            // All frames are full: two become one.
            for (std::size_t f = 0; f < max_frames / 2; ++f) {
                list_[2 * f].add(list_[2 * f + 1]);
                if (f != 0) list_[f] = std::move(list_[2 * f]);
            }
            list_.erase(list_.begin() + max_frames / 2, list_.end());
            in_frame_ *= 2;
        }
        if (seconds_++ % in_frame_ == 0) list_.push_back(empty);
        list_.back().add(second, randoms, share);
    }
    [[nodiscard]] std::vector<Frame>& list() { return list_; }

  private:
    std::vector<Frame> list_;
    std::size_t in_frame_ = 1;  // seconds
    std::size_t seconds_ = 0;
};

std::optional<double> mean_weight_of_delayeds(const ExportSource& source) {
    const nlohmann::json& run = source.run();
    const auto number = [&](const char* pointer) {
        const nlohmann::json::json_pointer at(pointer);
        return run.contains(at) && run[at].is_number() ? run[at].get<double>() : 0;
    };
    const double delayeds = number("/ledger/pairs/delayeds_found");
    const double randoms = number("/expected_randoms/from_delayeds");
    if (!(delayeds > 0) || !(randoms > 0)) return std::nullopt;
    if (!difference_from_run(daemon::coverage_of_run(run).rules, source.coverage().rules).empty())
        return std::nullopt;
    return randoms / delayeds;
}

RunRandoms::RunRandoms(CoveredSeconds& seconds, const config::Scanner& scanner,
                       const gpu::CoincidenceRules& rules, const DecaysIn& decays)
    : PairLosses(scanner.geometry), cells_(gpu::PairCells::of(scanner.geometry, rules)) {
    const config::Geometry& geometry = scanner.geometry;
    const Frame empty(geometry.crystal_count(), std::size_t{cells_.count()} * cells_.count());
    ModuleLosses losses(scanner, 0.5e12 / scanner.tick_ps);
    gpu::RandomsEstimator estimator(geometry, rules);
    gpu::ExpectedRandoms randoms;
    std::vector<Frame> frames;
    Frames frames_of_run;
    std::optional<daemon::SumsReader> sums;
    std::size_t run = SIZE_MAX;
    double found = 0;  // trues
    double without_losses = 0;
    const auto end_run = [&] {
        std::move(frames_of_run.list().begin(), frames_of_run.list().end(), std::back_inserter(frames));
        frames_of_run = {};
        losses.end_run();
    };
    while (seconds.next()) {
        const daemon::SecondsReader& reader = seconds.reader();
        if (run != seconds.run()) {
            end_run();
            run = seconds.run();
            sums.emplace(reader, geometry);
        }
        const gpu::IntervalSums& of_second = sums->read();
        const std::uint64_t ticks = reader.length();
        estimator.estimate(of_second, ticks, randoms);
        const double trues = static_cast<double>(of_second.counts.prompts) - randoms.total;
        if (trues > 0) {
            const daemon::SecondField* const pile_up = reader.find("pile_up");
            const double factor = pile_up != nullptr ? reader.values(*pile_up).number()
                                                     : std::numeric_limits<double>::quiet_NaN();
            found += seconds.share() * trues;
            without_losses += seconds.share() * factor * trues;
            pile_up_.least = std::min(pile_up_.least, factor);
            pile_up_.most = std::max(pile_up_.most, factor);
        }
        losses.add(reader, static_cast<double>(ticks), seconds.share(), trues, of_second.module_pairs);
        frames_of_run.add(estimator.by_pair(), randoms.total, seconds.share(), empty);
    }
    end_run();
    known_ = seconds.known();
    for (Frame& frame : frames)
        frame.total = known_ > 0 ? std::max(frame.total, 0.0) / known_ : 0;
    if (found > 0) pile_up_.mean = without_losses / found;
    losses.finish(decays, dead_time_, loss_, live_times_);
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
        const double scale = unscaled > 0 ? frame.total / unscaled : 0;
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

std::unique_ptr<RunRandoms> RunRandoms::of(const ExportSource& source, const daemon::Coverage& coverage,
                                           const config::Scanner& scanner, std::string& why) {
    const auto& rules = coverage.rules.coincidence;
    if (!rules) {
        why = "it is not known by which rules its records were made";
        return nullptr;
    }
    try {
        const auto seconds = CoveredSeconds::of(source.target(), coverage, why);
        if (!seconds) return nullptr;
        why = seconds->other_rules();
        if (!why.empty()) return nullptr;
        auto randoms = std::make_unique<RunRandoms>(*seconds, scanner, daemon::coincidence_rules(*rules),
                                                    decays_of(coverage));
        if (randoms->known() >= min_known) return randoms;
        why = fmt::format("seconds.plm tells only {:.3g} % of its time", 100 * randoms->known());
    } catch (const std::invalid_argument& error) {
        why = std::string("seconds.plm cannot be used: ") + error.what();
    } catch (const daemon::NotListMode& error) {
        why = error.what();
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

double RunRandoms::total() const {
    return std::accumulate(totals_.begin(), totals_.end(), 0.0);
}

}  // namespace petacq::petlm
