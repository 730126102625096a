// Captures that tcpdump makes during a live run: their replay gives the run's list-mode.
//
// Needs tcpdump and the right to capture (CAP_NET_RAW); other cases are reported as skipped.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>

#include "net/pcap/pcap_reader.hpp"
#include "net/pcap/replayer.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// Path of tcpdump; empty if there is none. It may be in a directory for administrators.
std::string tcpdump_program() {
    for (const char* path : {"/usr/bin/tcpdump", "/usr/sbin/tcpdump", "/usr/local/sbin/tcpdump"}) {
        if (::access(path, X_OK) == 0) return path;
    }
    return "";
}

/// A tcpdump that captures.
class Tcpdump {
  public:
    /// Throws std::runtime_error with its output if it does not start to capture.
    Tcpdump(const Site& site, const std::string& name, std::vector<std::string> arguments,
            const std::string& filter)
        : file_((site.directory() / (name + ".pcap")).string()) {
        // -Z: root would otherwise write as another user. -U writes packet by packet; the buffer is large
        // enough for a busy machine.
        arguments.insert(arguments.end(),
                         {"-Z", "root", "-n", "-s", "0", "-U", "-B", "32768", "-w", file_, filter});
        process_ = std::make_unique<Process>(tcpdump_program(), arguments, site.directory() / name);
        const bool listens =
            eventually([&] { return contains(process_->errors(), "listening on") || !process_->running(); });
        if (!listens || !process_->running()) throw std::runtime_error(process_->errors());
    }
    [[nodiscard]] const std::string& file() const { return file_; }

    /// Waits until the file holds that many datagrams, then stops the capture: tcpdump drops the packets that
    /// it has not yet read when it is stopped.
    [[nodiscard]] bool has(std::uint64_t datagrams) {
        const bool all = eventually([&] { return datagrams_in_file() >= datagrams; });
        process_->signal(SIGINT);
        const int status = process_->wait();
        INFO(process_->errors());
        CHECK(status == 0);
        CHECK(contains(process_->errors(), "\n0 packets dropped by kernel"));
        return all;
    }

  private:
    [[nodiscard]] std::uint64_t datagrams_in_file() const {
        std::uint64_t datagrams = 0;
        try {
            petacq::net::PcapReader reader(file_, {});
            petacq::net::CapturedDatagram packet;
            while (reader.next(packet)) {
                const std::size_t length =
                    petacq::net::joined_length(packet.payload, petacq::net::FrameVersion::one);
                datagrams += (packet.payload.size() + length - 1) / length;
            }
        } catch (const petacq::net::PcapError&) {
            // tcpdump is writing: the last packet may be incomplete.
        }
        return datagrams;
    }

    std::string file_;
    std::unique_ptr<Process> process_;
};

/// Why `interface` cannot be captured here; nothing if it can.
std::optional<std::string> cannot_capture(const Site& site, const std::string& interface) {
    if (tcpdump_program().empty()) return "tcpdump is not installed";
    try {
        const Tcpdump probe(site, "probe", {"-i", interface}, "udp port 9");
        return {};
    } catch (const std::runtime_error& error) {
        return std::string("capturing is not permitted: ") + error.what();
    }
}

void check_replayed(const Site& site, const std::string& live, const std::string& file,
                    const std::string& name) {
    INFO(file);
    const Outcome outcome =
        run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", file, "--run", name});
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    const json a = site.run_json(live);
    const json b = site.run_json(name);
    const bool same_coincidences =
        payload_of(site.run(live) / "coincidences.plm") == payload_of(site.run(name) / "coincidences.plm");
    CHECK(same_coincidences);
    const bool same_singles =
        payload_of(site.run(live) / "singles.plm") == payload_of(site.run(name) / "singles.plm");
    CHECK(same_singles);
    CHECK(a["ledger"]["pairs"] == b["ledger"]["pairs"]);
    for (const char* key : {"received", "lost", "duplicate", "malformed"})
        CHECK(a["ledger"]["datagrams"][key] == b["ledger"]["datagrams"][key]);
    CHECK(b["ledger"]["closed"] == true);
    CHECK(b["ledger"]["frames"]["late"] == 0);
    const std::string again = (site.directory() / (name + ".plm")).string();
    const Outcome resorted = run_program(PETLM_PROGRAM, {"resort", site.run(name).string(), "-o", again});
    INFO(resorted.err);
    REQUIRE(resorted.status == 0);
    const bool same_resorted = payload_of(again) == payload_of(site.run(live) / "coincidences.plm");
    CHECK(same_resorted);
}

