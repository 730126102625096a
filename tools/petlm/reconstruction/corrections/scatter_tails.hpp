// How much scatter there is, from the lines that miss the object: all of their true pairs are scattered.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "config/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"

namespace petacq::corrections {

/// A value of a pair of crystals.
using OfPair = std::function<double(std::uint32_t a, std::uint32_t b)>;

/// Lines are binned by angle, distance from the axis, place along the axis, and distance of their ends along
/// the axis. A bin is in the tails if no line of it, nor of the bins within `margin_mm` across and one along
/// the axis, meets the object. The scatter of a pair is `expected` times one scale: the prompts in the tails
/// less the randoms there, divided by what is expected there (C. C. Watson, IEEE Trans. Nucl. Sci. 47 (2000)
/// 1587). This ratio is uncertain by the noise of the counts and by `shape_sigma`, as the shape of a
/// simulation is least certain far from the object; the simulation itself by `simulation_sigma`. The scale is
/// the mean of the ratio and of 1, weighted by their certainties.
class ScatterTails {
  public:
    static constexpr double simulation_sigma = 0.1;
    static constexpr double shape_sigma = 0.15;

    /// `lines` has the object. Sums are those of all pairs if there are at most `max_pairs`, else of an even
    /// sample of `max_pairs`. `expected`: the scatter of a pair, 0 for dead ones. All must outlive it.
    ScatterTails(const config::Scanner& scanner, const gpu::PairRule& rule, const LineFactors& lines,
                 OfPair expected, OfPair randoms, net::WorkerPool& pool, std::size_t max_pairs = 8'000'000);

    /// Adds prompts of a pair that the rule accepts.
    void add(std::uint32_t a, std::uint32_t b, double prompts);
    /// What `expected` has to be multiplied by; above 0. After the last add(). `share`: the share of all
    /// pairs whose prompts were added.
    [[nodiscard]] double scale(double share = 1) const;
    /// Expected of all pairs, before the scale.
    [[nodiscard]] double total() const;
    /// Prompts less randoms in the tails, over all pairs, and their standard deviation.
    struct TailCounts {
        double trues = 0;
        double noise = 0;
        double expected = 0;
    };
    [[nodiscard]] TailCounts counts(double share = 1) const;
    /// Least distance between a line in the tails and the object, mm.
    [[nodiscard]] double margin_mm() const { return margin_mm_; }

  private:
    struct Line {
        double cosine;  ///< of the angle of its normal across the axis
        double sine;
        double across;  ///< distance from the axis / radius of the scanner; has a sign
        double along;   ///< middle / half the length of the scanner
        double apart;   ///< its ends along the axis / length of the scanner
    };
    struct Bin {
        double expected = 0;
        double randoms = 0;
        double prompts = 0;
        bool object = false;
    };
    static constexpr std::size_t angles = 24;
    static constexpr std::size_t distances = 64;
    static constexpr std::size_t places = 12;
    static constexpr std::size_t groups = 4;
    static constexpr std::size_t bins = angles * distances * places * groups;

    [[nodiscard]] Line line(std::uint32_t a, std::uint32_t b) const;
    [[nodiscard]] static std::size_t bin_of(const Line& line);
    void sample(const config::Scanner& scanner, const gpu::PairRule& rule, net::WorkerPool& pool,
                std::size_t max_pairs);
    [[nodiscard]] std::vector<std::size_t> tails() const;

    const LineFactors& lines_;
    OfPair expected_;
    OfPair randoms_;
    double radius_mm_;
    double half_length_mm_;
    double margin_mm_;
    std::vector<Bin> bins_;
};

}  // namespace petacq::corrections
