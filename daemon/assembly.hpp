// The parts that live mode and replay share, built from the configuration in the order of the data flow: pool
// of batches, queue of filled batches, back-end, and the settings of the stages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "config/calibration.hpp"
#include "config/configuration.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/acquisition/acquisition.hpp"
#include "daemon/backend/backend.hpp"
#include "daemon/placement/machine.hpp"
#include "daemon/run/run.hpp"
#include "daemon/tracking/tracker_options.hpp"
#include "net/batch_queue.hpp"
#include "net/foreign/translator.hpp"
#include "net/receive/receiver.hpp"

namespace petacq::daemon {

/// The input files, checked against each other.
struct Inputs {
    config::Configuration configuration;
    config::Scanner scanner;
    config::Calibration calibration;
    std::shared_ptr<net::ForeignFormat> foreign;        ///< nullptr: petacqd's own frames
    std::shared_ptr<const DetectorBaseline> reference;  ///< nullptr: none
};

/// Reads the configuration and the files that it names. Throws config::Error.
Inputs load_inputs(const std::filesystem::path& configuration_file);

struct Assembly {
    /// `inputs` outlives the assembly. `producers`: threads that fill batches; `receivers`: those of live
    /// mode; `live`: not a replay. Throws what make_backend() and Machine() throw, and std::bad_alloc.
    Assembly(const Inputs& inputs, std::size_t producers, std::span<const net::ReceiverOptions> receivers,
             bool live);
    Assembly(const Assembly&) = delete;
    Assembly& operator=(const Assembly&) = delete;

    Placement placement;
    Backend backend;  ///< its memory belongs to the pool, and its pipeline later to the acquisition
    const std::uint64_t pipeline_bytes;
    net::BatchPool pool;
    net::BatchQueue filled;
    const TrackerOptions tracker;
    /// nullptr: no coincidences are looked for. The acquisition gives it samples.
    std::unique_ptr<SynchronyWatch> synchrony;
    AcquisitionOptions acquisition;
    RunSetting setting;  ///< of a replay without raw capture: setting.pool is nullptr
};

}  // namespace petacq::daemon
