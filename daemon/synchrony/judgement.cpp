#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "config/median.hpp"
#include "daemon/synchrony/alignment.hpp"
#include "daemon/synchrony/synchrony.hpp"

namespace petacq::daemon {

namespace {

using SynchronyState = ModuleSynchrony::SynchronyState;

using Place = config::Vector3;

constexpr double pi = 3.14159265358979323846;
constexpr double mm_per_ns = 299.792458;
/// ns. Modules whose times have not been calibrated differ by less.
constexpr double margin_ns = 1;
/// ns, of the histograms of time differences: a quarter of the coincidence window, which fits the resolution
/// of the detector, within these limits. Wider bins would hide offsets that are worth a word.
constexpr double min_bin_ns = 0.5;
constexpr double max_bin_ns = 2;
constexpr double sigmas = 5;
/// Pairs that a single may be compared with, in the mean: the narrow reach is shorter at high rates.
constexpr double pairs_per_single = 16;
constexpr std::uint64_t max_wide_pairs = 24'000'000;

class SynchronyJudge {
  public:
    SynchronyJudge(std::span<const TimedSingle> hits, const SynchronyOptions& options)
        : hits_(hits),
          options_(options),
          modules_(static_cast<std::uint32_t>(options.places.size())),
          rows_(modules_) {
        least_ = (options.diameter_mm / mm_per_ns + margin_ns) / options.tick_ns;
        const double bin_ns =
            std::clamp(options.window * options.tick_ns / SearchScale::bins_per_peak, min_bin_ns, max_bin_ns);
        bin_ = std::max<std::int64_t>(std::llround(bin_ns / options.tick_ns), 1);
        for (std::uint32_t m = 0; m < modules_; ++m) {
            const ModulePlace& place = options.places[m];
            if (!place.exists) continue;
            rows_[place.row].push_back(m);
            low_mm_ = std::min(low_mm_, place.middle_mm[2] - place.length_mm / 2);
            high_mm_ = std::max(high_mm_, place.middle_mm[2] + place.length_mm / 2);
        }
    }

    SynchronyReport run() {
        SynchronyReport report;
        report.modules.resize(modules_);
        report.singles = hits_.size();
        report.min_ticks = least_;
        report.window_ticks = options_.window;
        const SearchScale wide = scale(SynchronyOptions::wide_ns / options_.tick_ns);
        report.reach_ticks = static_cast<double>(wide.reach);
        if (hits_.size() < 2) return report;
        alignment_ = align(hits_, modules_, scale(narrow_reach()), least_ / 2);
        find_majority();
        const double zero = judge_group(majority_, report);
        if (locate_source(report)) find_far_modules(wide, zero, report);
        // A point source at the centre has coincidences between opposite modules only: many groups.
        for (std::uint32_t group = 0; group < modules_; ++group)
            if (group != majority_) judge_group(group, report);
        report.complete = true;
        for (std::uint32_t m = 0; m < modules_; ++m)
            report.complete =
                report.complete && (report.modules[m].state != SynchronyState::unknown || !enough(m));
        return report;
    }

  private:
    [[nodiscard]] SearchScale scale(double reach) const {
        return {bin_, bin_ * std::max<std::int64_t>(std::llround(reach / static_cast<double>(bin_)), 64)};
    }
    /// Samples are taken at some moments only: the rate is that of the moments.
    [[nodiscard]] double narrow_reach() const {
        constexpr std::size_t step = 64;  // singles
        std::vector<double> spans;
        for (std::size_t i = step; i < hits_.size(); i += step)
            spans.push_back(static_cast<double>(hits_[i].time - hits_[i - step].time));
        const double reach = SynchronyOptions::narrow_ns / options_.tick_ns;
        if (spans.empty()) return reach;
        return std::min(reach, pairs_per_single * config::median(std::move(spans)) / step);
    }

    /// The group with the most modules; of several, that with the most pairs.
    void find_majority() {
        std::vector<std::pair<std::size_t, double>> sizes(modules_);
        for (const AlignedModule& one : alignment_.modules) {
            if (one.pairs <= 0) continue;
            ++sizes[one.group].first;
            sizes[one.group].second += one.pairs;
        }
        majority_ = static_cast<std::uint32_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
    }

    /// Zero is where the most modules of the group are; of several places, that of the lowest number. Returns
    /// it, in ticks.
    double judge_group(std::uint32_t group, SynchronyReport& report) const {
        std::vector<std::uint32_t> members;
        for (std::uint32_t m = 0; m < modules_; ++m) {
            const AlignedModule& one = alignment_.modules[m];
            if (one.group == group && one.pairs > 0 && report.modules[m].state == SynchronyState::unknown)
                members.push_back(m);
        }
        if (members.size() < 2) return 0;
        std::vector<double> most;
        for (const std::uint32_t m : members) {
            std::vector<double> near;
            for (const std::uint32_t n : members) {
                const double late = alignment_.modules[n].late;
                if (std::abs(late - alignment_.modules[m].late) <= least_) near.push_back(late);
            }
            if (near.size() > most.size()) most = std::move(near);
        }
        const double zero = config::median(std::move(most));
        for (const std::uint32_t m : members) {
            const AlignedModule& one = alignment_.modules[m];
            ModuleSynchrony& module = report.modules[m];
            set(module, one.late - zero, one.error, one.pairs);
        }
        return zero;
    }

