#include "gpu/randoms/pair_chances.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "gpu/randoms/window_correlations.hpp"
#include "gpu/randoms/window_load.hpp"

namespace petacq::gpu {

namespace {

/// Larger groups are left out.
constexpr std::uint32_t max_singles = 40;

struct Node {
    double t;
    double weight;
};

/// The t of a policy; Gauss-Legendre for the mean from 0 to 1.
std::span<const Node> nodes_of(MultiplesPolicy policy) {
    static constexpr std::array<Node, 1> at_0{{{0, 1}}};
    static constexpr std::array<Node, 1> at_1{{{1, 1}}};
    static constexpr std::array<Node, 8> mean{{{0.019855071751231884, 0.050614268145188130},
                                               {0.101666761293186631, 0.111190517226687235},
                                               {0.237233795041835507, 0.156853322938943644},
                                               {0.408282678752175098, 0.181341891689180992},
                                               {0.591717321247824902, 0.181341891689180992},
                                               {0.762766204958164493, 0.156853322938943644},
                                               {0.898333238706813369, 0.111190517226687235},
                                               {0.980144928248768116, 0.050614268145188130}}};
    switch (policy) {
        case MultiplesPolicy::remove_multiples:
        case MultiplesPolicy::take_if_only_one_good:
            return at_0;
        case MultiplesPolicy::take_all_goods:
            return at_1;
        case MultiplesPolicy::take_winner_of_goods:
        case MultiplesPolicy::take_winner_if_is_good:
        case MultiplesPolicy::take_winner_if_all_are_goods:
            break;
    }
    return mean;
}

/// The factor of another pair of the window.
enum class OtherPair : std::uint8_t {
    any,         ///< t, good or not
    if_good,     ///< t if it is good, otherwise 1
    always_good  ///< t if it is good, otherwise 0
};
OtherPair other_pair(MultiplesPolicy policy) {
    switch (policy) {
        case MultiplesPolicy::remove_multiples:
        case MultiplesPolicy::take_winner_if_is_good:
            return OtherPair::any;
        case MultiplesPolicy::take_winner_if_all_are_goods:
            return OtherPair::always_good;
        case MultiplesPolicy::take_all_goods:
        case MultiplesPolicy::take_winner_of_goods:
        case MultiplesPolicy::take_if_only_one_good:
            break;
    }
    return OtherPair::if_good;
}

/// Mean factors of what other annihilations add to a window.
struct Factors {
    double one;   ///< of one single
    double both;  ///< of two singles that belong together
};

/// Sums over the annihilations in a window, and over the number of them.
struct Sums {
    double windows = 0;
    double others = 0;
};

class ChanceFinder {
  public:
    ChanceFinder(const CoincidenceRules& rules, const PairCells& cells, const WindowContents& contents,
                 Kind kind)
        : rules_(rules),
          other_(other_pair(rules.policy)),
          contents_(contents),
          cells_(cells.count()),
          opener_only_(rules.opener_only() &&
                       (!rules.one_window_each() || rules.policy != MultiplesPolicy::remove_multiples)),
          most_(std::min(rules.max_multiplicity, max_singles)),
          parted_(contents.abs_dt / window_width(rules)),
          end_(2.0 * rules.window * (rules.window + 1.0) / (2.0 * rules.window + 1)),
          apart_(std::min(contents.abs_dt, end_ / 2)) {
        const double paired = 1 - contents.lone;
        const double load = contents.load * (kind == Kind::delayed ? 2 : 1);
        // In mode "every" a window may hold the second single without the first.
        const double second = rules.one_window_each() ? 0 : parted_;
        both_ = load * paired * (1 - parted_);
        one_ = load * (1 - paired * (1 - parted_ - second));
        empty_ = std::exp(-(one_ + both_));
        good_.resize(std::size_t{cells_} * cells_);
        good_partner_.resize(good_.size());
        own_partner_.resize(good_.size(), {1, 0, 0});
        own_good_.resize(cells_);
        if (asks_for_good(rules.policy)) {
            good_ = contents.good_parts;
            find_good_partners();
        }
        if (!opener_only_ && asks_for_good(rules.policy)) {
            const WindowCorrelations blocks(cells, contents);
            for (std::uint32_t cell = 0; cell < cells_; ++cell) {
                for (std::uint32_t other = 0; other < cells_; ++other)
                    block_pairs_.push_back(blocks.place(cell, other));
            }
            for (const Node& node : nodes_of(rules.policy)) {
                // With always_good all are proportional to a power of t.
                if (other_ == OtherPair::always_good && !correlations_.empty()) break;
                const double t = other_ == OtherPair::always_good ? 1 : node.t;
                correlations_.push_back(blocks.find([&](double p) { return factor(p, t); }));
            }
        }
        if (opener_only_) {
            for (std::uint32_t a = 0; a < cells_; ++a)
                openers_.push_back(windows_of_opener(a));
        }
    }

