// The simulated scanner as a whole: datagrams in the order in which they are sent.
//
//     sim::Simulation simulation(scanner, calibration, options);
//     simulation.run([&](const sim::Datagram& datagram) { use(datagram.bytes); });
//
// The same options give the same datagrams and the same truth, whatever the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "config/calibration.hpp"
#include "config/scanner/scanner.hpp"
#include "tools/petsim/simulation/base/inverse_calibration.hpp"
#include "tools/petsim/simulation/base/options.hpp"
#include "tools/petsim/simulation/base/statistics.hpp"
#include "tools/petsim/simulation/base/truth.hpp"
#include "tools/petsim/simulation/board/stream.hpp"
#include "tools/petsim/simulation/events/event_generator.hpp"

namespace petacq::sim {

struct Datagram {
    std::uint16_t source;
    std::uint64_t sequence;
    std::uint64_t due_ticks;  ///< detector time at which it is sent, since the simulation began; never falls
    std::span<const std::byte> bytes;  ///< valid during the call
};

class Simulation {
  public:
    using DatagramSink = std::function<void(const Datagram&)>;
    using TruthSink = std::function<void(std::span<const TruthRecord>)>;

    /// Throws std::invalid_argument for invalid options. The calibration must fit the scanner: it is that of
    /// the daemon. `detector`, if any, makes the frames instead of the inverse of the calibration; it must
    /// outlive the simulation.
    Simulation(config::Scanner scanner, const config::Calibration& calibration, Options options,
               const Detector* detector = nullptr);
    /// The same with tables that several simulations share.
    Simulation(config::Scanner scanner, std::shared_ptr<const InverseCalibration> calibration,
               Options options, const Detector* detector = nullptr);

    /// Runs the whole simulation; call it once. Calls both sinks on this thread. The truth of each frame
    /// comes once, in no particular order, and not later than its datagram.
    void run(const DatagramSink& send, const TruthSink& truth = {});

    /// Stops the simulation early, as if its duration were over. For any thread, and for signal handlers.
    void stop() { stop_.store(true, std::memory_order_relaxed); }
    /// Fraction of the detector time that has been simulated. For any thread.
    [[nodiscard]] double progress() const;

    /// Mean number of positrons emitted over the whole duration.
    [[nodiscard]] double expected_decays() const { return generator_.decays(generator_.chunk_count()); }
    /// Final when run() has returned.
    [[nodiscard]] const Statistics& statistics() const { return statistics_; }
    [[nodiscard]] const Options& options() const { return options_; }

  private:
    /// A source as a receiver would have seen it.
    struct Seen {
        bool any = false;
        std::uint16_t epoch = 0;
        std::uint64_t first = 0;
        std::uint64_t highest = 0;
        std::uint64_t unique = 0;
    };
    void emit(std::uint64_t limit, const DatagramSink& send);
    void account(const Packet& packet);
    void close_epoch(std::uint16_t source);

    config::Scanner scanner_;
    Options options_;
    std::shared_ptr<const InverseCalibration> calibration_;
    EventGenerator generator_;
    StreamOutput output_;
    std::vector<SourceStream> streams_;
    std::vector<Seen> seen_;
    std::vector<Packet> waiting_;
    Statistics statistics_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> chunks_done_{0};
};

/// The activity_scale that gives `frames_per_s` on average over the duration, found by short trial runs.
/// Throws std::invalid_argument if no activity gives that rate.
double scale_for_rate(const config::Scanner& scanner, const config::Calibration& calibration,
                      const Options& options, double frames_per_s, const Detector* detector = nullptr);

}  // namespace petacq::sim