    void set(ModuleSynchrony& module, double late, double error, double pairs) const {
        module.late_ticks = late;
        module.error_ticks = error;
        module.pairs = pairs;
        const bool off = std::abs(late) > least_ + sigmas * error;
        module.state = off ? SynchronyState::out_of_step : SynchronyState::in_step;
    }

    [[nodiscard]] bool enough(std::uint32_t m) const {
        constexpr std::uint64_t enough_singles = 100;
        return alignment_.modules[m].singles >= enough_singles;
    }
    /// Coincidences with the majority for each single, without randoms.
    [[nodiscard]] double share(std::uint32_t m) const {
        const Alignment::PairCount pairs = alignment_.with_group(m, majority_);
        return (pairs.all - pairs.randoms) / static_cast<double>(alignment_.modules[m].singles);
    }

    /// Those of the majority that count, where they are most of the modules at the same place along the axis,
    /// as seen from one that is not.
    [[nodiscard]] std::vector<std::uint32_t> partners(std::uint32_t m, const SynchronyReport& report) const {
        std::vector<std::uint32_t> partners;
        std::size_t others = 0;
        for (const std::uint32_t n : rows_[options_.places[m].row]) {
            if (n == m || !enough(n)) continue;
            ++others;
            if (report.modules[n].state != SynchronyState::unknown) partners.push_back(n);
        }
        if (2 * partners.size() < others) partners.clear();
        return partners;
    }

    /// Whether a module has hardly any coincidences with the majority, although the rates of its partners
    /// predict dozens and enough of the modules opposite to it count.
    [[nodiscard]] bool lacks_partners(std::uint32_t m, const SynchronyReport& report) const {
        constexpr double enough_pairs = 60;
        constexpr double few = 0.3;
        constexpr double few_opposite = 0.3;
        constexpr double most = 0.7;
        if (report.modules[m].state != SynchronyState::unknown || !enough(m) || !has_opposite(m, report))
            return false;
        std::vector<double> shares;
        for (const std::uint32_t n : partners(m, report))
            shares.push_back(share(n));
        if (shares.empty()) return false;
        const double part = part_with_opposite(m);
        if (part < few_opposite) return false;
        const double expected =
            part * config::median(std::move(shares)) * static_cast<double>(alignment_.modules[m].singles);
        // A small source at the centre shows it few others, but these as often as its partners see theirs.
        if (alignment_.modules[m].pairs >= most * expected) return false;
        const Alignment::PairCount pairs = alignment_.with_group(m, majority_);
        const double highest = pairs.all - pairs.randoms + sigmas * std::sqrt(pairs.all + 1);
        return expected >= enough_pairs && highest < few * expected;
    }

    /// Where the source is: the point to which the lines between modules are nearest. Without modules that
    /// are not known, and those in line with them along the axis, whose lines would all be of other rows.
    /// Returns false if too few lines are left.
    bool locate_source(const SynchronyReport& report) {
        constexpr double little = 1e-3;  // where the lines do not tell, it is at the centre
        std::array<std::array<double, 4>, 3> rows{};
        constexpr double enough_lines = 100;
        std::vector<bool> whole(modules_, true);  // [line]
        const auto line = [this](std::uint32_t m) { return options_.places[m].line; };
        for (std::uint32_t m = 0; m < modules_; ++m) {
            if (options_.places[m].exists && report.modules[m].state == SynchronyState::unknown)
                whole[line(m)] = false;
        }
        double all = 0;
        for (std::uint32_t a = 0; a < modules_; ++a) {
            for (std::uint32_t b = a + 1; b < modules_; ++b) {
                const std::size_t at = std::size_t{a} * modules_ + b;
                const double weight = alignment_.pairs[at] - alignment_.randoms[at];
                if (weight <= 0 || !whole[line(a)] || !whole[line(b)]) continue;
                all += weight;
                const Place from = place(a, 0);
                const Place to = place(b, 0);
                Place along{to[0] - from[0], to[1] - from[1], to[2] - from[2]};
                const double length = std::hypot(along[0], along[1], along[2]);
                if (length <= 0) continue;
                for (double& part : along)
                    part /= length;
                const double dot = from[0] * along[0] + from[1] * along[1] + from[2] * along[2];
                for (std::size_t i = 0; i < 3; ++i) {
                    for (std::size_t j = 0; j < 3; ++j)
                        rows[i][j] += weight * ((i == j ? 1 : 0) - along[i] * along[j]);
                    rows[i][3] += weight * (from[i] - dot * along[i]);
                }
            }
        }
        for (std::size_t i = 0; i < 3; ++i)
            rows[i][i] += little * all + 1e-9;
        // The matrix is symmetric and positive: no pivots.
        for (std::size_t i = 0; i < 3; ++i) {
            for (std::size_t k = 0; k < 3; ++k) {
                if (k == i) continue;
                const double factor = rows[k][i] / rows[i][i];
                for (std::size_t j = i; j < 4; ++j)
                    rows[k][j] -= factor * rows[i][j];
            }
        }
        for (std::size_t i = 0; i < 3; ++i)
            source_[i] = rows[i][3] / rows[i][i];
        return all >= enough_lines;
    }

