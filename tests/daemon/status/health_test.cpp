// Health: each problem is found, and its start and end are reported once each.
#include <fstream>
#include <functional>
#include <iterator>

#include "tests/daemon/status/patient.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

struct Case {
    const char* code;
    const char* says;                         ///< part of the message
    std::function<void(Patient&)> falls_ill;  ///< each second
    std::function<void(Patient&)> gets_well;
    const char* state = "degraded";
    std::uint32_t subject = 0;
};

using Kind = DetectorFault::FaultKind;

Case detector_case(const char* code, const char* says, const DetectorFault& fault) {
    return {code,
            says,
            [fault](Patient& p) {
                p.now.detector_faults = std::make_shared<std::vector<DetectorFault>>(1, fault);
            },
            [](Patient& p) { p.now.detector_faults.reset(); },
            "degraded",
            fault.bdm};
}

const std::vector<Case>& cases() {
    static const std::vector<Case> all{
        {"pipeline_failed", "pipeline: no device", [](Patient& p) { p.now.failure = "pipeline: no device"; },
         [](Patient& p) { p.now.failure.clear(); }, "failed"},
        {"run_failed", "the last run, r1, failed: No space left",
         [](Patient& p) {
             p.run.ended = {"r1", {}, "No space left", true};
         },
         [](Patient& p) { p.run.ended->failed = false; }},
        {"start_delayed", "has not started: no source moves detector time",
         [](Patient& p) { p.run.start_asked = at(p.time - 10); },
         [](Patient& p) { p.run.start_asked.reset(); }},
        {"run_interrupted",
         "run b and 1 before it were interrupted: `petlm recover /data/b -o b.recovered` saves what it "
         "holds; "
         "`petctl acknowledge b` ends this message",
         [](Patient& p) {
             p.run.interrupted = {{"a", "/data/a", ""}, {"b", "/data/b", ""}};
         },
         [](Patient& p) { p.run.interrupted.clear(); }},
        {"ledger_series_incomplete", "ledger.csv: another program has removed it",
         [](Patient& p) {
             p.open_run().ledger_series_failure = "ledger.csv: another program has removed it";
         },
         [](Patient& p) { p.open_run().ledger_series_failure.clear(); }},
        {"no_data", "no data have arrived",
         [](Patient& p) {
             p.now.run.emplace();
             p.before.run.emplace();
             p.now.total.datagrams.received = 0;
             p.now.sources.sources.clear();
         },
         [](Patient& p) { p.now.total.datagrams.received = 10; }},
        {"datagrams_lost", "20 datagrams (0.2 %) lost, 15 of them from source 5",
         [](Patient& p) {
             p.now.total.datagrams.received -= 20;  // 9,980 of 10,000 arrive
             p.now.total.datagrams.lost += 20;
             *p.now.sources.sources[0].lost += 5;
             *p.now.sources.sources[1].lost += 15;
         },
         nullptr},
        {"stream_repeated", "20 datagrams received again, 20 of them from source 5",
         [](Patient& p) {
             p.now.total.datagrams.repeated += 20;
             p.now.sources.sources[1].sequence.repeated += 20;
         },
         nullptr},
        {"duplicate_datagrams", "5000 datagrams (50 %) came more than once",
         [](Patient& p) { p.now.total.datagrams.duplicate += 5000; }, nullptr},
        {"only_tags", "500 tags and not one frame",
         [](Patient& p) {
             p.now.run.emplace();
             p.before.run.emplace();
             p.now.total.frames = p.before.total.frames;
             p.now.total.tags.received += 500;
         },
         nullptr},
        {"source_restarted", "source 5 has restarted its sequence numbers",
         [](Patient& p) {
             p.now.sources.sources[0].sequence.restarted += 1;  // after an end of stream
             p.now.sources.sources[0].sequence.new_streams += 1;
             p.now.sources.sources[1].sequence.restarted += 1;
         },
         nullptr, "degraded", 1},
        {"kernel_drops", "the kernel dropped 1 datagram:",
         [](Patient& p) { p.now.total.datagrams.dropped_kernel += 1; }, nullptr},
        {"udp_checksum_errors", "wrong UDP checksums",
         [](Patient& p) {
             p.reading.network.counters["UdpInCsumErrors"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"udp_length_errors", "their UDP header",
         [](Patient& p) {
             p.reading.network.counters["UdpInErrors"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"ip_header_errors", "damaged IP headers",
         [](Patient& p) {
             p.reading.network.counters["IpInHdrErrors"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"fragments_lost", "could not be joined",
         [](Patient& p) {
             p.reading.network.counters["IpReasmFails"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"softnet_drops", "queue of a core",
         [](Patient& p) {
             p.reading.network.counters["SoftnetDropped"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"udp_memory", "used up their memory",
         [](Patient& p) {
             p.reading.network.counters["UdpMemErrors"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"udp_no_port", "nobody listens",
         [](Patient& p) {
             p.reading.network.counters["UdpNoPorts"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"reverse_path_filter", "reverse-path filter",
         [](Patient& p) {
             p.reading.network.counters["TcpExtIPReversePathFilter"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"multicast_ignored", "no socket takes",
         [](Patient& p) {
             p.reading.network.counters["UdpIgnoredMulti"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"address_unknown", "does not have",
         [](Patient& p) {
             p.reading.network.counters["IpInAddrErrors"] += 500;
             p.now.total.datagrams.lost += 1;
         },
         nullptr},
        {"unknown_source", "3 datagrams from unknown senders, the latest is id 9 from 10.0.0.7:4000",
         [](Patient& p) {
             p.now.total.datagrams.unknown_source += 3;
             net::UnknownSender unknown_sender;
             unknown_sender.id = 9;
             unknown_sender.sender = {0x0A000007, 4000};
             p.reading.unknown_senders = {unknown_sender};
         },
         nullptr},
        {"too_many_sources", "2 datagrams discarded",
         [](Patient& p) { p.now.total.datagrams.too_many_sources += 2; }, nullptr},
        {"no_free_batch", "2 datagrams dropped: no batch was free",
         [](Patient& p) {
             p.now.total.datagrams.dropped_kernel += 2;
             ++p.reading.batch_waits;
         },
         nullptr},
        {"board_lost_data", "3 blocks of data lost",
         [](Patient& p) { p.now.total.datagrams.board_lost += 3; }, nullptr},
        {"duplicates_suspected", "seem to have come twice",
         [](Patient& p) {
             p.now.total.datagrams.accepted += 10'000;
             p.now.total.datagrams.duplicates_suspected += 5'000;
         },
         nullptr},
        {"malformed_datagrams", "50 datagrams (0.5 %) malformed",
         [](Patient& p) { p.now.total.datagrams.malformed += 50; }, nullptr},
        {"invalid_frames", "6000 frames (0.6 %) invalid",
         [](Patient& p) {
             p.now.total.frames.bad_marker += 1000;
             p.now.total.frames.bad_address += 2000;
             p.now.total.frames.bad_time += 3000;
         },
         nullptr},
        {"late_frames", "too late", [](Patient& p) { p.now.total.frames.late += 1000; }, nullptr},
        {"time_jumps", "far from the time", [](Patient& p) { p.now.total.frames.time_jump += 1000; },
         nullptr},
        {"sources_behind", "their frames are late", [](Patient& p) { p.now.sources.behind_watermark = true; },
         [](Patient& p) { p.now.sources.behind_watermark = false; }},
        {"sources_given_up", "max_pending_singles", [](Patient& p) { ++p.now.given_up; }, nullptr},
        {"source_silent", "source 5 has been silent for 2.5 s: check",
         [](Patient& p) {
             p.now.sources.sources[1].state = SourceState::silent;
             p.now.sources.sources[1].last_seen = ns_at(p.time - 2.5);
         },
         [](Patient& p) { p.now.sources.sources[1].state = SourceState::active; }, "degraded", 1},
        {"source_lagging", "source 3 lags 2000 ms behind",
         [](Patient& p) {
             p.now.sources.sources[0].state = SourceState::lagging;
             p.now.sources.sources[0].skew = -static_cast<std::int64_t>(2e12 / p.scanner.tick_ps);
         },
         [](Patient& p) {
             p.now.sources.sources[0].state = SourceState::active;
             p.now.sources.sources[0].skew = 0;
         }},
        {"source_leading", "source 3 is 3000 ms ahead",
         [](Patient& p) {
             p.now.sources.sources[0].state = SourceState::leading;
             p.now.sources.sources[0].skew = static_cast<std::int64_t>(3e12 / p.scanner.tick_ps);
         },
         [](Patient& p) {
             p.now.sources.sources[0].state = SourceState::active;
             p.now.sources.sources[0].skew = 0;
         }},
        {"source_jumping", "source 5 jumps",
         [](Patient& p) { p.now.sources.sources[1].state = SourceState::jumping; },
         [](Patient& p) { p.now.sources.sources[1].state = SourceState::active; }, "degraded", 1},
        {"source_clock", "source 3: its clock makes 1e+09 ticks a second, 6.4e+10 are expected",
         [](Patient& p) {
             p.now.sources.sources[0].rate = ClockRate::Wrong{1e9, 64e9};
         },
         [](Patient& p) { p.now.sources.sources[0].rate.reset(); }},
        {"energies_outside", "9900 hits (99 %) outside the energy window: 9 % below, 90 % above",
         [](Patient& p) {
             p.now.run.emplace();
             p.before.run.emplace();
             p.now.total.frames.below_window += 900;
             p.now.total.frames.above_window += 9000;
             p.now.total.frames.accepted += 100;
             p.now.total.frames.received += 10'000;
         },
         nullptr},
        {"source_stepped_back", "source 3 stepped back",
         [](Patient& p) { ++p.now.sources.sources[0].steps_back; }, nullptr},
        {"temperature_high", "BDM 7 is at 61.0 C, above 50 C",
         [](Patient& p) { p.now.histograms = histograms(p.scanner.geometry, 7, 100, 61); },
         [](Patient& p) { p.now.histograms = histograms(p.scanner.geometry, 7, 100, 40); }, "degraded", 7},
        detector_case("detector_time_step", "BDM 7: its times moved by +1.02 ns since 12.5 s",
                      {Kind::time_step, 7, 1.02, 0, 12.5}),
        detector_case("detector_gain_step", "BDM 7: its photopeak moved by -2.00 % since 12.5 s",
                      {Kind::gain_step, 7, -0.02, 0, 12.5}),
        detector_case("detector_few_prompts", "BDM 7: its prompts per single changed by -40 % since 12.5 s",
                      {Kind::few_prompts, 7, -0.4, 0, 12.5}),
        detector_case("detector_time_off",
                      "BDM 7: its times differ by +1.02 ns from the reference since 1.0 s",
                      {Kind::time_off, 7, 1.02, 0, 1}),
        detector_case("detector_gain_off", "BDM 7: its photopeak differs by -2.00 % from the reference since",
                      {Kind::gain_off, 7, -0.02, 0, 1}),
        detector_case("detector_prompts_off",
                      "BDM 7: its prompts per single differ by -90 % from the reference since",
                      {Kind::prompts_off, 7, -0.9, 0, 1}),
        detector_case("detector_unit_silent", "BDM 7: DU 3 does not count since 12.5 s",
                      {Kind::silent_units, 7, 1, 3, 12.5}),
        detector_case("detector_noisy", "BDM 7: crystal 99 counts 8 times as much as its neighbours since",
                      {Kind::noisy_crystal, 7, 8, 99, 12.5}),
        detector_case("boards_out_of_step", "BDM 7 is 10.0 ns late against the others: its prompts are lost",
                      {Kind::out_of_step, 7, 10, 0, 12.5, {}, -640, true}),
        detector_case("boards_without_partners", "BDM 7 has no coincidences with the others at all",
                      {Kind::no_partners, 7, 1e6, 0, 12.5}),
        {"multicast_not_joined", "multicast group 239.1.2.3 is not joined: no such device",
         [](Patient& p) {
             p.reading.groups = {{"239.1.2.3", "", "no such device"}};
         },
         [](Patient& p) { p.reading.groups.clear(); }},
        {"sequence_meaningless", "source 5: its sequence number stands still at 0",
         [](Patient& p) { p.now.sources.sources[1].numbers = {NumberFault::stands_still}; },
         [](Patient& p) { p.now.sources.sources[1].numbers = {}; }, "degraded", 1},
        {"seconds_slow", "the acquisition waited for the sums of seconds, 3 of which wait",
         [](Patient& p) {
             ++p.now.pace.stalls;
             p.now.pace.waiting = 3;
         },
         nullptr},
        {"disk_slow", "does not keep up", [](Patient& p) { ++p.open_run().written.stalls; }, nullptr},
        {"capture_incomplete", "7 datagrams missing from the raw capture",
         [](Patient& p) {
             if (!p.open_run().capture) p.open_run().capture = CaptureStatus{};
             p.open_run().capture->counts.dropped += 7;
         },
         nullptr},
        {"disk_unknown", "free space of /data is unknown", [](Patient& p) { p.reading.disk.space.reset(); },
         [](Patient& p) {
             p.reading.disk.space = DiskSpace{100ULL << 30, 200ULL << 30};
         }},
        {"disk_space_low", "536.9 MB are free in /data",
         [](Patient& p) { p.reading.disk.space->free_bytes = 512ULL << 20; },
         [](Patient& p) { p.reading.disk.space->free_bytes = 2ULL << 30; }},
        {"disk_time_low", "/data will be full in 1 min 40 s",
         [](Patient& p) { p.reading.disk.write_bytes_per_s = 0x1p30; },
         [](Patient& p) { p.reading.disk.write_bytes_per_s = 0x1p20; }},
        {"peer_missing", "run r is recorded by this host alone: hostB has no run",
         [](Patient& p) {
             p.run.current.emplace().id = "r";
             PeerState& peer = p.reading.peer.emplace();
             peer.host = "hostB";
             peer.situation = PeerSituation::not_recording;
             peer.missing_since = at(p.time - 10);
         },
         [](Patient& p) { p.reading.peer->missing_since.reset(); }},
        {"latency_high", "more than 7000 ms",
         [](Patient& p) {
             p.open_run().latency = {100, 10, 7000, 8000};
         },
         [](Patient& p) {
             p.open_run().latency = {100, 10, 20, 8000};
         }},
        {"stage_stalled", "writer has made no progress for 9 s: the disk does not respond",
         [](Patient& p) {
             p.reading.stages[1] = {"writer", Activity::stalled, 0, 9};
         },
         [](Patient& p) {
             p.reading.stages[1] = {"writer", Activity::busy, 0.1, 0};
         },
         "failed", 1},
    };
    return all;
}

}  // namespace

TEST_CASE("a healthy acquisition gives no reason") {
    Patient patient;
    for (int i = 0; i < 10; ++i)
        CHECK(patient.second().empty());
    CHECK(patient.health.reasons().empty());
    CHECK(std::string(patient.health.state()) == "ok");
}

TEST_CASE("every problem is reported once, lasts, and is reported to be over once") {
    for (const Case& c : cases()) {
        INFO(c.code);
        Patient patient;
        const auto raised = patient.second(c.falls_ill);
        REQUIRE(raised.size() == 1);
        CHECK(raised[0].raised);
        CHECK(std::string(raised[0].reason.problem.code) == c.code);
        CHECK(raised[0].reason.problem.subject == c.subject);
        CHECK(raised[0].reason.problem.message().find(c.says) != std::string::npos);
        INFO(raised[0].reason.problem.message());
        CHECK(std::string(patient.health.state()) == c.state);
        REQUIRE(patient.health.reasons().size() == 1);
        CHECK(patient.health.reasons()[0].since == at(patient.time));

        const double since = patient.time;
        for (int i = 0; i < 3; ++i)
            CHECK(patient.second(c.falls_ill).empty());
        REQUIRE(patient.health.reasons().size() == 1);
        CHECK(patient.health.reasons()[0].since == at(since));

        std::vector<HealthChange> gone;
        int seconds = 0;
        for (; gone.empty() && seconds < 20; ++seconds)
            gone = patient.second(c.gets_well);
        CHECK(seconds <= 6);
        REQUIRE(gone.size() == 1);
        CHECK_FALSE(gone[0].raised);
        CHECK(std::string(gone[0].reason.problem.code) == c.code);
        CHECK(std::string(patient.health.state()) == "ok");
        for (int i = 0; i < 10; ++i)
            CHECK(patient.second(c.gets_well).empty());
    }
}

TEST_CASE("the manual lists exactly the codes that there are") {
    const std::string page =
        test::read_file(std::filesystem::path(PETACQ_SOURCE_DIR) / "docs/how-to/alarms.md");
    std::size_t reasons = 0;
    for (std::size_t at = page.find("\n### `"); at != std::string::npos; at = page.find("\n### `", at + 1))
        ++reasons;
    CHECK(reasons == cases().size());
    for (const Case& c : cases()) {
        INFO(c.code);
        const std::size_t begin = page.find(std::string("\n### `").append(c.code).append("`\n"));
        REQUIRE(begin != std::string::npos);
        const std::string section = page.substr(begin, page.find("\n#", begin + 1) - begin);
        const bool failed = section.find("\n- Severity: failed.\n") != std::string::npos;
        CHECK((failed ? "failed" : "degraded") == std::string(c.state));
    }
}
