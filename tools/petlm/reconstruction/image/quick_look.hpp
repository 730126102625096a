// An image from the numbers of prompts of pairs of crystals.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "tools/petlm/reconstruction/em/mlem.hpp"
#include "tools/petlm/reconstruction/em/pair_counts.hpp"
#include "tools/petlm/reconstruction/em/sensitivity.hpp"

namespace petacq::image {

struct QuickLookOptions {
    Grid grid;
    std::uint32_t iterations = 3;
    std::uint32_t subsets = 8;
    bool end_with_all_lines = false;  ///< EmOptions
    double psf_mm = 0;                ///< likewise
    double smooth_mm = 0;
    /// Multiplies the image: a loss that is the same for all lines, and the unit.
    double scale = 1;
    std::string backend = "auto";
    std::uint64_t max_memory = 0;  ///< bytes of host memory
    /// Where sensitivities are kept; empty: nowhere.
    std::filesystem::path cache;
    std::function<void(std::uint64_t, std::uint64_t)> progress;
};

/// The model of each line, and the same chance for the sensitivity; both empty or both given.
struct QuickLookModel {
    LineModel line;
    FactorOfRay ray;
    std::string digest;  ///< of all that the chance depends on besides the scanner; empty: not known
};

struct QuickLook {
    EmResult em;                     ///< em.image is scaled and smoothed
    std::vector<float> sensitivity;  ///< [voxel]
    std::string backend;
    std::string sensitivity_from;  ///< "computed", "from the cache ..."
    double sensitivity_s = 0;
    double em_s = 0;
};

/// Capacity of PairCounts that takes half of the memory.
std::size_t pair_capacity(std::uint64_t max_memory);
/// Checks the options as far as possible before the records are read. Throws config::Error for an unusable
/// back-end, std::invalid_argument when the images alone do not fit into the memory.
void check_before_reading(const QuickLookOptions& options);
/// Without prompts all values are 0. `known`: the sensitivity, if an image of the same grid, lines and model
/// has been made before; otherwise empty. Throws config::Error (unusable back-end), std::invalid_argument
/// (too little memory), std::runtime_error (the GPU fails).
QuickLook make_quick_look(const config::Scanner& scanner, const gpu::PairRule& rule, const PairCounts& counts,
                          const corrections::LineFactors& factors, const QuickLookModel& model,
                          net::WorkerPool& pool, const QuickLookOptions& options,
                          std::vector<float> known = {});

}  // namespace petacq::image