    [[nodiscard]] bool can_be_good(std::uint32_t a, std::uint32_t b) const { return good_[at(a, b)] > 0; }
    [[nodiscard]] PairChances of(std::uint32_t a, std::uint32_t b) const {
        return opener_only_ ? of_openers(a, b) : of_groups(a, b);
    }

  private:
    [[nodiscard]] std::size_t at(std::uint32_t a, std::uint32_t b) const {
        return std::size_t{a} * cells_ + b;
    }
    void find_good_partners() {
        for (std::uint32_t b = 0; b < cells_; ++b) {
            for (std::uint32_t c = 0; c < cells_; ++c) {
                const double partners = contents_.partners[at(b, c)];
                if (partners == 0) continue;
                const double own = contents_.good_partners[at(b, c)];
                own_good_[b] += partners * own;
                for (std::uint32_t a = 0; a < cells_; ++a) {
                    const double good = partners * good_[at(c, a)];
                    std::array<double, 3>& of_partner = own_partner_[at(b, a)];
                    of_partner[1] += good;
                    of_partner[2] += good * own;
                }
            }
            for (std::uint32_t a = 0; a < cells_; ++a) {
                good_partner_[at(a, b)] = own_partner_[at(b, a)][1];
                own_partner_[at(b, a)][1] += own_good_[b];
            }
        }
    }
    /// Of a pair that is good with probability p.
    [[nodiscard]] double factor(double p, double t) const {
        switch (other_) {
            case OtherPair::any:
                return t;
            case OtherPair::always_good:
                return p * t;
            case OtherPair::if_good:
                break;
        }
        return 1 - p + p * t;
    }

    /// The same of the pair of two partners.
    [[nodiscard]] double factor_of_partners(double p, double t) const {
        return other_ == OtherPair::any ? std::pow(t, contents_.partner_weight) : factor(p, t);
    }

    /// The product of factor(p, t) over several p, from the elementary symmetric polynomials of these.
    /// `weights`: of these pairs, added up.
    template <std::size_t count>
    [[nodiscard]] double factor(const std::array<double, count>& polynomials, double t,
                                double weights) const {
        if (other_ != OtherPair::if_good) {
            const double of_all = other_ == OtherPair::any ? polynomials.front() : polynomials.back();
            return of_all * std::pow(t, weights);
        }
        double product = polynomials.back();
        for (std::size_t i = count - 1; i-- > 0;)
            product = polynomials[i] - (1 - t) * product;
        return product;
    }

    /// The factors of WindowCorrelations at a node of the policy.
    struct Correlation {
        double partners = 1;
        double others = 1;
    };
    [[nodiscard]] Correlation correlation_of(std::uint32_t a, std::uint32_t b, std::size_t node) const {
        if (correlations_.empty()) return {};
        const std::size_t place = block_pairs_[at(a, b)];
        const WindowCorrelations::Factors& of_node = correlations_[std::min(node, correlations_.size() - 1)];
        return {of_node.partners[place], of_node.others[place]};
    }

