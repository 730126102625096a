// Who sends, in health and in the status document: unknown senders, too many, sources that were never heard.
#include "daemon/status/document_detector.hpp"
#include "daemon/status/lasting_reasons.hpp"
#include "daemon/status/problems.hpp"
#include "tests/daemon/status/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// Two readings, one second apart.
struct Readings {
    Readings() {
        setting.configuration = std::make_shared<const config::Configuration>(configuration_with());
        setting.scanner = &scanner;
        for (AcquisitionSnapshot* snapshot : {&before, &now}) {
            for (const std::uint16_t id : {std::uint16_t{3}, std::uint16_t{5}}) {
                SourceStatus source;
                source.id = id;
                snapshot->sources.sources.push_back(source);
            }
        }
        reading.disk = DiskStatus{DiskSpace{100ULL << 30, 200ULL << 30}, 0};
        reading.taken = at(2);
    }

    template <class Use>
    auto see(Use use) {
        Reading reading_before = reading;
        reading_before.acquisition = std::make_shared<const AcquisitionSnapshot>(before);
        reading.acquisition = std::make_shared<const AcquisitionSnapshot>(now);
        return use(Observation{&setting, &run, &reading, &reading_before, &before, &health});
    }
    /// "code: what" of each problem.
    std::vector<std::string> problems() {
        return see([](const Observation& seen) {
            std::vector<std::string> all;
            for (const Problem& p : find_problems(seen))
                all.push_back(std::string(p.code) + ": " + p.what);
            return all;
        });
    }

    const config::Scanner scanner = small_scanner();
    RunSetting setting;
    RunState run;
    AcquisitionSnapshot before = snapshot_at(1);
    AcquisitionSnapshot now = snapshot_at(2);
    Reading reading;
    LastingReasons health;
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("health says who is unknown, while it sends") {
    Readings r;
    r.before.total.datagrams.unknown_source = 4;
    r.now.total.datagrams.unknown_source = 4;
    CHECK(r.problems().empty());
    r.now.total.datagrams.unknown_source = 7;
    net::UnknownSender unknown_sender;
    unknown_sender.sender = {0x0A000009, 4000};
    unknown_sender.id = 77;
    r.reading.unknown_senders = {unknown_sender};
    CHECK(r.problems() == Texts{"unknown_source: 3 datagrams from unknown senders, the latest is id 77 from "
                                "10.0.0.9:4000"});
    r.reading.unknown_senders[0].id.reset();
    CHECK(r.problems() ==
          Texts{"unknown_source: 3 datagrams from unknown senders, the latest is 10.0.0.9:4000"});
}

TEST_CASE("health says that more senders are heard than can be tracked") {
    Readings r;
    r.now.total.datagrams.too_many_sources = 1;
    CHECK(r.problems() == Texts{"too_many_sources: more than 4096 senders: 1 datagram discarded"});
    r.now.total.datagrams.too_many_sources = 0;
    r.now.sources.replaced = 5;
    CHECK(r.problems() == Texts{"too_many_sources: more than 4096 senders: 0 datagrams discarded"});
}

TEST_CASE("a listed source that was never heard is silent once another has been heard for the timeout") {
    Readings r;
    CHECK(r.problems().empty());
    r.now.sources.sources[0].state = SourceState::active;
    r.now.sources.sources[0].last_seen = ns_at(2);
    r.now.sources.sources[0].first_seen = ns_at(1.501);
    CHECK(r.problems().empty());
    r.now.sources.sources[0].first_seen = ns_at(1.5);
    CHECK(r.problems() == Texts{"source_silent: source 5 has been silent since the daemon started"});
}

TEST_CASE("the status has the modules and times of sources and of unknown senders") {
    Readings r;
    SourceStatus& source = r.now.sources.sources[0];
    for (const std::size_t bdm : {0, 1, 2, 7, 254, 255})
        source.bdms.set(bdm);
    source.first_seen = ns_at(0.5);
    net::UnknownSender unknown_sender;
    unknown_sender.sender = {0x0A000009, 4000};
    unknown_sender.datagrams = 9;
    unknown_sender.bdms.set(6);
    unknown_sender.first_ns = ns_at(1);
    unknown_sender.latest_ns = ns_at(2);
    r.reading.unknown_senders = {unknown_sender};
    const json known = r.see([](const Observation& seen) { return make_sources(seen); });
    CHECK(known[0]["bdms"] == "0-2,7,254-255");
    CHECK(known[0]["first_seen_s"] == 1.5);
    CHECK(known[0]["last_seen_s"].is_null());
    CHECK(known[1]["bdms"] == "");
    const json unknown = r.see([](const Observation& seen) { return make_unknown_sources(seen); });
    CHECK(unknown == json::parse(R"([{"id": null, "address": "10.0.0.9:4000", "datagrams": 9, "frames": 0,
                                      "bdms": "6", "first_seen_s": 1.0, "last_seen_s": 0.0}])"));
}

TEST_CASE("rates of a source start again where another has taken its position") {
    Readings r;
    r.before.sources.sources[0].datagrams = 1000;
    r.now.sources.sources[0].datagrams = 10;
    r.now.sources.sources[0].id = 99;
    const json sources = r.see([](const Observation& seen) { return make_sources(seen); });
    CHECK(sources[1]["id"] == 99);
    CHECK(sources[1]["datagrams_per_s"] == 10);
}