    /// In mm; `along`: -0.5 to 0.5, from one end of the module to the other.
    [[nodiscard]] Place place(std::uint32_t m, double along) const {
        const ModulePlace& module = options_.places[m];
        Place place = module.middle_mm;
        place[2] += along * module.length_mm;
        return place;
    }

    /// The part of a module from which the line through the source meets the scanner again. A module near to
    /// a source that is in another row sees it, but the other photon leaves the scanner along the axis.
    /// The least part for a source that is a quarter of a module from where it is thought to be.
    [[nodiscard]] double part_with_opposite(std::uint32_t m) const {
        double least = part_with_opposite(m, source_);
        for (std::size_t axis = 0; axis < source_.size(); ++axis) {
            for (const double side : {-0.25, 0.25}) {
                Place source = source_;
                source[axis] += side * options_.places[m].length_mm;
                least = std::min(least, part_with_opposite(m, source));
            }
        }
        return least;
    }
    [[nodiscard]] double part_with_opposite(std::uint32_t m, const Place& source) const {
        constexpr int steps = 20;
        int inside = 0;
        for (int i = 0; i < steps; ++i) {
            const Place from = place(m, (i + 0.5) / steps - 0.5);
            const double x = source[0] - from[0];
            const double y = source[1] - from[1];
            const double square = x * x + y * y;
            if (square < 1) continue;  // mm^2
            const double ways = -2 * (from[0] * x + from[1] * y) / square;
            const double z = from[2] + ways * (source[2] - from[2]);
            if (z >= low_mm_ && z <= high_mm_) ++inside;
        }
        return static_cast<double>(inside) / steps;
    }

    /// Modules that are off by more than the narrow reach.
    void find_far_modules(const SearchScale& wide, double zero, SynchronyReport& report) const {
        std::vector<bool> far(modules_);
        for (std::uint32_t m = 0; m < modules_; ++m)
            far[m] = lacks_partners(m, report);
        if (std::find(far.begin(), far.end(), true) == far.end()) return;
        for (std::uint32_t m = 0; m < modules_; ++m)
            if (far[m]) report.modules[m].state = SynchronyState::no_partners;
        for (const FarPeak& found : find_far(hits_, alignment_, far, majority_, wide, max_wide_pairs)) {
            for (const std::uint32_t m : found.modules) {
                if (report.modules[m].state != SynchronyState::no_partners) continue;
                set(report.modules[m], alignment_.modules[m].late - found.peak.lag - zero, found.peak.error,
                    found.peak.excess / static_cast<double>(found.modules.size()));
            }
        }
    }

    /// Whether most modules in the opposite third of its row are in the majority.
    [[nodiscard]] bool has_opposite(std::uint32_t m, const SynchronyReport& report) const {
        constexpr double third = pi / 3 + 1e-9;
        const auto angle = [this](std::uint32_t n) {
            const config::Vector3& middle = options_.places[n].middle_mm;
            return std::atan2(middle[1], middle[0]);
        };
        std::uint32_t opposite = 0;
        std::uint32_t counting = 0;
        for (const std::uint32_t n : rows_[options_.places[m].row]) {
            if (std::abs(std::abs(angle(n) - angle(m)) - pi) > third) continue;
            ++opposite;
            if (report.modules[n].state != SynchronyState::unknown) ++counting;
        }
        return counting > 0 && 2 * counting >= opposite;
    }

    const std::span<const TimedSingle> hits_;
    const SynchronyOptions& options_;
    const std::uint32_t modules_;
    std::vector<std::vector<std::uint32_t>> rows_;             ///< [row] its modules
    double low_mm_ = std::numeric_limits<double>::infinity();  ///< both ends of the scanner
    double high_mm_ = -std::numeric_limits<double>::infinity();
    double least_ = 0;
    Place source_{};  ///< mm
    std::int64_t bin_ = 1;
    Alignment alignment_;
    std::uint32_t majority_ = 0;
};

}  // namespace

const char* name_of(ModuleSynchrony::SynchronyState state) {
    constexpr std::array words{"unknown", "in_step", "out_of_step", "no_partners"};
    return words.at(static_cast<std::size_t>(state));
}

std::size_t SynchronyReport::known() const {
    return static_cast<std::size_t>(
        std::count_if(modules.begin(), modules.end(),
                      [](const ModuleSynchrony& m) { return m.state != SynchronyState::unknown; }));
}

SynchronyReport judge_synchrony(std::span<const TimedSingle> hits, const SynchronyOptions& options) {
    return SynchronyJudge(hits, options).run();
}

}  // namespace petacq::daemon