    /// What the pairs of a and b with the singles of other annihilations add up to: means, over these, of the
    /// polynomials of the probabilities that the pairs are good.
    struct OthersOfPair {
        std::array<double, 3> one{};   ///< with a single
        std::array<double, 6> both{};  ///< with a single and its partner, and the pair of these
        double good_partners = 0;      ///< that the partners of a and b are good
    };
    [[nodiscard]] OthersOfPair others_of(std::uint32_t a, std::uint32_t b) const {
        OthersOfPair sum;
        for (std::uint32_t c = 0; c < cells_; ++c) {
            const double part = contents_.singles[c];
            const double one_1 = good_[at(a, c)] + good_[at(b, c)];
            const double one_2 = good_[at(a, c)] * good_[at(b, c)];
            const double partner_1 = good_partner_[at(a, c)] + good_partner_[at(b, c)];
            const double partner_2 = good_partner_[at(a, c)] * good_partner_[at(b, c)];
            sum.one[0] += part;
            sum.one[1] += part * one_1;
            sum.one[2] += part * one_2;
            const double both_1 = part * (one_1 + partner_1);
            const double both_2 = part * (one_2 + one_1 * partner_1 + partner_2);
            const double both_3 = part * (one_2 * partner_1 + one_1 * partner_2);
            const double both_4 = part * (one_2 * partner_2);
            const double own = own_good_[c];
            sum.both[1] += both_1 + own * part;
            sum.both[2] += both_2 + own * both_1;
            sum.both[3] += both_3 + own * both_2;
            sum.both[4] += both_4 + own * both_3;
            sum.both[5] += own * both_4;
            sum.good_partners += contents_.partners[at(a, c)] * good_partner_[at(c, b)];
        }
        sum.both[0] = sum.one[0];
        return sum;
    }

    /// [partners] Sums over the numbers of singles of other annihilations; windows of more than most_ singles
    /// count as 0. `factors` apply to each of these annihilations, `pairs` to each pair of two of these
    /// singles, or of one of them and one of `partners` singles. The window holds `members` singles besides
    /// all these.
    template <std::size_t count>
    [[nodiscard]] std::array<Sums, count> sums_of(const Factors& factors, double pairs,
                                                  std::uint32_t members) const {
        const double one = one_ * factors.one;
        const double both = both_ * factors.both;
        std::array<Sums, count> sums{};
        double before = 0;    // with one single less
        double now = empty_;  // with the singles seen so far
        double others = 0;    // times the number of annihilations
        double power = 1;     // of all pairs of these singles
        double of_next = 1;   // of those that one more makes
        for (std::uint32_t n = 0; members + n <= most_; ++n) {
            double windows = power * now;
            double by_others = power * others;
            for (std::size_t partners = 0; partners < count && members + partners + n <= most_; ++partners) {
                sums[partners].windows += windows;
                sums[partners].others += by_others;
                windows *= of_next;
                by_others *= of_next;
            }
            if (n > 2 * (one_ + both_) && now + before < 1e-12) break;
            others = one * now + both * before;
            const double next = (one * now + 2 * both * before) / (n + 1);
            before = now;
            now = next;
            power *= of_next;
            of_next *= pairs;
        }
        return sums;
    }

    /// Where in a window a single may come that does not open it, in ticks after the opener.
    struct PartOfWindow {
        double from;
        double to;
    };
    /// The part for a single that has no partner, or whose partner is in the window.
    [[nodiscard]] PartOfWindow whole(std::size_t kind) const {
        return {kind == later_single ? apart_ : 0, kind == earlier_single ? end_ - apart_ : end_};
    }
    /// The part for an earlier single that the end of the window separates from its partner.
    [[nodiscard]] PartOfWindow parted_earlier() const { return {end_ - apart_, end_}; }
    /// The mean time between a single that comes anywhere in the stretch and one of the annihilation that
    /// opens the window.
    [[nodiscard]] double from_opener(std::size_t kind, const PartOfWindow& other) const {
        const double at = kind == later_single ? apart_ : 0;
        if (at <= other.from) return (other.from + other.to) / 2 - at;
        const double before = at - other.from;
        const double after = other.to - at;
        return (before * before + after * after) / (2 * (other.to - other.from));
    }
    /// The same of two that come anywhere; each later single keeps them closer.
    [[nodiscard]] double within(std::size_t x, std::size_t y) const {
        const double later = (x == later_single ? 0.5 : 0) + (y == later_single ? 0.5 : 0);
        return (end_ - later * apart_) / 3;
    }