std::uint64_t datagrams_received(const json& run) {
    return run["ledger"]["datagrams"]["received"];
}

/// Brings up lo in the network namespace of this process, with an MTU.
void set_up_loopback(int mtu) {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    REQUIRE(socket >= 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_mtu = mtu;
    const bool sized = ::ioctl(socket, SIOCSIFMTU, &request) == 0;
    request = {};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    const bool up = ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
    ::close(socket);
    REQUIRE(sized);
    REQUIRE(up);
}

/// Puts Ethernet frames onto lo, as a switch with VLANs would deliver them.
class FrameSender {
  public:
    FrameSender() : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL))) {
        to_.sll_family = AF_PACKET;
        to_.sll_ifindex = static_cast<int>(::if_nametoindex("lo"));
        to_.sll_halen = ETH_ALEN;
    }
    ~FrameSender() {
        if (good()) ::close(socket_);
    }
    FrameSender(const FrameSender&) = delete;
    FrameSender& operator=(const FrameSender&) = delete;
    [[nodiscard]] bool good() const { return socket_ >= 0; }
    /// The datagram with a VLAN tag (0x8100, number 5).
    [[nodiscard]] bool send(const petacq::net::CapturedDatagram& datagram) const {
        std::string frame("\0\0\0\0\0\0\0\0\0\0\0\0\x81\x00\x00\x05\x08\x00", 18);
        const auto big16 = [&](std::size_t value) {
            frame += static_cast<char>(value >> 8U & 0xFFU);
            frame += static_cast<char>(value & 0xFFU);
        };
        const auto big32 = [&](std::uint32_t value) {
            big16(value >> 16U);
            big16(value & 0xFFFFU);
        };
        frame += "\x45";
        frame += '\0';
        big16(28 + datagram.payload.size());
        big32(0);  // no fragment
        frame += "\x40\x11";
        big16(0);  // checksum: not checked
        big32(0x7F000001);
        big32(0x7F000001);
        big16(datagram.from.port);
        big16(datagram.to.port);
        big16(8 + datagram.payload.size());
        big16(0);
        frame.append(reinterpret_cast<const char*>(datagram.payload.data()), datagram.payload.size());
        return ::sendto(socket_, frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to_),
                        sizeof to_) == static_cast<ssize_t>(frame.size());
    }

  private:
    int socket_;
    sockaddr_ll to_{};
};

const json with_singles = {{"listmode", {{"write_singles", true}}}};

}  // namespace

TEST_CASE("tcpdump's capture of a run gives the run's list-mode", "[e2e][replay][tcpdump]") {
    const Site site(with_singles);
    if (const auto reason = cannot_capture(site, "lo")) {
        WARN("skipped: " << *reason);
        return;
    }
    std::vector<std::unique_ptr<Tcpdump>> captures;
    {
        Daemon daemon(site);
        const std::string filter = "udp and dst port " + std::to_string(daemon.ports().front());
        // Ethernet in micro- and nanoseconds; the two kinds of Linux cooked.
        captures.push_back(
            std::make_unique<Tcpdump>(site, "lo", std::vector<std::string>{"-i", "lo"}, filter));
        captures.push_back(std::make_unique<Tcpdump>(
            site, "lo-nano", std::vector<std::string>{"-i", "lo", "--time-stamp-precision=nano"}, filter));
        captures.push_back(std::make_unique<Tcpdump>(
            site, "any", std::vector<std::string>{"-i", "any", "-y", "LINUX_SLL"}, filter));
        captures.push_back(std::make_unique<Tcpdump>(
            site, "any2", std::vector<std::string>{"-i", "any", "-y", "LINUX_SLL2"}, filter));
        daemon.start("live");
        const json summary = simulate(site, short_stream(daemon, {"--reorder", "0.2", "--duplicate", "0.1"}));
        const std::uint64_t datagrams = summary["total"]["expected"]["datagrams_received"];
        REQUIRE(daemon.received(datagrams));
        CHECK(daemon.stop()["ledger_closed"] == true);
        CHECK(daemon.terminate() == 0);
    }
    const json live = site.run_json("live");
    CHECK(live["ledger"]["pairs"]["prompts_found"] > 1000);
    for (const auto& capture : captures) {
        REQUIRE(capture->has(datagrams_received(live)));
        check_replayed(site, "live", capture->file(),
                       "again-" + std::filesystem::path(capture->file()).stem().string());
    }
}

