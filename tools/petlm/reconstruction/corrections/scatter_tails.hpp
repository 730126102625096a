// How much scatter there is, from the lines that miss the object: all of their true pairs are scattered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/corrections/scatter_simulation.hpp"

namespace petacq::corrections {

/// True pairs, that is, but for those that scatter in the crystals alone and so are found on another line.
///
/// Lines are binned by angle, distance from the axis, place along the axis, and distance of their ends along
/// the axis. A bin is in the tails if no line of it, nor of the bins within `margin_mm` across and one along
/// the axis, meets the object. The prompts in the tails less the randoms there, divided by the scatter
/// expected there, are a ratio that should be 1 (C. C. Watson, IEEE Trans. Nucl. Sci. 47 (2000) 1587). It is
/// the mean over groups of bins, by distance and place. Its error is that of the counts, or that of the
/// differences between the groups if these are larger (they tell how well the shape of the simulation fits),
/// and that of the randoms.
/// The simulation is known better than the tails, and stands as it is, unless the ratio is further from 1
/// than `confidence` times its error, that of the simulation, and that of the shape together. Then the object
/// is not all that scatters, or not as said, and the ratio is the scale of the simulation. The shape is known
/// within 10 % where a tenth of the scatter is; tails with less of it are further out, and the shape there is
/// less certain. A ratio that is not even known within `least_precision` scales nothing.
class ScatterTails {
  public:
    static constexpr double confidence = 2;
    static constexpr double simulation_error = 0.03;
    static constexpr double least_precision = 0.3;  ///< of the ratio, relative
    static constexpr std::size_t angles = 24;
    static constexpr std::size_t distances = 64;
    static constexpr std::size_t places = 12;
    static constexpr std::size_t groups = 4;
    static constexpr std::size_t bins = angles * distances * places * groups;

    /// Crystals are those of the numbers of `lines` (LineFactors), which has the object. Sums are those of
    /// all pairs if there are at most `max_pairs`, else of an even sample of `max_pairs`. `found`: whether
    /// prompts of the pair are possible. All must outlive it.
    ScatterTails(const config::Scanner& scanner, const gpu::PairRule& rule, const LineFactors& lines,
                 OfPair found, OfPair randoms, net::WorkerPool& pool, std::size_t max_pairs = 8'000'000);

    /// Adds prompts of a pair.
    void add(std::uint32_t a, std::uint32_t b, double prompts);
    /// Prompts less randoms of all pairs. After the last add(). `share`: the share of all pairs whose prompts
    /// were added.
    [[nodiscard]] double trues(double share = 1) const;

    struct Scale {
        double factor = 1;  ///< what `expected` has to be multiplied by
        double ratio = 1;
        double error = std::numeric_limits<double>::infinity();  ///< of the ratio
        double expected = 0;                                     ///< in the tails
        double unscattered = 0;                                  ///< likewise
        double found = 0;  ///< prompts less randoms and unscattered pairs in the tails
    };
    /// The bin of a pair.
    [[nodiscard]] std::size_t bin_of(std::uint32_t a, std::uint32_t b) const { return bin_of(line(a, b)); }
    /// After the last add(). `expected`: the scatter of a pair. `unscattered`: the pairs of each bin that did
    /// not scatter in the object; empty: none.
    [[nodiscard]] Scale scale(const OfPair& expected, net::WorkerPool& pool, double share = 1,
                              const std::vector<double>& unscattered = {});
    /// Expected of all pairs, before the scale. After scale().
    [[nodiscard]] double total() const;
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
        double sampling = 0;  ///< variance of expected and randoms, if only some pairs were summed
        bool object = false;
    };

    [[nodiscard]] Line line(std::uint32_t a, std::uint32_t b) const;
    [[nodiscard]] static std::size_t bin_of(const Line& line);
    /// Adds use(a, b, bin), a value of the pair, to one member of the bins, for the pairs that can be found.
    template <class Use>
    void sample(net::WorkerPool& pool, double Bin::*of, Use&& use);
    [[nodiscard]] std::vector<std::size_t> tails() const;
    /// Of bins with about the same distance from the axis and place along it.
    [[nodiscard]] static std::size_t group_of(std::size_t bin);

    gpu::PairRule rule_;
    const LineFactors& lines_;
    OfPair found_;
    std::uint64_t crystals_;
    std::size_t max_pairs_;
    double radius_mm_;
    double half_length_mm_;
    double margin_mm_;
    std::vector<Bin> bins_;
};

}  // namespace petacq::corrections