    /// A group of n annihilations begins L (1 - G w) P(n) times per tick: P(n) is that n - 1 follow the
    /// opener. It has n - 1 pairs with the opener's annihilation, which is never parted, and (n - 1) (n - 2)
    /// / 2 others. Of each later single, the end of an earlier window makes G |dt| openers.
    [[nodiscard]] PairChances of_groups(std::uint32_t a, std::uint32_t b) const {
        const double free = 1 - contents_.in_windows;
        const double opened = window_width(rules_) * free;
        const double opens_later = contents_.in_windows * parted_ / free;
        const OthersOfPair of_pair = others_of(a, b);
        PairChances chances;
        const std::span<const Node> nodes = nodes_of(rules_.policy);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const Node& node = nodes[i];
            const double t = node.t;
            const Correlation correlation = correlation_of(a, b, i);
            const double pairs = factor(contents_.good, t);
            // `pairs` is of all pairs of other singles; that of two that belong together is in `both`.
            const Factors others{
                factor(of_pair.one, t, 2),
                pairs > 0 ? factor(of_pair.both, t, 4 + contents_.partner_weight) * correlation.others / pairs
                          : 0};
            const double weight = node.weight * opened;
            const std::array<Sums, 3> by_partners = sums_of<3>(others, pairs, 2);
            const auto sums = [&](std::size_t partners, double own) {
                return Sums{by_partners[partners].windows * weight * own,
                            by_partners[partners].others * weight * own};
            };
            const double partner_of_a = factor(own_partner_[at(a, b)], t, 1 + contents_.partner_weight);
            const double partner_of_b = factor(own_partner_[at(b, a)], t, 1 + contents_.partner_weight);
            const Sums none = sums(0, 1);
            const Sums with_a = sums(1, partner_of_a);
            const Sums with_b = sums(1, partner_of_b);
            const Sums with_both = sums(
                2, partner_of_a * partner_of_b * factor(of_pair.good_partners, t) * correlation.partners);
            chances.partners += (none.windows + (1 - parted_) * none.others) / window_width(rules_);
            for (std::size_t x = 0; x < single_kinds; ++x) {
                for (std::size_t y = 0; y < single_kinds; ++y) {
                    // With its partner, and without; a later single without it would be the opener.
                    const double whole_a = x == lone_single ? 1 : 1 - parted_;
                    const double whole_b = y == lone_single ? 1 : 1 - parted_;
                    const double parted_a = x == earlier_single ? parted_ : 0;
                    const double parted_b = y == earlier_single ? parted_ : 0;
                    const Sums& a_and_b = x == lone_single ? (y == lone_single ? none : with_b)
                                                           : (y == lone_single ? with_a : with_both);
                    const Sums& only_a = x == lone_single ? none : with_a;
                    const Sums& only_b = y == lone_single ? none : with_b;
                    double sum = 0;
                    double abs_dt = 0;
                    const auto add = [&](double windows, double apart) {
                        sum += windows;
                        abs_dt += windows * apart;
                    };
                    add(whole_b * a_and_b.windows, from_opener(x, whole(y)));
                    add(parted_b * only_a.windows, from_opener(x, parted_earlier()));
                    add(whole_a * a_and_b.windows, from_opener(y, whole(x)));
                    add(parted_a * only_b.windows, from_opener(y, parted_earlier()));
                    add(whole_a * (whole_b * a_and_b.others + parted_b * only_a.others) +
                            parted_a * (whole_b * only_b.others + parted_b * none.others),
                        within(x, y));
                    if (x == later_single) {
                        add(opens_later * whole_b * only_b.windows, from_opener(lone_single, whole(y)));
                        add(opens_later * parted_b * none.windows,
                            from_opener(lone_single, parted_earlier()));
                    }
                    if (y == later_single) {
                        add(opens_later * whole_a * only_a.windows, from_opener(lone_single, whole(x)));
                        add(opens_later * parted_a * none.windows,
                            from_opener(lone_single, parted_earlier()));
                    }
                    chances.of[x][y] += sum;
                    chances.first[x][y] += sum / 2;
                    chances.abs_dt[x][y] += abs_dt;
                }
            }
        }
        return chances;
    }

