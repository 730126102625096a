// The configuration of the acquisition thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "config/scanner/geometry.hpp"
#include "daemon/detector/board_readings.hpp"
#include "daemon/detector/module_sums.hpp"
#include "daemon/synchrony/sampler.hpp"
#include "daemon/tap/tap.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "net/base/cores.hpp"
#include "net/wire.hpp"

namespace petacq::daemon {

struct AcquisitionOptions {
    std::uint32_t slice_frames = 262'144;
    /// Host time. A slice that is as old is submitted in any case.
    std::chrono::milliseconds slice_interval{20};
    /// Live, a slice that is as old is submitted if the pipeline has nothing to do: so slices are as long as
    /// the pipeline needs. One with less than a few_frames-th part of slice_frames waits for a quarter of
    /// slice_interval, so that a daemon that receives little is idle most of the time.
    std::chrono::microseconds idle_slice_interval{500};
    static constexpr std::uint32_t few_frames = 128;
    /// When more singles than this wait for the watermark, slow sources are given up. The pipeline has room
    /// for pending_slack slices more; beyond that the run fails.
    std::uint64_t max_pending_singles = 16U << 20;
    /// A run that is asked to stop ends without its last singles when the watermark has not passed them
    /// within this time after everything received before the request has been read.
    std::chrono::milliseconds stop_timeout{10'000};
    /// A live run that has not started after this host time fails: detector time does not reach its start.
    std::chrono::milliseconds start_timeout{10'000};
    net::Framing framing = net::Framing::sequenced;
    net::FrameCheck frames;          ///< of the boards
    std::uint64_t max_offset = 0;    ///< ticks: largest magnitude of a time offset, at first
    std::uint64_t max_disorder = 0;  ///< ticks
    std::uint64_t flush_reach = 0;   ///< ticks by which the latest frames are decided later
    /// Ticks: length of a row of the ledger over time, and of what is measured by second. 0: one row in all,
    /// and nothing is measured.
    std::uint64_t second = 0;
    config::Geometry geometry;                          ///< of what is measured by second
    gpu::CoincidenceRules rules;                        ///< likewise
    std::vector<SourceModules> sources;                 ///< likewise; those whose modules are known
    std::shared_ptr<const DetectorBaseline> reference;  ///< to compare the detector with; nullptr: none
    /// Gets samples of the frames; outlives the acquisition; nullptr: the modules are not compared.
    SynchronyWatch* synchrony = nullptr;
    net::Cores cores;    ///< on which the thread runs
    Tap* tap = nullptr;  ///< gets the records of the runs; outlives the acquisition; nullptr: none
    /// The input ends, and a run that is then in progress ends with it. The datagrams that a receiver rejects
    /// are counted as they are taken.
    bool replay = false;

    /// Undecided singles and tags with which the pipeline fails.
    [[nodiscard]] std::uint64_t max_undecided() const {
        return max_pending_singles +
               gpu::pending_slack * (std::uint64_t{slice_frames} + net::max_datagram_frames);
    }
};

}  // namespace petacq::daemon
