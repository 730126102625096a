// What a run holds for the separation of two tracers.
#pragma once

#include "config/configuration.hpp"
#include "tools/petlm/reconstruction/image/counts.hpp"
#include "tools/petlm/reconstruction/image/setup.hpp"
#include "tools/petlm/records/third_photons.hpp"

namespace petacq::tracers {

/// The pairs of a run, those of its triples, and those of its triples by chance.
struct TripleCounts {
    /// Reads the run. Throws as ExportSource::for_each_block() does; daemon::NotListMode if it has no
    /// triples, BadInput if it has no delayed ones.
    explicit TripleCounts(image::Setup& setup);

    config::Gammas rules;
    petlm::ThirdPhotons thirds;
    image::ImageCounts pairs;
    image::ImageCounts coincident;
    image::ImageCounts delayed;
    /// Of the pairs of triples, which hardly hold gammas. All pairs hold more or less of them, as the tracers
    /// differ, and so would tell the run of one tracer alone another width than the scan of both.
    corrections::PhotopeakWidth photopeak;

  private:
    void share_randoms(std::uint32_t window_ticks);
};

}  // namespace petacq::tracers