    /// [node of the policy][members besides the opener and its partner]: how many windows of an opener in
    /// cell a let the pair be taken, whatever other annihilations add. Where pairs contain the opener.
    using WindowsOfOpener = std::vector<std::array<double, 3>>;
    [[nodiscard]] WindowsOfOpener windows_of_opener(std::uint32_t a) const {
        WindowsOfOpener windows;
        for (const Node& node : nodes_of(rules_.policy)) {
            Factors others{};
            for (std::uint32_t c = 0; c < cells_; ++c) {
                const double one = contents_.singles[c] * factor(good_[at(a, c)], node.t);
                others.one += one;
                others.both += one * factor(good_partner_[at(a, c)], node.t);
            }
            std::array<double, 3>& of_node = windows.emplace_back();
            for (std::uint32_t more = 0; more < of_node.size(); ++more)
                of_node[more] = sums_of<1>(others, 1, 2 + more).front().windows;
        }
        return windows;
    }
    /// The part of the singles of a kind that open a window. In mode "single_opener" a later single opens one
    /// only if the end of another window parts it from its partner.
    [[nodiscard]] double opens(std::size_t kind) const {
        if (!rules_.one_window_each()) return 1;
        return kind == later_single ? contents_.in_windows * parted_ : 1 - contents_.in_windows;
    }
    struct Opened {
        PairChances::ByKinds of{};
        PairChances::ByKinds abs_dt{};  ///< as in PairChances; only where windows do not overlap
    };
    /// That a window with its opener in cell a takes the pair with a single in cell b. [kind of the
    /// opener][kind of its partner]: it holds the partner of an earlier opener, and not that of a later one.
    [[nodiscard]] Opened opened(std::uint32_t a, std::uint32_t b) const {
        Opened chances;
        const std::span<const Node> nodes = nodes_of(rules_.policy);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const double t = nodes[i].t;
            const double weight = nodes[i].weight * window_width(rules_);
            for (const std::size_t opener : {lone_single, earlier_single, later_single}) {
                const unsigned partner = opener == earlier_single ? 1 : 0;
                const double own =
                    weight * opens(opener) * (partner != 0 ? factor_of_partners(own_good_[a], t) : 1);
                const double lone = own * openers_[a][i][partner];
                const double whole = own * factor(good_partner_[at(a, b)], t) * openers_[a][i][partner + 1];
                const double with = (1 - parted_) * whole;
                const double without = parted_ * lone;
                chances.of[opener][lone_single] += lone;
                chances.of[opener][earlier_single] += with + without;
                // Where the opener lies in no other window, neither does the partner of a later single before
                // it.
                chances.of[opener][later_single] += rules_.one_window_each() ? with : with + without;
                const auto apart = [&](const PartOfWindow& part) { return from_opener(lone_single, part); };
                chances.abs_dt[opener][lone_single] += lone * end_ / 2;
                chances.abs_dt[opener][earlier_single] +=
                    with * apart(this->whole(earlier_single)) + without * apart(parted_earlier());
                chances.abs_dt[opener][later_single] += with * apart(this->whole(later_single));
            }
        }
        return chances;
    }
    [[nodiscard]] PairChances of_openers(std::uint32_t a, std::uint32_t b) const {
        const Opened first = opened(a, b);
        const Opened second = opened(b, a);
        PairChances chances;
        chances.first = first.of;
        for (std::size_t x = 0; x < single_kinds; ++x) {
            for (std::size_t y = 0; y < single_kinds; ++y) {
                chances.of[x][y] = first.of[x][y] + second.of[y][x];
                chances.abs_dt[x][y] = rules_.one_window_each() ? first.abs_dt[x][y] + second.abs_dt[y][x]
                                                                : chances.of[x][y] * (end_ / 2);
            }
        }
        const std::span<const Node> nodes = nodes_of(rules_.policy);
        for (std::size_t i = 0; i < nodes.size(); ++i)
            chances.partners +=
                nodes[i].weight * opens(earlier_single) * (openers_[a][i][0] + openers_[b][i][0]) / 2;
        return chances;
    }

