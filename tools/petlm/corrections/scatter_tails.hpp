// The scattered pairs of each line, from the lines that miss the object: all of their true pairs are
// scattered.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/scanner.hpp"
#include "gpu/arithmetic.hpp"
#include "gpu/host/worker_pool.hpp"
#include "tools/petlm/corrections/line_factors.hpp"

namespace petacq::corrections {

/// A value of a pair of crystals.
using OfPair = std::function<double(std::uint32_t a, std::uint32_t b)>;

/// Lines are binned by angle, distance from the axis, place along the axis, and distance of their ends along
/// the axis. A bin is in the tails if no line of it, nor of the bins within `margin_mm` across and one along
/// the axis, meets the object. The scatter of a pair is
///     weight * (c . f)^2, or 0 where c . f is negative,
/// where the weight is solid angle * normalisation * live and f are smooth functions of the line: a parabola
/// across, its middle and width depending on the angle, and along the axis. (The tails fall faster than a
/// Gaussian, since the energy threshold limits the angle of scatter.) c maximises the Poisson likelihood of
/// the prompts in the tails, randoms added (iteratively reweighted least squares; McCullagh and Nelder,
/// Generalized Linear Models, 1989, section 2.5).
///
/// The idea is that of D. L. Bailey and S. R. Meikle, Phys. Med. Biol. 39 (1994) 411, and of C. C. Watson's
/// scaling to the tails; what such a fit cannot do is in docs/explanation/image.md.
class ScatterTails {
  public:
    /// `lines` has the object. The weights are those of all pairs if there are at most `most_pairs`, else of
    /// an even sample of so many. `weight`: of a pair, without attenuation, 0 for dead ones. All must outlive
    /// it.
    ScatterTails(const config::Scanner& scanner, const gpu::PairRule& rule, const LineFactors& lines,
                 OfPair weight, OfPair randoms, gpu::WorkerPool& pool, std::size_t most_pairs = 8'000'000);

    /// Adds prompts of a pair that the rule accepts.
    void add(std::uint32_t a, std::uint32_t b, double prompts);
    /// After the last add(). `share`: the share of all pairs whose prompts were added. False, and the reason
    /// in why(), if the tails do not tell.
    bool fit(double share = 1);

    [[nodiscard]] const std::string& why() const { return why_; }
    /// Expected in the run among the prompts of the pair; 0 before fit() and without success.
    [[nodiscard]] double counts(std::uint32_t a, std::uint32_t b) const;
    /// Expected in the run, of all pairs.
    [[nodiscard]] double total() const { return total_; }
    /// Prompts less randoms in the tails, and the prompts there.
    [[nodiscard]] double tail_trues() const { return tail_trues_; }
    [[nodiscard]] double tail_prompts() const { return tail_prompts_; }
    /// Least distance between a line in the tails and the object, mm.
    [[nodiscard]] double margin_mm() const { return margin_mm_; }

    static constexpr std::size_t functions = 12;

  private:
    struct Line {
        double cosine;  ///< of the angle of its normal across the axis
        double sine;
        double across;  ///< distance from the axis / radius of the scanner; has a sign
        double along;   ///< middle / half the length of the scanner
        double apart;   ///< its ends along the axis / length of the scanner
    };
    struct Bin {
        double weight = 0;
        double randoms = 0;
        double prompts = 0;
        bool object = false;
    };
    static constexpr std::size_t angles = 24;
    static constexpr std::size_t distances = 64;
    static constexpr std::size_t places = 12;
    static constexpr std::size_t groups = 4;
    static constexpr std::size_t bins = angles * distances * places * groups;
    using Functions = std::array<double, functions>;

    [[nodiscard]] Line line(std::uint32_t a, std::uint32_t b) const;
    [[nodiscard]] static std::size_t bin_of(const Line& line);
    [[nodiscard]] static Line middle_of(std::size_t bin);
    [[nodiscard]] static Functions functions_of(const Line& line);
    [[nodiscard]] double density(const Line& line) const;
    void sample(const config::Scanner& scanner, const gpu::PairRule& rule, gpu::WorkerPool& pool,
                std::size_t most_pairs);
    [[nodiscard]] std::vector<std::size_t> tails() const;

    const LineFactors& lines_;
    OfPair weight_;
    OfPair randoms_;
    double radius_mm_;
    double half_length_mm_;
    double margin_mm_;
    std::vector<Bin> bins_;
    bool fitted_ = false;
    Functions c_{};
    double total_ = 0;
    double tail_trues_ = 0;
    double tail_prompts_ = 0;
    std::string why_;
};

}  // namespace petacq::corrections
