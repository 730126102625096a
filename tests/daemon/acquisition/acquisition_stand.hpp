// An Acquisition that is driven turn by turn in the test's thread, with runs in a temporary directory.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/configuration.hpp"
#include "config/energy_bins.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/acquisition/acquisition.hpp"
#include "daemon/run/run.hpp"
#include "net/receive/receiver.hpp"
#include "tests/daemon/acquisition/scripted_pipeline.hpp"
#include "tests/daemon/acquisition/times.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

namespace petacq::test {

/// Host time is what the lane says.
class AcquisitionStand {
  public:
    explicit AcquisitionStand(PipelineScript pipeline = {}, std::size_t batches = 128)
        : script(std::move(pipeline)), pool(batches, 4096, net::make_host_memory({false, false})) {
        options.slice_frames = 250;
        options.slice_interval = std::chrono::milliseconds(0);  // a slice in every turn
        options.stop_timeout = std::chrono::hours(1);
        options.max_disorder = tracker.max_disorder = disorder;
        options.max_offset = tracker.max_offset = offset;
        tracker.max_lag = 1000 * ms;
        options.second = 1000 * ms;
        tracker.max_jump = 2000 * ms;
        tracker.ticks_per_ns = 1;
        tracker.expected = {1};  // the detector has one source
        tracker.jump_confirmations = 1;
        tracker.source_timeout_ns = 500'000'000;
        const nlohmann::json document = {{"scanner", "small.scanner.json"},
                                         {"calibration", "small.h5"},
                                         {"data_dir", "data"},
                                         {"receive", {{"sockets", {{{"port", 9601}}}}}},
                                         {"coincidence", {{"window_ticks", 100}, {"delay_ticks", 1000}}}};
        configure(document);
        std::filesystem::create_directory(directory / "data");
        const config::Geometry& g = scanner.geometry;
        options.geometry = script.geometry = g;
        script.time_of = [](const gpu::FrameSpan& span) {
            std::uint64_t time = 0;
            std::memcpy(&time, span.frames, sizeof time);
            return time;
        };
        script.histograms.per_crystal.resize(g.crystal_count());
        script.histograms.energy.resize(std::size_t{g.bdm_count} * config::energy_bins);
        script.histograms.temperature_sum_16ths.resize(std::size_t{g.bdm_count} * g.du_count);
        script.histograms.temperature_count.resize(std::size_t{g.bdm_count} * g.du_count);
    }

    /// Sets the configuration of the runs that begin after this call.
    void configure(const nlohmann::json& document) {
        configuration = std::make_shared<const config::Configuration>(
            config::configuration_from_json(document, directory.path()));
    }

    daemon::Acquisition& make() {
        acquisition = std::make_unique<daemon::Acquisition>(
            options, tracker, std::make_unique<ScriptedPipeline>(script), pool, filled,
            std::vector<const net::ReceiverCounters*>{&counters},
            [this](daemon::FinishedRun run) { finished.push_back(std::move(run)); });
        return *acquisition;
    }

    /// A batch with a datagram of 100 frames over 1 ms, which arrives at the time of its last frame.
    void send(std::uint64_t time, std::uint16_t source = 1, bool valid = true) {
        net::Batch* const batch = free_batch();
        net::Datagram d;
        d.sequence = sequence[source]++;
        d.source = source;
        d.first_time = time;
        d.last_time = time + ms;
        d.frames = 100;
        d.timed_frames = valid ? 100 : 0;
        // Instead of frames: what the datagram is.
        std::memcpy(batch->data, &time, sizeof time);
        std::memcpy(batch->data + sizeof time, &source, sizeof source);
        counters.datagrams_delivered.add();
        deliver(*batch, d);
    }
    /// A batch with a datagram that the receiver has rejected.
    void send_rejected() {
        net::Batch* const batch = free_batch();
        net::Datagram d;
        d.admitted = net::Admitted::malformed;
        counters.datagrams_malformed.add();
        deliver(*batch, d);
    }
    /// Datagrams back to back over [from, to).
    void stream(std::uint64_t from, std::uint64_t to) {
        for (std::uint64_t time = from; time < to; time += ms)
            send(time);
    }
    void turns(int count) {
        for (int i = 0; i < count; ++i)
            acquisition->turn();
    }
    /// All sources have been silent for longer than the source timeout.
    void silence() {
        pass(1000);
        turns(2);
    }
    /// Nothing arrives for `milliseconds` of host time.
    void pass(std::int64_t milliseconds) {
        host_ns += milliseconds * static_cast<std::int64_t>(ms);
        filled.lane(0).advance(host_ns);
        acquisition->turn();
    }
    void begin(const daemon::RequestedInterval& interval = {}) {
        daemon::RunSetting setting;
        setting.configuration = configuration;
        setting.scanner = &scanner;
        setting.pool = &pool;
        daemon::RunRequest request;
        request.id = "run" + std::to_string(++runs);
        acquisition->begin_run(std::make_unique<daemon::Run>(setting, request), interval,
                               [this] { ++started; });
        acquisition->turn();
    }
    void end() {
        acquisition->end_run("stopped by operator", {},
                             std::chrono::steady_clock::time_point(std::chrono::nanoseconds(host_ns)));
        acquisition->turn();
    }
    /// The run, which has not ended yet, ends as it is asked to, with everything that the boards have sent.
    void stop() {
        CHECK(finished.empty());
        end();
        pass(300);
        silence();
        silence();
        REQUIRE(finished.size() == 1);
        CHECK(finished[0].end.reason == "stopped by operator");
        CHECK_FALSE(finished[0].end.failed);
        check_closed();
    }
    /// Closes the files of the runs that have ended since the last call, and checks that their ledgers close.
    void check_closed() {
        for (; closed < finished.size(); ++closed) {
            std::string failure;
            const daemon::Ledger ledger = finished[closed].run->finish(finished[closed].end, failure);
            CHECK(ledger.open_identities().empty());
        }
    }

  private:
    /// Waits for the pipeline if none is free.
    net::Batch* free_batch() {
        if (pool.free_count() == 0) {
            const bool ready = std::exchange(script.ready, true);
            acquisition->turn();
            script.ready = ready;
        }
        net::Batch* const batch = pool.take();
        REQUIRE(batch != nullptr);
        return batch;
    }
    void deliver(net::Batch& batch, net::Datagram& datagram) {
        datagram.arrival_ns = host_ns += between_ns;
        batch.datagrams.push_back(datagram);
        counters.datagrams_received.add();
        filled.lane(0).finish(batch);
        filled.lane(0).advance(datagram.arrival_ns + 1);
        acquisition->turn();
    }

  public:
    TemporaryDirectory directory;
    std::shared_ptr<const config::Configuration> configuration;
    config::Scanner scanner = config::load_scanner(std::filesystem::path(PETACQ_SOURCE_DIR) / "config" /
                                                   "examples" / "small.scanner.json");
    daemon::AcquisitionOptions options;
    daemon::TrackerOptions tracker;
    PipelineScript script;
    net::BatchPool pool;
    net::BatchQueue filled{1, pool.count()};
    net::ReceiverCounters counters;
    std::vector<daemon::FinishedRun> finished;
    std::size_t closed = 0;
    int started = 0;
    int runs = 0;
    std::int64_t host_ns = 0;      ///< of the latest arrival
    std::int64_t between_ns = ms;  ///< from one arrival to the next
    std::map<std::uint16_t, std::uint64_t> sequence;
    std::unique_ptr<daemon::Acquisition> acquisition;
};

}  // namespace petacq::test
