#include "tools/petbench/live/faults.hpp"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

namespace petacq::bench {

using nlohmann::json;

namespace {

constexpr struct {
    Losses when;  ///< allowed: a fault only where losses are not
    const char* section;
    const char* counter;
    const char* fault;
} fault_counters[] = {
    {Losses::allowed, "datagrams", "lost", "datagrams lost"},
    {Losses::allowed, "datagrams", "dropped_kernel", "dropped by the kernel"},
    {Losses::allowed, "datagrams", "dropped_no_buffer", "dropped because no batch was free"},
    {Losses::none, "datagrams", "malformed", "malformed datagrams"},
    {Losses::none, "datagrams", "unknown_source", "datagrams of unknown sources"},
    {Losses::none, "datagrams", "too_many_sources", "datagrams of too many sources"},
    {Losses::none, "datagrams", "duplicate", "duplicate datagrams"},
    {Losses::none, "datagrams", "repeated", "repeated datagrams"},
    {Losses::none, "datagrams", "reordered", "reordered datagrams"},
    {Losses::none, "datagrams", "stray", "stray datagrams"},
    {Losses::none, "datagrams", "unnumbered", "datagrams whose numbers say nothing"},
    {Losses::none, "datagrams", "restarted", "restarts of a source"},
    {Losses::none, "datagrams", "stepped_back", "steps back of a clock"},
    {Losses::none, "frames", "late", "frames late"},
    {Losses::none, "frames", "time_jump", "frames with a time jump"},
    {Losses::none, "frames", "bad_time", "frames with a bad time"},
    {Losses::none, "pairs", "write_failed", "pairs not written"},
};

}  // namespace

std::vector<std::string> faults_of(const json& run, std::uint64_t given_up_slices, Losses losses) {
    std::vector<std::string> faults;
    if (run["state"] != "complete") {
        faults.push_back(fmt::format("the run is {}: {}", run["state"].get<std::string>(),
                                     run.value("stop_reason", std::string())));
    }
    const json& ledger = run["ledger"];
    for (const auto& [when, section, counter, fault] : fault_counters) {
        const auto count = ledger[section][counter].get<std::int64_t>();
        if (count != 0 && (losses == Losses::none || when == Losses::none))
            faults.push_back(fmt::format("{} {}", count, fault));
    }
    if (given_up_slices != 0)
        faults.push_back(fmt::format("{} slices with too many pending singles", given_up_slices));
    if (!ledger["closed"].get<bool>()) faults.emplace_back("the ledger does not close");
    if (!run.contains("capture") || !run["capture"].is_object()) return faults;
    const json& capture = run["capture"];
    const auto dropped = capture["datagrams_dropped"].get<std::uint64_t>();
    if (dropped != 0 && losses == Losses::none)
        faults.push_back(fmt::format("{} datagrams missing from the raw capture", dropped));
    if (!capture["failure"].is_null())
        faults.push_back("raw capture: " + capture["failure"].get<std::string>());
    return faults;
}

void wait_until_processed(DaemonProcess& daemon, std::uint64_t datagrams) {
    using Clock = std::chrono::steady_clock;
    std::int64_t seen = 0;
    for (auto moved = Clock::now(); Clock::now() - moved < std::chrono::seconds(2);) {
        const json counts = daemon.call("status")["total"]["datagrams"];
        const auto known = counts["accepted"].get<std::int64_t>() + counts["lost"].get<std::int64_t>();
        if (known >= static_cast<std::int64_t>(datagrams)) return;
        if (known != seen) moved = Clock::now();
        seen = known;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

}  // namespace petacq::bench
