// Where threads and memory go on machines of one and of several NUMA nodes.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "config/configuration.hpp"
#include "daemon/placement/machine.hpp"
#include "daemon/placement/wish.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/made_machine.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq::daemon;
using petacq::net::Cores;
using petacq::net::to_text;
using petacq::test::MadeMachine;

namespace {

const std::vector<MadeMachine::Device> devices{
    {"eth0", 0}, {"eth1", 1}, {"0000:01:00.0", 0}, {"0000:81:00.0", 1}};

/// Two nodes of eight cores, each with a network card and a GPU.
Placement placed(const PlacementWish& wish) {
    const MadeMachine made(2, 8, devices);
    return Machine().place(wish);
}

PlacementWish near(const std::string& interface, std::size_t receivers = 1, const std::string& gpu = "") {
    PlacementWish wish;
    wish.receivers.assign(receivers, {{}, {interface}});
    wish.gpu = gpu;
    wish.result_threads = 4;
    return wish;
}

}  // namespace

TEST_CASE("receivers, acquisition and pool are near the network card, results near the GPU", "[placement]") {
    const Placement p = placed(near("eth1", 2, "0000:01:00.0"));
    REQUIRE(p.receivers.size() == 2);
    CHECK(to_text(p.receivers[0]) == "8-15");
    CHECK(to_text(p.receivers[1]) == "8-15");
    CHECK(to_text(p.acquisition) == "8-15");
    CHECK(to_text(p.pool) == "8-15");
    CHECK(to_text(p.results) == "0-7");
}

TEST_CASE("a GPU on another PCI bus is another GPU", "[placement]") {
    CHECK(to_text(placed(near("eth1", 1, "0000:81:00.0")).results) == "8-15");
    CHECK(placed(near("eth1", 1, "0000:82:00.0")).results.empty());
    CHECK(placed(near("eth1")).results.empty());
}

TEST_CASE("receivers on two nodes: the acquisition runs anywhere, and the pool is near the GPU",
          "[placement]") {
    PlacementWish wish = near("eth0", 1, "0000:81:00.0");
    wish.receivers.push_back({{}, {"eth1"}});
    const Placement p = placed(wish);
    CHECK(to_text(p.receivers[0]) == "0-7");
    CHECK(to_text(p.receivers[1]) == "8-15");
    CHECK(p.acquisition.empty());
    CHECK(to_text(p.pool) == "8-15");
    wish.gpu.clear();
    CHECK(placed(wish).pool.empty());
}

TEST_CASE("a receiver whose card is not known runs anywhere", "[placement]") {
    PlacementWish wish = near("veth7");
    CHECK(placed(wish).receivers == std::vector<Cores>{{}});
    wish.receivers[0].interfaces = {"eth0", "eth1"};  // either may be it
    CHECK(placed(wish).receivers == std::vector<Cores>{{}});
    wish.receivers[0].interfaces = {"bond0", "eth1"};
    CHECK(to_text(placed(wish).receivers[0]) == "8-15");
    wish.receivers.push_back({{}, {}});
    const Placement p = placed(wish);
    CHECK(to_text(p.receivers[0]) == "8-15");
    CHECK(p.receivers[1].empty());
    CHECK(p.acquisition.empty());
    CHECK(p.pool.empty());
}

TEST_CASE("nothing is placed where there are fewer cores than threads", "[placement]") {
    // Eight receivers fill the node.
    const Placement full = placed(near("eth0", 8, "0000:01:00.0"));
    CHECK(to_text(full.receivers[7]) == "0-7");
    CHECK(full.acquisition.empty());
    CHECK(full.results.empty());
    CHECK(to_text(full.pool) == "0-7");
    CHECK(placed(near("eth0", 9)).receivers[0].empty());
    // With three receivers and the acquisition there is room for four more; on the other node it does not
    // matter.
    CHECK(to_text(placed(near("eth0", 3, "0000:01:00.0")).results) == "0-7");
    CHECK(placed(near("eth0", 4, "0000:01:00.0")).results.empty());
    CHECK(to_text(placed(near("eth0", 4, "0000:81:00.0")).results) == "8-15");
}

TEST_CASE("cores that the operator gave to receivers stand, and are left to them", "[placement]") {
    PlacementWish wish = near("eth0", 2, "0000:81:00.0");
    wish.receivers[0] = {{9}, {}};
    wish.receivers[1] = {{11}, {}};
    const Placement p = placed(wish);
    CHECK(to_text(p.receivers[0]) == "9");
    CHECK(to_text(p.receivers[1]) == "11");
    CHECK(to_text(p.acquisition) == "8,10,12-15");
    CHECK(to_text(p.results) == "8,10,12-15");
    CHECK(to_text(p.pool) == "8-15");
    wish.receivers[1] = {{3}, {}};
    CHECK(placed(wish).acquisition.empty());
}

TEST_CASE("a machine of one node, and a replay without GPU, have nothing to place", "[placement]") {
    {
        const MadeMachine made(1, 8, {{"eth0", 0}, {"0000:01:00.0", 0}});
        const Machine machine;
        CHECK_FALSE(machine.divided());
        const Placement p = machine.place(near("eth0", 1, "0000:01:00.0"));
        CHECK(p.receivers == std::vector<Cores>{{}});
        CHECK(p.acquisition.empty());
        CHECK(p.pool.empty());
        CHECK(p.results.empty());
    }
    const Placement p = placed({});
    CHECK(p.receivers.empty());
    CHECK(p.acquisition.empty());
    CHECK(p.pool.empty());
    CHECK(to_text(placed({{}, "0000:81:00.0", 4}).pool) == "8-15");
}

TEST_CASE("the interfaces of a socket, and what they are made of", "[placement]") {
    petacq::net::ReceiverOptions options;
    options.address = "127.0.0.1";
    CHECK(interfaces_of(options) == std::vector<std::string>{"lo"});
    options.address = "127.0.0.2";  // answers, but belongs to no interface
    CHECK(interfaces_of(options).empty());
    options.address = "fe80::1%eth3";
    CHECK(interfaces_of(options) == std::vector<std::string>{"eth3"});
    options.address = "0.0.0.0";
    const std::vector<std::string> any = interfaces_of(options);
    CHECK(std::find(any.begin(), any.end(), "lo") == any.end());

    const petacq::test::TemporaryDirectory system;
    for (const char* link : {"vlan7/lower_bond0", "bond0/lower_eth0", "bond0/lower_eth1", "eth0/upper_bond0"})
        std::filesystem::create_directories(system.path() / "class/net" / link);
    options.multicast_groups = {"239.1.1.1"};
    options.multicast_interface = "vlan7";
    std::vector<std::string> found = interfaces_of(options, system.path().string());
    REQUIRE(found.size() == 4);
    std::sort(found.begin(), found.end());
    CHECK(found == std::vector<std::string>{"bond0", "eth0", "eth1", "vlan7"});
    options.multicast_interface = "127.0.0.1";
    CHECK(interfaces_of(options) == std::vector<std::string>{"lo"});
}