    const CoincidenceRules& rules_;
    const OtherPair other_;
    const WindowContents& contents_;
    const std::uint32_t cells_;
    /// Candidates are the pairs with the opener. Under RemoveMultiples, windows that are the same in both
    /// modes give the same pairs.
    const bool opener_only_;
    const std::uint32_t most_;
    const double parted_;  ///< s
    const double end_;     ///< twice the mean time from the opener to a single that comes anywhere
    const double apart_;   ///< ticks between the two singles of an annihilation
    double empty_;         ///< that no other annihilation falls into the window, or both
    double one_;           ///< annihilations of which one single is in the window, or in both
    double both_;          ///< those of which both are
    // Only for policies that ask; 0 otherwise.
    std::vector<double> good_;      ///< [a * cells + b] part of the pairs that are good
    std::vector<double> own_good_;  ///< [a] part of the singles that make a good pair with their partner
    /// [a * cells + b] that a single in a and the partner of one in b are good.
    std::vector<double> good_partner_;
    /// [a * cells + b] polynomials of the pairs of the partner of a single in a, with that single and with
    /// one in b.
    std::vector<std::array<double, 3>> own_partner_;
    std::vector<WindowsOfOpener> openers_;  ///< [a]; where pairs contain the opener
    // Only for policies that ask, where all singles of a window may pair.
    std::vector<std::size_t> block_pairs_;                   ///< [a * cells + b] in the correlations
    std::vector<WindowCorrelations::Factors> correlations_;  ///< [node of the policy], or one for all
};

}  // namespace

std::vector<PairChances> pair_chances(const CoincidenceRules& rules, const PairCells& cells,
                                      const WindowContents& contents, Kind kind) {
    const ChanceFinder finder(rules, cells, contents, kind);
    const std::uint32_t count = cells.count();
    if (!asks_for_good(rules.policy))
        return std::vector<PairChances>(std::size_t{count} * count, finder.of(0, 0));
    std::vector<PairChances> all(std::size_t{count} * count);
    for (std::uint32_t a = 0; a < count; ++a) {
        for (std::uint32_t b = a; b < count; ++b) {
            if (!finder.can_be_good(a, b)) continue;
            const PairChances chances = finder.of(a, b);
            all[std::size_t{a} * count + b] = chances;
            PairChances& turned = all[std::size_t{b} * count + a];
            turned.partners = chances.partners;
            for (std::size_t x = 0; x < single_kinds; ++x) {
                for (std::size_t y = 0; y < single_kinds; ++y) {
                    turned.of[x][y] = chances.of[y][x];
                    turned.first[x][y] = chances.of[y][x] - chances.first[y][x];
                    turned.abs_dt[x][y] = chances.abs_dt[y][x];
                }
            }
        }
    }
    return all;
}

PairChances chances_alone(const CoincidenceRules& rules, const PairCells& cells,
                          const WindowContents& contents) {
    CoincidenceRules alone = rules;
    alone.policy = MultiplesPolicy::remove_multiples;
    return ChanceFinder(alone, cells, contents, Kind::prompt).of(0, 0);
}

}  // namespace petacq::gpu
