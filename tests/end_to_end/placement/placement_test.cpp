// Threads on a machine of two NUMA nodes, whose second one has the network card.
#include <sched.h>

#include <filesystem>
#include <string>

#include "net/threads/cores.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/made_machine.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// The nodes are cores 0 and 1 of the host.
bool has_both_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    const bool both = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_ISSET(0, &set) && CPU_ISSET(1, &set);
    if (!both) WARN("skipped: this test may not use cores 0 and 1");
    return both;
}

/// Where the threads of that name may run; "?" if they differ, "" if there are none.
std::string cores_of(Daemon& daemon, const std::string& name) {
    std::string cores;
    const auto tasks = "/proc/" + std::to_string(daemon.process().pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
        if (read_file(task.path() / "comm") != name + "\n") continue;
        const std::string status = read_file(task.path() / "status");
        const std::string label = "\nCpus_allowed_list:\t";
        const std::size_t at = status.find(label) + label.size();
        const std::string found = status.substr(at, status.find('\n', at) - at);
        cores = cores.empty() || cores == found ? found : "?";
    }
    return cores;
}

}  // namespace

TEST_CASE("receivers run near their network card, and log, status and check say so", "[e2e][placement]") {
    if (!has_both_cores()) return;
    const MadeMachine machine(2, 1, {{"lo", 1}}, true);
    const Site site;
    const Outcome check = run_program(PETACQD_PROGRAM, {"--check", "--config", site.configuration()});
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
    const int one[] = {0};
    const petacq::net::OnCores restricted(one);
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
