// Threads on a machine of two NUMA nodes, whose second one has the network card.
#include <cstdlib>
#include <string>

#include "net/base/cores.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/made_machine.hpp"
#include "tests/support/thread_cores.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// The nodes are cores 0 and 1 of the host.
bool has_both_cores() {
    const petacq::net::Cores own = own_cores();
    const bool both = own.size() >= 2 && own[0] == 0 && own[1] == 1;
    if (!both) WARN("skipped: this test may not use cores 0 and 1");
    return both;
}

/// hwloc may look at nothing.
struct Hidden {
    Hidden() { ::setenv("HWLOC_COMPONENTS", "-linux,-x86,-no_os", 1); }
    ~Hidden() { ::unsetenv("HWLOC_COMPONENTS"); }
    Hidden(const Hidden&) = delete;
    Hidden& operator=(const Hidden&) = delete;
};

std::string cores_of(Daemon& daemon, const std::string& thread) {
    return petacq::test::cores_of(thread, daemon.process().pid());
}

}  // namespace

TEST_CASE("receivers run near their network card, and log, status and check say so", "[e2e][placement]") {
    if (!has_both_cores()) return;
    const MadeMachine machine(2, 1, {{"lo", 1}}, true);
    const Site site;
    const Outcome check =
        run_program(PETACQD_PROGRAM, {"--check", "--verbose", "--config", site.configuration()});
    INFO(check.out);
    CHECK(contains(check.out, "placement: 127.0.0.1:0 is received on cores 1"));

    Daemon daemon(site);
    const json status = daemon.status();
    CHECK(status["sockets"][0]["cores"] == "1");
    CHECK(cores_of(daemon, "receive") == "1");
    CHECK(contains(daemon.log(), ", on cores 1\n"));
    CHECK(status["placement"]["pool"] == "1");
    CHECK(contains(daemon.log(), "placement: memory of the pool on cores 1\n"));
    // The node has no core for it.
    CHECK(status["placement"]["acquisition"].is_null());
    CHECK(cores_of(daemon, "acquisition") != "1");
    CHECK(status["placement"]["results"].is_null());
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("no thread leaves the cores that the daemon may use", "[e2e][placement]") {
    if (!has_both_cores()) return;
    const MadeMachine machine(2, 1, {{"lo", 1}}, true);
    const Site site;
    const petacq::net::OnCores restricted(petacq::net::Cores{0});
    Daemon daemon(site);
    CHECK(daemon.status()["sockets"][0]["cores"].is_null());
    CHECK(cores_of(daemon, "receive") == "0");
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("the operator decides instead", "[e2e][placement]") {
    if (!has_both_cores()) return;
    const MadeMachine machine(2, 1, {{"lo", 1}}, true);
    const bool chosen = GENERATE(false, true);
    json patch = {{"placement", "off"}};
    if (chosen)
        patch = {{"receive", {{"sockets", {{{"address", "127.0.0.1"}, {"port", 0}, {"cpus", {0}}}}}}}};
    const Site site(patch);
    Daemon daemon(site);
    const json status = daemon.status();
    CHECK(status["sockets"][0]["cores"] == (chosen ? json("0") : json()));
    CHECK((cores_of(daemon, "receive") == "0") == chosen);
    CHECK(status["placement"]["pool"] == (chosen ? json("0") : json()));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a machine that cannot be looked at is no reason not to start", "[e2e][placement]") {
    const Hidden machine;
    const bool off = GENERATE(false, true);
    const Site site(off ? json{{"placement", "off"}} : json::object());
    const Outcome check =
        run_program(PETACQD_PROGRAM, {"--check", "--verbose", "--config", site.configuration()});
    CHECK(contains(check.out, "placement: looking at the machine: ") == !off);
    Daemon daemon(site);
    CHECK(daemon.status()["sockets"][0]["cores"].is_null());
    CHECK(contains(daemon.log(), "placement: looking at the machine: ") == !off);
    CHECK(daemon.terminate() == 0);
}
