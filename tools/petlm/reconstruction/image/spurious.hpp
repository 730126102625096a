// Pairs with prompt gammas among the prompts of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/nuclides/nuclides.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/reconstruction/gammas/gamma_model.hpp"
#include "tools/petlm/reconstruction/gammas/spurious_pairs.hpp"
#include "tools/petlm/reconstruction/image/counts.hpp"
#include "tools/petlm/reconstruction/image/made_image.hpp"

namespace petacq::image {

/// Where decays are. What an image has elsewhere, by noise and by photons that scattered, is left out: near
/// the crystals many more gammas are seen.
corrections::Activity decays_of(const Grid& grid, std::vector<float> image, net::WorkerPool& pool);

/// Of the pairs of a part of a run. The window of the gammas is left to the caller. `setup` and `lines` must
/// outlive it.
gammas::GammaModel gamma_model_of(const Setup& setup, const Part& part, const PartLines& lines,
                                  const ImageCounts& counts, const config::Nuclide& nuclide);
/// gammas::SpuriousPairs of what the run records. `setup` and `lines` must outlive it.
corrections::OfPair found_pairs(const Setup& setup, const PartLines& lines);

/// For the expected counts of an image, and the sensitivity that the image without them had.
struct SpuriousOfRun {
    std::shared_ptr<const gammas::SpuriousPairs> pairs;
    std::vector<float> sensitivity;
};
/// What make_image() takes besides, from an image of all pairs as if they were of annihilation photons. How
/// well photons are found follows from the singles of the seconds; without them, every photon that leaves
/// energy in the crystals counts as found. Empty for nuclides that emit few prompt gammas or none, and for
/// unknown ones. `counts` are finished. Throws as make_image() does.
SpuriousOfRun spurious_of(Setup& setup, const Part& part, const PartLines& lines, const ImageCounts& counts,
                          const std::string& what, std::uint64_t max_memory);

}  // namespace petacq::image
