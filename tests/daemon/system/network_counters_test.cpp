// The kernel's network counters, as its files give them, and when they say something.
#include "daemon/system/network_counters.hpp"

#include <fstream>
#include <set>
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::daemon;

namespace {

const NetworkFault& fault(const std::string& code) {
    for (const NetworkFault& one : network_faults())
        if (one.code == code) return one;
    FAIL("no fault " << code);
    return network_faults()[0];
}

}  // namespace

TEST_CASE("network counters: the files of the kernel, by the names of nstat") {
    const test::TemporaryDirectory directory;
    test::write_file(directory / "snmp",
                     "Ip: Forwarding InReceives InHdrErrors ReasmFails\nIp: 2 1000 3 4\n"
                     "Udp: InDatagrams NoPorts InErrors InCsumErrors NewInLaterKernels\nUdp: 10 11 12 13 14\n"
                     "UdpLite: InDatagrams NoPorts\nUdpLite: 1 2\n");
    test::write_file(directory / "netstat",
                     "TcpExt: SyncookiesSent IPReversePathFilter\nTcpExt: 0 21\n"
                     "IpExt: InNoRoutes InCsumErrors\nIpExt: 22 23\n");
    test::write_file(directory / "snmp6",
                     "Ip6InReceives  31\nUdp6NoPorts                 \t32\nIcmp6InMsgs 9\n");
    test::write_file(directory / "softnet_stat",
                     "0000ffff 00000010 00000002 00000000 0 0 0 0 0 0 0 0 0\n"
                     "00000001 00000001 0000000a 00000000 0 0 0 0 0 0 0 0 1\n");
    CHECK(read_network_counters(directory.path()) == NetworkCounters{{"IpInReceives", 1000},
                                                                     {"IpInHdrErrors", 3},
                                                                     {"IpReasmFails", 4},
                                                                     {"UdpInDatagrams", 10},
                                                                     {"UdpNoPorts", 11},
                                                                     {"UdpInErrors", 12},
                                                                     {"UdpInCsumErrors", 13},
                                                                     {"TcpExtIPReversePathFilter", 21},
                                                                     {"IpExtInNoRoutes", 22},
                                                                     {"IpExtInCsumErrors", 23},
                                                                     {"Ip6InReceives", 31},
                                                                     {"Udp6NoPorts", 32},
                                                                     {"SoftnetDropped", 17},
                                                                     {"SoftnetTimeSqueeze", 12}});
    // What cannot be read is unknown, not 0.
    CHECK(read_network_counters(directory / "nowhere").empty());
    test::write_file(directory / "snmp", "Udp: InDatagrams NoPorts\nTcp: 1 2\nUdp: x\n");
    CHECK_FALSE(read_network_counters(directory.path()).contains("UdpNoPorts"));
    // Those of this host: as any Linux has them.
    CHECK(read_network_counters().contains("UdpInCsumErrors"));
}

TEST_CASE("network counters: what a fault has gained, and when it matters") {
    const NetworkFault& length = fault("udp_length_errors");
    const NetworkCounters before{{"UdpInErrors", 100}, {"UdpInCsumErrors", 10}, {"UdpRcvbufErrors", 20}};
    NetworkCounters now{{"UdpInErrors", 200}, {"UdpInCsumErrors", 60}, {"UdpRcvbufErrors", 40}};
    CHECK(length.growth(now, before) == 30);
    CHECK(fault("udp_checksum_errors").growth(now, before) == 50);
    CHECK(fault("udp_checksum_errors").growth(now, {}) == 0);  // unknown before
    CHECK(length.counters_text(now, before) == "UdpInErrors");

    CHECK(length.matters(10, 0, true));
    CHECK_FALSE(length.matters(10, 0, false));
    CHECK_FALSE(length.matters(9, 0, true));
    CHECK_FALSE(length.matters(99, 100'000, true));
    CHECK(length.matters(100, 100'000, true));
    const NetworkFault& port = fault("udp_no_port");
    CHECK_FALSE(port.matters(99, 0, true));
    CHECK(port.matters(100, 0, true));
    CHECK_FALSE(port.matters(500, 100'000, true));
    CHECK_FALSE(port.matters(1e6, 100'000, false));
}
