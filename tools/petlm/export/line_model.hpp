// What the lines of an exported run are expected to hold: the factors of their true pairs, and their scatter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/em/lines.hpp"
#include "tools/petlm/reconstruction/em/scatter.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::petlm {

/// The model of a line is
///     prompts = trues * attenuation * (positrons per mm^3, integrated along the line in mm)
///               + randoms + scatter,
/// all in the recorded time. No function depends on the order of the crystals. Thread-safe.
class LineModel {
  public:
    /// Reads the records of the target for the scatter. Throws UsageError, and as corrections::LineFactors
    /// does.
    LineModel(const ExportSource& source, const config::Scanner& scanner, const ExportOptions& options,
              net::WorkerPool& pool);
    LineModel(const LineModel&) = delete;
    LineModel& operator=(const LineModel&) = delete;

    /// face^2 cos cos / (2 pi distance^2) * normalisation * live / pile-up, mm^2. 0 if one of the crystals
    /// is dead or the rules refuse the pair. In the long form as corrections::LineFactors::solid_angle() has
    /// it.
    [[nodiscard]] double trues(std::uint32_t a, std::uint32_t b) const;
    /// The share of the pairs that leaves the object, above 0; 1 without an object.
    [[nodiscard]] double attenuation(std::uint32_t a, std::uint32_t b) const {
        return lines_.attenuation(a, b);
    }
    /// Counts; 0 without a correction for scatter.
    [[nodiscard]] double scatter(std::uint32_t a, std::uint32_t b) const {
        return scatter_ ? scatter_->counts(a, b) : 0;
    }
    /// Per mm of the line, at the place of a bin of time differences t(b) - t(a) of two crystals a < b.
    [[nodiscard]] double scatter_per_mm(std::uint32_t a, std::uint32_t b, const image::TofBins& tof,
                                        std::int16_t bin) const {
        return scatter(a, b) * image::share_of_scatter(lines_, {a, b}, tof, bin) / tof.bin_mm();
    }
    /// Counts; 0 without an estimate.
    [[nodiscard]] double randoms(std::uint32_t a, std::uint32_t b) const {
        return randoms_.sum ? randoms_.sum(a, b) : 0;
    }
    [[nodiscard]] bool attenuates() const { return !lines_.object().empty(); }
    [[nodiscard]] bool has_randoms() const { return static_cast<bool>(randoms_.sum); }
    [[nodiscard]] bool scatters() const { return scatter_ != nullptr; }
    /// The true activity divided by that of an image in which each photon is detected; 1 if it is unknown.
    [[nodiscard]] double calibration() const;
    /// From positrons per second, the mean over the recorded time, to the activity at the start of the run; 1
    /// without a nuclide.
    [[nodiscard]] double decay() const { return decay_; }
    /// One for each correction, with its figure or why it was not made.
    [[nodiscard]] const std::vector<std::string>& sentences() const { return sentences_; }

  private:
    [[nodiscard]] double found(std::uint32_t a, std::uint32_t b) const;
    void use_lines(const ExportOptions& options);
    void use_scatter(const ExportSource& source, const config::Scanner& scanner, const ExportOptions& options,
                     net::WorkerPool& pool);
    void use_run(const ExportSource& source, const ExportOptions& options);

    gpu::PairRule rule_;
    corrections::LineFactors lines_;
    RandomsPerPair randoms_;
    double decay_ = 1;
    std::unique_ptr<image::Scatter> scatter_;
    std::vector<std::string> sentences_;
};

/// Number of pairs that the rule accepts, in either order once. In the long form at most: those of the
/// modules that pair, whatever the places of their crystals.
std::uint64_t good_pairs(const config::Geometry& geometry, const gpu::PairRule& rule);

}  // namespace petacq::petlm
