// A run of one tracer or of two, as petlm tracers reads it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/nuclides/nuclides.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"
#include "tools/petlm/reconstruction/image/made_image.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/reconstruction/tracers/triple_counts.hpp"

namespace petacq::tracers {

/// The records of a run with their setup, of a bed and a scanner that stood still. Not thread-safe.
class TracerRun {
  public:
    /// Throws BadInput if the bed or the scanner moved, otherwise as TripleCounts does.
    explicit TracerRun(const petlm::ImageOptions& options);

    [[nodiscard]] image::Setup& setup() { return setup_; }
    [[nodiscard]] const TripleCounts& counts() const { return counts_; }
    [[nodiscard]] double prompts() const { return static_cast<double>(counts_.pairs.prompts); }
    /// `setup`: another one of the same run, or its own.
    image::MadeImage image(image::Setup& setup, const image::ImageCounts& counts, const std::string& what);

    /// What the fate of the gammas depends on.
    [[nodiscard]] gammas::GammaModel gamma_model(const config::Nuclide& nuclide) const;
    /// Where those decays are that an image shows.
    [[nodiscard]] corrections::Activity decays(const std::vector<float>& image);
    /// Of these, those whose pairs are found.
    [[nodiscard]] corrections::Activity found_decays(const image::MadeImage& image);
    /// Of decays in an image, as many as that many prompts need.
    std::shared_ptr<gammas::SpuriousPairs> spurious(const gammas::GammaModel& model,
                                                    const std::vector<float>& image, double efficiency,
                                                    double prompts);
    /// In images of all pairs.
    void expect(std::shared_ptr<const gammas::SpuriousPairs> spurious) {
        counts_.pairs.spurious = std::move(spurious);
    }

  private:
    image::Setup setup_;
    image::Part part_;
    image::PartLines lines_;
    TripleCounts counts_;
    std::vector<float> sensitivity_;  // that of all images; empty: not known yet
};

}  // namespace petacq::tracers
