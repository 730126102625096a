// What an image is corrected for, with the sentences that tell the user.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "config/scanner.hpp"
#include "tools/petlm/corrections/line_factors.hpp"
#include "tools/petlm/corrections/run_randoms.hpp"
#include "tools/petlm/em/scatter.hpp"
#include "tools/petlm/image/image.hpp"
#include "tools/petlm/image/quick_look.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::image {

struct Correction {
    const char* name;  ///< "normalisation", ...
    bool made = false;
    std::string sentence;  ///< with its figure, or why it was not made
    std::map<std::string, std::variant<double, std::string>> figures;
};

/// What the values of an image are.
struct Quantity {
    bool activity = false;    ///< concentration, otherwise decays per voxel
    bool calibrated = false;  ///< by an activity factor
    std::string unit = "decays per voxel";
    double scale = 1;               ///< from decays per voxel
    std::optional<double> seconds;  ///< recorded; absent: unknown
    std::optional<std::string> time_of_activity;
    std::string nuclide;  ///< empty: unknown
};

/// Randoms, pile-up and lost data are corrected always. The rest needs what a user names: a normalisation,
/// and for scatter and attenuation an object. Either of them also brings the correction for dead time.
class Corrections {
  public:
    /// All must outlive it.
    Corrections(const petlm::ExportSource& source, const config::Scanner& scanner, const gpu::PairRule& rule,
                const corrections::LineFactors& lines, const RandomsByModules& delayeds,
                const PairCounts& pairs, const corrections::EnergyWindow& window,
                const petlm::ImageOptions& options, const QuickLookOptions& how, gpu::WorkerPool& pool);
    Corrections(const Corrections&) = delete;
    Corrections& operator=(const Corrections&) = delete;

    /// Valid as long as this object.
    [[nodiscard]] QuickLookModel model() const;
    /// For the image of EM: pile-up, and the unit.
    [[nodiscard]] double scale() const { return pile_up_ * quantity_.scale; }
    [[nodiscard]] const Quantity& quantity() const { return quantity_; }
    [[nodiscard]] const std::vector<Correction>& list() const { return list_; }
    /// A user named something to correct for.
    [[nodiscard]] bool asked() const { return asked_; }
    [[nodiscard]] std::vector<std::string> sentences() const;
    /// For pictures and the NIfTI description: what was corrected for, and what was not. One line.
    [[nodiscard]] std::string warning() const;
    [[nodiscard]] std::string short_warning() const;

  private:
    void use_seconds();
    void use_delayeds(const petlm::ExportSource& source, const RandomsByModules& delayeds,
                      const std::string& why);
    void use_lines(const petlm::ImageOptions& options);
    void use_dead_time(const std::string& why);
    void use_loss(const petlm::ExportSource& source, const std::string& why);
    void use_scatter(const config::Scanner& scanner, const gpu::PairRule& rule, const PairCounts& pairs,
                     const corrections::EnergyWindow& window, const petlm::ImageOptions& options,
                     std::uint64_t max_memory, gpu::WorkerPool& pool);
    void use_quantity(const petlm::ExportSource& source, const petlm::ImageOptions& options, double voxel_mm);
    [[nodiscard]] double found(std::uint32_t a, std::uint32_t b) const {
        if (!of_run_) return lines_.normalisation(a, b);
        return lines_.normalisation(a, b) * of_run_->arrived(a, b) * (asked_ ? of_run_->seen(a, b) : 1);
    }
    [[nodiscard]] std::vector<std::string> names(bool made) const;

    const corrections::LineFactors& lines_;
    bool asked_;
    bool loss_made_ = false;  ///< and there is some
    std::unique_ptr<petlm::RunRandoms> of_run_;
    std::unique_ptr<Scatter> scatter_;
    OfPair randoms_;
    double pile_up_ = 1;
    Quantity quantity_;
    Correction randoms_made_{"randoms", false, "", {}};
    Correction pile_up_made_{"pile-up", false, "", {}};
    std::vector<Correction> list_;
};

}  // namespace petacq::image
