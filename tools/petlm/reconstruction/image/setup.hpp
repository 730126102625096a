// What the images of one target are made with: its records, the scanner, and the settings.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "config/scanner/depth_of_interaction.hpp"
#include "config/scanner/scanner.hpp"
#include "gpu/rules/pair_rule.hpp"
#include "net/base/worker_pool.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/reconstruction/em/angles.hpp"
#include "tools/petlm/reconstruction/em/tof_choice.hpp"
#include "tools/petlm/reconstruction/image/image.hpp"
#include "tools/petlm/reconstruction/image/quick_look.hpp"
#include "tools/petlm/records/source.hpp"

namespace petacq::image {

struct Setup {
    /// Checks the options, which must outlive it, before anything is read. Throws as petlm::image() does.
    explicit Setup(const petlm::ImageOptions& options);

    const petlm::ImageOptions& options;
    petlm::ExportSource source;
    config::Scanner scanner;
    config::DepthOfInteraction depth;
    QuickLookOptions how;
    TofChoice tof;
    gpu::PairRule rule;
    Angles angles;
    net::WorkerPool pool;
};

/// Sentences about problems of the run, and about what the file does not tell.
std::vector<std::string> doubts_about(const petlm::ExportSource& source);

/// Calls `make`; too little memory is the fault of the option.
template <class Make>
auto within_memory(const Make& make) {
    try {
        return make();
    } catch (const std::invalid_argument& error) {
        throw petlm::UsageError(std::string("--max-memory-gb: ") + error.what());
    }
}

}  // namespace petacq::image
