// Health of a made-up acquisition, second by second.
#pragma once

#include <functional>

#include "daemon/status/lasting_reasons.hpp"
#include "daemon/status/problems.hpp"
#include "tests/daemon/status/helpers.hpp"

namespace petacq::test {

using namespace petacq::daemon;
using nlohmann::json;

inline Problem problem(const char* code, std::uint32_t subject = 0, bool failed = false) {
    return {code, subject, "what", "advice", failed};
}

/// An acquisition in good health, read once a second.
class Patient {
  public:
    explicit Patient(const json& patch = json::object()) {
        setting.configuration = std::make_shared<const config::Configuration>(configuration_with(patch));
        setting.scanner = &scanner;
        now.total.datagrams.received = 1000;
        now.total.frames.received = 100'000;
        now.histograms = histograms(scanner.geometry, 0, 100, 30);
        for (const std::uint16_t id : {std::uint16_t{3}, std::uint16_t{5}}) {
            SourceStatus source;
            source.id = id;
            source.state = SourceState::active;
            source.lost = 0;
            source.first_seen = ns_at(time);
            now.sources.sources.push_back(source);
        }
        reading.disk = DiskStatus{DiskSpace{100ULL << 30, 200ULL << 30}, 0};
        reading.stages = {{"acquisition", Activity::busy, 0.5, 0}, {"writer", Activity::idle, 0, 0}};
        for (const NetworkFault& fault : network_faults())
            reading.network.counters[fault.counters[0]] = 0;
        reading.network.taken = at(time);
        second();
    }

    /// The next second: 10,000 more datagrams, and `happens`.
    std::vector<HealthChange> second(const std::function<void(Patient&)>& happens = nullptr) {
        before = now;
        Reading reading_before = reading;
        reading.network_earlier = reading.network;
        time += 1;
        reading.network.taken = at(time);
        now.taken = at(time);
        now.total.datagrams.received += 10'000;
        now.total.frames.received += 1'000'000;
        for (SourceStatus& s : now.sources.sources)
            s.last_seen = ns_at(time);
        if (happens) happens(*this);
        reading.taken = at(time);
        reading.acquisition = std::make_shared<const AcquisitionSnapshot>(now);
        reading_before.acquisition = std::make_shared<const AcquisitionSnapshot>(before);
        const Observation seen{&setting, &run, &reading, &reading_before, &before, &health};
        return health.observe(find_problems(seen), at(time));
    }

    RunReading& open_run() {
        if (!reading.run) reading.run.emplace();
        return *reading.run;
    }

    const config::Scanner scanner = small_scanner();
    RunSetting setting;
    RunState run;
    AcquisitionSnapshot now;
    AcquisitionSnapshot before;
    Reading reading;
    LastingReasons health;
    double time = 0;
};

}  // namespace petacq::test