TEST_CASE("tcpdump reads the capture of a run", "[e2e][replay][tcpdump]") {
    if (tcpdump_program().empty()) {
        WARN("skipped: tcpdump is not installed");
        return;
    }
    const Site site(json{{"listmode", {{"write_raw", true}}}});
    {
        Daemon daemon(site);
        daemon.start("live");
        const json summary = simulate(site, short_stream(daemon, {"--corrupt", "magic:0.02"}));
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        CHECK(daemon.stop()["ledger_closed"] == true);
        CHECK(daemon.terminate() == 0);
    }
    const Outcome read = run_program(
        tcpdump_program(), {"-r", (site.run("live") / "raw.pcap").string(), "-nn", "-tt", "-v", "udp"});
    INFO(read.err);
    REQUIRE(read.status == 0);
    CHECK(contains(read.err, "RAW"));
    const json live = site.run_json("live");
    const auto lines_with = [&](const std::string& part) {
        std::uint64_t count = 0;
        for (std::size_t at = read.out.find(part); at != std::string::npos; at = read.out.find(part, at + 1))
            ++count;
        return count;
    };
    const std::uint64_t written = live["capture"]["datagrams_written"];
    CHECK(written > 500);
    CHECK(lines_with("proto UDP (17)") == written);
    CHECK(lines_with("UDP, length ") == written);
    CHECK(lines_with("bad cksum") == 0);
}

TEST_CASE("tcpdump's capture of datagrams in IP fragments gives the run's list-mode",
          "[e2e][replay][tcpdump]") {
    // A separate loopback with the MTU of Ethernet for this process and its children.
    if (::unshare(CLONE_NEWNET) != 0) {
        WARN("skipped: no network namespace of its own: " << std::strerror(errno));
        return;
    }
    set_up_loopback(1500);
    const Site site(with_singles);
    if (const auto reason = cannot_capture(site, "lo")) {
        WARN("skipped: " << *reason);
        return;
    }
    std::unique_ptr<Tcpdump> capture;
    {
        Daemon daemon(site);
        // Fragments after the first have no port.
        capture = std::make_unique<Tcpdump>(site, "fragments", std::vector<std::string>{"-i", "lo"}, "udp");
        daemon.start("live");
        const json summary = simulate(site, short_stream(daemon, {"--payload", "8972", "--no-gso"}));
        REQUIRE(daemon.received(summary["total"]["expected"]["datagrams_received"]));
        CHECK(daemon.stop()["ledger_closed"] == true);
        CHECK(daemon.terminate() == 0);
    }
    REQUIRE(capture->has(datagrams_received(site.run_json("live"))));
    petacq::net::PcapReader reader(capture->file(), {});
    petacq::net::CapturedDatagram datagram;
    while (reader.next(datagram)) {
    }
    CHECK(reader.counts().fragments > reader.counts().datagrams);
    check_replayed(site, "live", capture->file(), "again");
}

TEST_CASE("tcpdump's capture of tagged frames gives the same list-mode", "[e2e][replay][tcpdump]") {
    const Site site(with_singles);
    if (const auto reason = cannot_capture(site, "lo")) {
        WARN("skipped: " << *reason);
        return;
    }
    const FrameSender sender;
    REQUIRE(sender.good());
    const std::string original = (site.directory() / "original.pcap").string();
    simulate(site, {"--cylinder", "0,0,0,10,20,0.45", "--sources", "4", "--duration-s", "0.1", "--payload",
                    "1472", "--write", original});
    const Outcome outcome = run_program(
        PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", original, "--run", "live"});
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    Tcpdump capture(site, "tagged", {"-i", "lo"}, "vlan 5 and udp");
    petacq::net::PcapReader reader(original, {});
    petacq::net::CapturedDatagram datagram;
    while (reader.next(datagram))
        REQUIRE(sender.send(datagram));
    REQUIRE(capture.has(datagrams_received(site.run_json("live"))));
    check_replayed(site, "live", capture.file(), "again");
}
