// Reasons from the kernel's network counters: each is named as itself, and what other programs do is no
// reason.
#include "tests/daemon/status/patient.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;

namespace {

/// A patient whose host has these counters, and a function for what they gain.
void have_counters(Patient& p) {
    for (const char* name : {"UdpInErrors", "UdpInCsumErrors", "UdpRcvbufErrors", "UdpMemErrors",
                             "UdpNoPorts", "UdpIgnoredMulti", "TcpExtIPReversePathFilter", "IpReasmFails",
                             "IpInHdrErrors", "IpInAddrErrors", "SoftnetDropped"})
        p.reading.network.counters[name] = 1000;
    p.reading.network.taken = at(p.time);
    p.reading.network_earlier = p.reading.network;
}

/// A second in which counters grow.
void second(Patient& p, const std::map<std::string, std::uint64_t>& gains,
            const std::function<void(Patient&)>& happens = nullptr) {
    p.second([&](Patient& patient) {
        patient.reading.network_earlier = patient.reading.network;
        for (const auto& [name, gain] : gains)
            patient.reading.network.counters[name] += gain;
        patient.reading.network.taken = at(patient.time);
        if (happens) happens(patient);
    });
}

std::string reason(const Patient& p, const char* code) {
    const HealthReason* const found = p.health.find(code);
    return found == nullptr ? "" : found->problem.message();
}

}  // namespace

TEST_CASE("network: drops of a socket are told apart by the kernel's counters") {
    Patient p;
    have_counters(p);
    SECTION("wrong checksums") {
        second(p, {{"UdpInErrors", 5}, {"UdpInCsumErrors", 5}},
               [](Patient& x) { x.now.total.datagrams.dropped_kernel += 5; });
        CHECK_THAT(reason(p, "udp_checksum_errors"), contains("5 datagrams with wrong UDP checksums"));
        CHECK_THAT(reason(p, "udp_checksum_errors"),
                   contains("(UdpInCsumErrors): the boards compute them wrongly"));
        CHECK(reason(p, "kernel_drops").empty());
        CHECK(reason(p, "udp_length_errors").empty());
    }
    SECTION("wrong checksums, whose drops are read a little later") {
        second(p, {{"UdpInErrors", 5}, {"UdpInCsumErrors", 5}});
        CHECK(p.health.reasons().empty());
        second(p, {}, [](Patient& x) { x.now.total.datagrams.dropped_kernel += 5; });
        CHECK_THAT(reason(p, "udp_checksum_errors"), contains("5 datagrams"));
        CHECK(reason(p, "kernel_drops").empty());
    }
    SECTION("no room") {
        second(p, {{"UdpInErrors", 7}, {"UdpRcvbufErrors", 7}},
               [](Patient& x) { x.now.total.datagrams.dropped_kernel += 7; });
        CHECK_THAT(reason(p, "kernel_drops"), contains("dropped 7 datagrams: the socket buffer overflowed"));
        CHECK(p.health.reasons().size() == 1);
    }
    SECTION("both, and the memory of all sockets") {
        second(p, {{"UdpInErrors", 17}, {"UdpRcvbufErrors", 7}, {"UdpInCsumErrors", 4}, {"UdpMemErrors", 6}},
               [](Patient& x) { x.now.total.datagrams.dropped_kernel += 17; });
        CHECK_THAT(reason(p, "kernel_drops"), contains("dropped 7 datagrams"));
        CHECK_THAT(reason(p, "udp_checksum_errors"), contains("4 datagrams"));
        CHECK_THAT(reason(p, "udp_memory"), contains("net.ipv4.udp_mem"));
    }
    SECTION("unknown counters") {
        p.reading.network = p.reading.network_earlier = {};
        second(p, {}, [](Patient& x) { x.now.total.datagrams.dropped_kernel += 7; });
        CHECK_THAT(reason(p, "kernel_drops"), contains("dropped 7 datagrams"));
    }
}

TEST_CASE("network: what the kernel discards before a socket is a reason where data are missing") {
    struct Row {
        const char* code;
        const char* counter;
        const char* advice;
    };
    const Row row = GENERATE(Row{"udp_no_port", "UdpNoPorts", "a port of receive.sockets"},
                             Row{"reverse_path_filter", "TcpExtIPReversePathFilter", "rp_filter"},
                             Row{"multicast_ignored", "UdpIgnoredMulti", "multicast_group"},
                             Row{"address_unknown", "IpInAddrErrors", "ip -brief address"},
                             Row{"fragments_lost", "IpReasmFails", "MTU"},
                             Row{"softnet_drops", "SoftnetDropped", "net.core.netdev_max_backlog"},
                             Row{"ip_header_errors", "IpInHdrErrors", "IP header"},
                             Row{"udp_length_errors", "UdpInErrors", "payload plus 8 bytes"});
    CAPTURE(row.code);
    const auto nothing_arrives = [](Patient& x) {
        x.now.total.datagrams.received = x.before.total.datagrams.received;
        x.run.current.emplace();
    };
    Patient p;
    have_counters(p);
    SECTION("nothing arrives in a run") {
        second(p, {{row.counter, 500}}, nothing_arrives);
        CHECK_THAT(reason(p, row.code), contains("500 "));
        CHECK_THAT(reason(p, row.code), contains(row.counter));
        CHECK_THAT(reason(p, row.code), contains(row.advice));
    }
    SECTION("a source is silent") {
        second(p, {{row.counter, 500}}, [](Patient& x) {
            x.now.sources.sources[1].state = SourceState::silent;
            x.now.sources.sources[1].last_seen = ns_at(x.time - 10);
        });
        CHECK_FALSE(reason(p, row.code).empty());
    }
    SECTION("datagrams are lost") {
        second(p, {{row.counter, 500}}, [](Patient& x) { x.now.total.datagrams.lost += 1; });
        CHECK_FALSE(reason(p, row.code).empty());
    }
    SECTION("everything arrives: other programs move the counter") {
        second(p, {{row.counter, 5000}});
        CHECK(p.health.reasons().empty());
    }
    SECTION("a few, now and then") {
        second(p, {{row.counter, 9}}, nothing_arrives);
        CHECK(reason(p, row.code).empty());
    }
    SECTION("nobody records, and nothing was ever heard") {
        second(p, {{row.counter, 5000}},
               [](Patient& x) { x.now.total.datagrams.received = x.before.total.datagrams.received; });
        CHECK(reason(p, row.code).empty());
    }
}
