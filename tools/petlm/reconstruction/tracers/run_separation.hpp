// The images of both tracers of a run.
#pragma once

#include <cstdint>
#include <memory>

#include "config/nuclides/nuclides.hpp"
#include "tools/petlm/reconstruction/gammas/gamma_chance.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"
#include "tools/petlm/reconstruction/image/made_image.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/reconstruction/tracers/separation.hpp"
#include "tools/petlm/reconstruction/tracers/tracer_run.hpp"

namespace petacq::tracers {

/// Makes an image of all pairs, which expects the spurious ones of the tracer with gammas, and one of its
/// triples, and separates them. Not thread-safe.
class RunSeparation {
  public:
    /// `run` and `of_triples`, the same run for the tracer with gammas, must outlive it; of its decays
    /// photons are found with `efficiency` (gammas::GammaChance). Throws as make_image() does.
    RunSeparation(TracerRun& run, image::Setup& of_triples, const config::Nuclide& nuclide,
                  double efficiency);

    [[nodiscard]] const TracerImages& images() const { return main_.tracers; }
    [[nodiscard]] const image::MadeImage& all() const { return main_.all; }
    [[nodiscard]] const image::MadeImage& coincident() const { return triples_.coincident; }
    [[nodiscard]] const gammas::GammaChance& chance() const { return *chance_; }
    [[nodiscard]] const gammas::SpuriousPairs& spurious() const { return *main_.spurious; }

    /// The images of a run that records as many pairs and triples on average, but others. The chance of
    /// gammas, and the lines of spurious pairs, are those of the run; how many spurious pairs there are
    /// follows from the triples. The same seed gives the same. Throws as make_image() does.
    [[nodiscard]] TracerImages replicate(std::uint64_t seed) const;

  private:
    struct Triples {
        image::MadeImage coincident;
        image::MadeImage delayed;
    };
    struct Main {
        image::MadeImage all;
        std::shared_ptr<const gammas::SpuriousPairs> spurious;
        TracerImages tracers;
    };
    [[nodiscard]] Triples make_triples(const image::ImageCounts& coincident,
                                       const image::ImageCounts& delayed) const;
    [[nodiscard]] TracerImages separated(const std::vector<float>& all, const Triples& triples) const;
    [[nodiscard]] Main make_main(image::ImageCounts pairs, const Triples& triples,
                                 const gammas::SpuriousPairs& spurious) const;

    TracerRun& run_;
    image::Setup& of_triples_;
    Triples triples_;
    std::unique_ptr<const gammas::GammaChance> chance_;
    Main main_;
};

}  // namespace petacq::tracers
