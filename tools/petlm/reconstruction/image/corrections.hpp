// The corrections of an image.
#pragma once

#include <memory>
#include <string>

#include "config/scanner/scanner.hpp"
#include "tools/petlm/reconstruction/corrections/line_factors.hpp"
#include "tools/petlm/reconstruction/corrections/run_randoms.hpp"
#include "tools/petlm/reconstruction/em/angles.hpp"
#include "tools/petlm/reconstruction/em/scatter.hpp"
#include "tools/petlm/reconstruction/image/counts.hpp"
#include "tools/petlm/reconstruction/image/image.hpp"
#include "tools/petlm/reconstruction/image/quick_look.hpp"
#include "tools/petlm/reconstruction/image/report.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::image {

/// Randoms, pile-up and lost data are corrected always. The rest needs what a user names: a normalisation,
/// and for scatter and attenuation an object. Either of them also brings the correction for dead time.
class Corrections {
  public:
    /// All must outlive it.
    /// `coverage`: that of the records counted, of all in the source or of a part. `pairs`: those of `counts`
    /// without the time of flight.
    Corrections(const petlm::ExportSource& source, const daemon::Coverage& coverage,
                const config::Scanner& scanner, const gpu::PairRule& rule,
                const corrections::LineFactors& lines, const Angles& angles, const ImageCounts& counts,
                const PairCounts& pairs, const corrections::EnergyWindow& window,
                const petlm::ImageOptions& options, const QuickLookOptions& how, net::WorkerPool& pool);
    Corrections(const Corrections&) = delete;
    Corrections& operator=(const Corrections&) = delete;

    /// Valid as long as this object.
    [[nodiscard]] QuickLookModel model() const;
    /// For the image of EM: pile-up, and the unit.
    [[nodiscard]] double scale() const { return pile_up_ * report_.quantity.scale; }
    [[nodiscard]] const Report& report() const { return report_; }

  private:
    void use_seconds();
    void use_delayeds(const petlm::ExportSource& source, const RandomsByModules& delayeds,
                      const std::string& why);
    void use_lines(const petlm::ImageOptions& options);
    void use_dead_time(const std::string& why);
    void use_loss(const petlm::ExportSource& source, const daemon::Coverage& coverage,
                  const std::string& why);
    void use_scatter(const daemon::Coverage& coverage, const config::Scanner& scanner,
                     const gpu::PairRule& rule, const PairCounts& pairs,
                     const corrections::EnergyWindow& window, const petlm::ImageOptions& options,
                     net::WorkerPool& pool);
    void use_spurious(const gpu::PairRule& rule);
    void use_quantity(const daemon::Coverage& coverage, const petlm::ImageOptions& options, double voxel_mm);
    /// While the crystals are at the angle of these numbers.
    [[nodiscard]] double found(std::uint32_t a, std::uint32_t b) const {
        if (!losses_) return lines_.normalisation(a, b);
        const std::uint32_t crystal_a = lines_.crystal(a);
        const std::uint32_t crystal_b = lines_.crystal(b);
        return lines_.normalisation(a, b) * losses_->arrived(crystal_a, crystal_b) *
               (report_.asked ? losses_->seen(crystal_a, crystal_b) : 1);
    }
    [[nodiscard]] bool turns() const { return lines_.angles() > 1; }
    /// Of the decays that were found, at the angle of this number of a crystal.
    [[nodiscard]] double share(std::uint32_t a) const { return shares_[a / lines_.crystals()]; }
    [[nodiscard]] Pair crystals_of(Pair pair) const {
        return {lines_.crystal(pair.a), lines_.crystal(pair.b)};
    }

    const corrections::LineFactors& lines_;
    const Angles& angles_;
    std::vector<double> shares_;  ///< [angle]
    const ImageCounts& counts_;
    bool loss_made_ = false;  ///< and there is some
    std::shared_ptr<petlm::RunRandoms> of_run_;
    std::shared_ptr<petlm::PairLosses> losses_;  ///< likewise of other rules
    std::unique_ptr<Scatter> scatter_;
    OfPair randoms_;
    OfPair spurious_;
    double pile_up_ = 1;
    Correction randoms_made_{"randoms", false, "", {}};
    Correction pile_up_made_{"pile-up", false, "", {}};
    Report report_;
};

}  // namespace petacq::image
