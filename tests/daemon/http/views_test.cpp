// The views of one reading agree: every counter of the ledger has the same value in the acquisition's
// snapshot, in the status document and in the metrics.
#include <memory>
#include <string>

#include "daemon/http/metrics.hpp"
#include "daemon/status/lasting_reasons.hpp"
#include "daemon/status/status.hpp"
#include "tests/daemon/http/exposition.hpp"
#include "tests/daemon/status/helpers.hpp"
#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// A status document in which every counter has a different value.
json status_of(const AcquisitionSnapshot& snapshot) {
    const config::Scanner scanner = small_scanner();
    RunSetting setting;
    setting.configuration = std::make_shared<const config::Configuration>(configuration_with());
    setting.scanner = &scanner;
    Reading reading;
    reading.taken = at(1);
    reading.acquisition = std::make_shared<const AcquisitionSnapshot>(snapshot);
    const RunState run;
    const LastingReasons health;
    return make_status({&setting, &run, &reading, &reading, &snapshot, &health}, {});
}

AcquisitionSnapshot counted() {
    AcquisitionSnapshot snapshot = snapshot_at(1);
    std::uint64_t value = 1000;
    for (const LedgerCounter& counter : ledger_counters())
        counter.in(snapshot.total) = ++value;
    snapshot.total.datagrams.unnumbered = 0;  // else loss is unknown
    snapshot.run = snapshot.total;
    return snapshot;
}

}  // namespace

TEST_CASE("status document and metrics have the same value of every counter", "[http][metrics]") {
    const AcquisitionSnapshot snapshot = counted();
    const json status = status_of(snapshot);
    const auto metrics = parse_exposition(daemon_metrics(status));
    std::size_t own = 0;
    std::size_t reasons = 0;
    for (const LedgerCounter& counter : ledger_counters()) {
        CAPTURE(counter.section, counter.name);
        const std::uint64_t value = counter.of(snapshot.total);
        CHECK(status["total"][counter.section][counter.name] == value);
        CHECK(status["ledger"][counter.section][counter.name] == value);
        const std::string metric = counter.metric;
        if (metric == no_metric) continue;
        if (metric == by_reason) {
            const std::string section = counter.section;
            const std::string family = "petacqd_" + section +
                                       (section == "singles"  ? "_unused"
                                        : section == "gammas" ? ""
                                                              : "_rejected") +
                                       "_total";
            CHECK(sample(metrics, family, std::string("reason=\"") + counter.name + "\"") ==
                  static_cast<double>(value));
            ++reasons;
        } else {
            CHECK(sample(metrics, metric) == static_cast<double>(value));
            CHECK(metrics.at(metric).help == counter.help);
            ++own;
        }
    }
    CHECK(own == 29);
    CHECK(reasons == 25);
}

TEST_CASE("a loss that cannot be known is in no view", "[http][metrics]") {
    AcquisitionSnapshot snapshot = counted();
    snapshot.total.numbered = false;
    const json status = status_of(snapshot);
    CHECK(status["total"]["datagrams"]["lost"].is_null());
    CHECK(parse_exposition(daemon_metrics(status)).count("petacqd_datagrams_lost") == 0);
}
