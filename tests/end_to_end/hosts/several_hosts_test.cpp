// petctl --hosts: the daemons of several hosts as one. A script takes the place of ssh.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <memory>
#include <regex>
#include <stop_token>
#include <thread>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace petacq::test;
using nlohmann::json;

namespace {

/// The sources are spread over the hosts as petsim does it.
json settings_of(std::size_t host, std::size_t hosts) {
    json ids = json::array();
    for (std::size_t source = host; source < 4; source += hosts)
        ids.push_back(source);
    return {{"clock", "hall 3"},
            {"sources", {{"ids", ids}}},
            {"energy", {{"lower_keV", 430}, {"upper_keV", 650}}},
            {"listmode", {{"write_singles", true}, {"write_coincidences", false}}}};
}

/// The lower part of the spectrum serves as the gamma window.
const json third_photons = {{"lower_keV", 200},
                            {"upper_keV", 400},
                            {"before_ticks", 500'000},
                            {"after_ticks", 1'000'000},
                            {"delay_ticks", 10'000'000}};

void use_calibration(const Site& site, const Site& other) {
    std::filesystem::copy_file(other.calibration(), site.calibration(),
                               std::filesystem::copy_options::overwrite_existing);
}

/// Passes lines on to petctl on the host, but a start only when the file `go` is there; not if it has a word
/// in it.
constexpr const char* held_launcher = R"(
work=${0%/*}
if [ "$held" ]; then
    if [ -s "$work/go" ]; then echo "ssh: connect to host held: No route to host" >&2; exit 255; fi
    while IFS= read -r line; do
        case $line in *'"method":"start"'*)
            : >"$work/held"
            until [ -e "$work/go" ]; do sleep 0.02; done
            if [ -s "$work/go" ]; then exit 255; fi
        esac
        printf '%s\n' "$line"
    done | sh -c "$2"
    exit
fi
)";

/// Hosts named a, b, c, each with a daemon of one scanner and one calibration. The last is also named `held`.
class Hosts {
  public:
    explicit Hosts(std::size_t count, const json& gammas = nullptr, bool same_boards = false) {
        std::string cases;
        for (std::size_t i = 0; i < count; ++i) {
            json settings = same_boards ? settings_of(0, 1) : settings_of(i, count);
            settings["gammas"] = gammas;
            sites.push_back(std::make_unique<Site>(settings));
            if (i > 0) use_calibration(*sites[i], *sites[0]);
            daemons.push_back(std::make_unique<Daemon>(*sites.back()));
            const std::string name(1, static_cast<char>('a' + i));
            names_ += (i == 0 ? "" : ",") + name;
            cases += name + ") PETACQ_SOCKET='" + sites[i]->socket().string() + "';;\n";
        }
        cases += "held) held=yes PETACQ_SOCKET='" + sites.back()->socket().string() + "';;\n";
        const std::string bin = std::filesystem::path(PETCTL_PROGRAM).parent_path().string();
        script("[ \"$1\" = -v ] || exit 9; shift\ncase $1 in\n" + cases +
               "silent) exit 0;;\nhangs) exec cat >/dev/null;;\nrude) echo '<html>'; exec cat "
               ">/dev/null;;\nodd) echo "
               "'{\"id\":1,\"result\":[1]}'; "
               "exec cat >/dev/null;;\n*) echo \"ssh: connect to host $1: Connection refused\" >&2; exit "
               "255;;\nesac\n"
               "export PETACQ_SOCKET\nPATH='" +
               bin + "':$PATH\n" + held_launcher + "exec sh -c \"$2\"\n");
    }

    Outcome petctl(std::vector<std::string> arguments, const std::string& names = "") {
        arguments.insert(arguments.begin(), {"--hosts", names.empty() ? names_ : names});
        return run_program(PETCTL_PROGRAM, arguments, options());
    }
    Process run(const std::vector<std::string>& arguments) {
        return Process(PETCTL_PROGRAM, arguments, directory_.path() / "petctl", options());
    }
    [[nodiscard]] bool holds_start() const { return std::filesystem::exists(directory_.path() / "held"); }
    /// The launcher sees the file with its word or not at all.
    void release_start(const std::string& word) {
        write_file(directory_.path() / "going", word);
        std::filesystem::rename(directory_.path() / "going", directory_.path() / "go");
    }

    [[nodiscard]] bool idle(std::size_t host) { return daemons[host]->status()["state"] == "idle"; }
    [[nodiscard]] bool has(std::size_t host, const std::string& run) const {
        return std::filesystem::exists(sites[host]->run(run));
    }

    std::vector<std::unique_ptr<Site>> sites;
    std::vector<std::unique_ptr<Daemon>> daemons;

  private:
    [[nodiscard]] ProcessOptions options() const {
        return {.environment = {"LC_ALL=C", "PETACQ_SSH=" + (directory_.path() / "launch").string() + "  -v"},
                .unset = {"PETACQ_SOCKET", "NO_COLOR", "TERM"}};
    }
    void script(const std::string& text) {
        const auto path = directory_.path() / "launch";
        write_file(path, "#!/bin/sh\n" + text);
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }

    TemporaryDirectory directory_;
    std::string names_;
};

/// A switch that mirrors: every datagram that it gets goes to several ports.
class Mirror {
  public:
    explicit Mirror(std::size_t hosts) : ports_(hosts), socket_(::socket(AF_INET, SOCK_DGRAM, 0)) {
        sockaddr_in address = loopback(0);
        socklen_t size = sizeof address;
        const int bytes = 8 << 20;
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
        const timeval patience{0, 20'000};
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
        REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
        port_ = ntohs(address.sin_port);
        thread_ = std::jthread([this](const std::stop_token& stop) {
            std::array<char, 65536> datagram;
            while (!stop.stop_requested()) {
                const auto bytes_read = ::recv(socket_, datagram.data(), datagram.size(), 0);
                if (bytes_read <= 0) continue;
                for (const auto& port : ports_) {
                    const sockaddr_in to = loopback(port);
                    (void)::sendto(socket_, datagram.data(), static_cast<std::size_t>(bytes_read), 0,
                                   reinterpret_cast<const sockaddr*>(&to), sizeof to);
                }
            }
        });
    }
    ~Mirror() {
        thread_.request_stop();
        thread_.join();
        ::close(socket_);
    }
    Mirror(const Mirror&) = delete;
    Mirror& operator=(const Mirror&) = delete;
    void send_to(std::size_t host, std::uint16_t port) { ports_.at(host) = port; }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  private:
    static sockaddr_in loopback(std::uint16_t port) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port);
        return address;
    }
    std::vector<std::atomic<std::uint16_t>> ports_;
    int socket_;
    std::uint16_t port_ = 0;
    std::jthread thread_;
};

std::vector<std::string> stream(const Site& site, const std::string& seconds,
                                const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "--cylinder", "0,0,0,10,20,0.45", "--sources", "4", "--rate", "60000", "--seed",
        "7",          "--duration-s",     seconds};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return petsim_arguments(site, arguments);
}

}  // namespace

TEST_CASE("several hosts start, run and stop as one, with gammas", "[e2e][hosts]") {
    Hosts hosts(3, third_photons);
    std::vector<std::string> to;
    for (const auto& daemon : hosts.daemons)
        to.insert(to.end(), {"--to", daemon->address()});
    // Slowly: a start lies half a second of detector time ahead, and this host may be busy.
    to.insert(to.end(), {"--pace", "0.25"});
    Process petsim(PETSIM_PROGRAM, stream(*hosts.sites[0], "60", to), hosts.sites[0]->directory() / "petsim");
    for (const auto& daemon : hosts.daemons)
        REQUIRE(daemon->until([](const json& s) { return s["rates"]["frames_per_s"] > 0; }));

    const Outcome started =
        hosts.petctl({"start", "--run", "r", "--nuclide", "Sc-44", "--note", "it's $HOME; \"x\""});
    INFO(started.out << started.err);
    REQUIRE(started.status == 0);
    CHECK(started.out.starts_with("run r started on 3 hosts, from "));
    CHECK(contains(started.out, "\nSc-44 emits prompt gammas"));
    CHECK_FALSE(contains(started.out, "not recorded"));
    for (const auto& daemon : hosts.daemons)
        REQUIRE(daemon->until([](const json& s) { return s["ledger"]["saved_singles"]["found"] > 3000; }));

    const Outcome table = hosts.petctl({"status"});
    INFO(table.out << table.err);
    CHECK(table.status == 0);
    for (const char* text : {"host  recording    state    run  health", "  a     * RECORDING  running  r    ",
                             "  all   * RECORDING  running  r    "})
        CHECK(contains(table.out, text));
    const json status = json::parse(hosts.petctl({"status", "--json"}).out);
    CHECK(status["hosts"].size() == 3);
    CHECK(status["hosts"]["b"]["run"]["note"] == "it's $HOME; \"x\"");
    CHECK(status["health"]["state"] != "failed");
    for (const json& reason : status["health"]["reasons"])
        CHECK(reason["host"] != "");  // nothing that only the comparison of hosts shows

    const Outcome stopped = hosts.petctl({"stop"});
    INFO(stopped.out << stopped.err);
    CHECK(stopped.status == 0);
    CHECK(contains(stopped.out, "\nall: run r stopped: "));
    petsim.signal(SIGTERM);
    petsim.wait();

    const Outcome ledger = hosts.petctl({"ledger"});
    INFO(ledger.out << ledger.err);
    CHECK(ledger.status == 0);
    CHECK(contains(ledger.out, "saved_singles.written"));
    const json sums = json::parse(hosts.petctl({"ledger", "--run", "r", "--json"}).out);
    std::uint64_t singles = 0;
    std::vector<std::string> resort{"resort"};
    for (const auto& site : hosts.sites) {
        const json run = site->run_json("r");
        CHECK(run["start_ticks"] == hosts.sites[0]->run_json("r")["start_ticks"]);
        CHECK(run["stop_ticks"] == hosts.sites[0]->run_json("r")["stop_ticks"]);
        singles += run["ledger"]["saved_singles"]["written"].get<std::uint64_t>();
        resort.push_back(site->run("r").string());
    }
    CHECK(sums["closed"] == true);
    CHECK(sums["sum"]["saved_singles"]["written"] == singles);

    // One daemon that receives all of it.
    json settings = settings_of(0, 1);
    settings["gammas"] = third_photons;
    settings["listmode"] = {{"write_singles", true}};
    const Site one(settings);
    use_calibration(one, *hosts.sites[0]);
    const json run = hosts.sites[0]->run_json("r");
    const double end_s = run["stop_ticks"].get<double>() * 15.625e-12 + 0.2;
    const std::string capture = (one.directory() / "all.pcap").string();
    REQUIRE(run_program(PETSIM_PROGRAM, stream(one, std::to_string(end_s), {"--write", capture})).status ==
            0);
    REQUIRE(
        run_program(PETACQD_PROGRAM, {"--config", one.configuration(), "--replay", capture, "--run", "all"})
            .status == 0);
    const auto found = one.directory() / "hosts";
    const auto expected = one.directory() / "one";
    resort.insert(resort.end(), {"-o", found.string()});
    const Outcome combined = run_program(PETLM_PROGRAM, resort);
    INFO(combined.out << combined.err);
    REQUIRE(combined.status == 0);
    const Outcome cut = run_program(
        PETLM_PROGRAM, {"resort", one.run("all").string(), "-o", expected.string(), "--from-ticks",
                        run["start_ticks"].dump(), "--to-ticks", run["stop_ticks"].dump()});
    INFO(cut.out << cut.err);
    REQUIRE(cut.status == 0);
    for (const char* name : {"coincidences.plm", "triples.plm"}) {
        INFO(name);
        CHECK(payload_of(found / name).size() > 10'000);
        CHECK(payload_of(found / name) == payload_of(expected / name));
    }
    const auto ledger_of = [](const std::filesystem::path& directory) {
        return json::parse(read_file(directory / "run.json"))["ledger"];
    };
    CHECK(ledger_of(found)["gammas"] == ledger_of(expected)["gammas"]);
}

TEST_CASE("a pair of hosts is one: one is killed, comes back and joins, and nothing is lost",
          "[e2e][hosts][union]") {
    Hosts hosts(2, nullptr, true);
    Mirror mirror(2);
    for (std::size_t host = 0; host < 2; ++host)
        mirror.send_to(host, hosts.daemons[host]->ports().front());
    // Slowly: a start lies half a second of detector time ahead.
    Process petsim(
        PETSIM_PROGRAM,
        stream(*hosts.sites[0], "60", {"--to", mirror.address(), "--pace", "0.25", "--tag-clock", "1:0.01"}),
        hosts.sites[0]->directory() / "petsim");
    for (const auto& daemon : hosts.daemons)
        REQUIRE(daemon->until([](const json& s) { return s["rates"]["frames_per_s"] > 0; }));
    const std::string pair = "a+b";
    const auto petctl = [&](const std::vector<std::string>& arguments) {
        const Outcome outcome = hosts.petctl(arguments, pair);
        UNSCOPED_INFO(outcome.out << outcome.err);
        return outcome;
    };
    const auto singles_of_host = [&](std::size_t host, std::uint64_t more) {
        return hosts.daemons[host]->until(
            [&](const json& s) { return s["ledger"]["saved_singles"]["found"] > more; });
    };
    const Outcome started = petctl({"start", "--run", "r", "--nuclide", "F-18", "--key", "cage=7"});
    REQUIRE(started.status == 0);
    REQUIRE(singles_of_host(0, 2000));
    REQUIRE(singles_of_host(1, 2000));
    CHECK_FALSE(contains(petctl({"status"}).out, "half_missing"));

    hosts.daemons[0]->process().signal(SIGKILL);
    hosts.daemons[0]->process().wait();
    REQUIRE(singles_of_host(1, 5000));
    const Outcome alone = petctl({"status"});
    CHECK(alone.status == 0);  // the pair answers
    CHECK(contains(alone.out, "  all   * RECORDING"));
    CHECK(contains(alone.out, "  a: half_missing: "));
    CHECK(contains(alone.out, "; b has run r\n"));
    CHECK(json::parse(petctl({"status", "--json"}).out)["health"]["state"] == "degraded");
    CHECK(petctl({"join"}).status == 69);

    hosts.daemons[0] = std::make_unique<Daemon>(*hosts.sites[0], "again");
    mirror.send_to(0, hosts.daemons[0]->ports().front());
    CHECK(contains(petctl({"status"}).out, "; b has run r: petctl join takes it up\n"));
    const Outcome joined = petctl({"join"});
    CHECK(joined.status == 0);
    CHECK(contains(joined.out, "a joins run r of b with its run r-2, from "));
    REQUIRE(singles_of_host(0, 2000));
    const Outcome both = petctl({"status"});
    CHECK_FALSE(contains(both.out, "half_missing"));
    CHECK_FALSE(contains(both.out, "runs_differ"));
    CHECK(hosts.daemons[0]->status()["run"]["operator"]["keys"]["cage"] == "7");
    CHECK(contains(petctl({"join"}).out, "no host of a pair lacks the run of its partner"));

    // And the other one fails, and comes back when the first is there.
    hosts.daemons[1]->process().signal(SIGKILL);
    hosts.daemons[1]->process().wait();
    REQUIRE(singles_of_host(0, 5000));
    hosts.daemons[1] = std::make_unique<Daemon>(*hosts.sites[1], "again");
    mirror.send_to(1, hosts.daemons[1]->ports().front());
    CHECK(contains(petctl({"join"}).out, "b joins run r-2 of a with its run r-2, from "));
    REQUIRE(singles_of_host(1, 2000));
    const Outcome stopped = petctl({"stop", "--run", "r"});
    CHECK(stopped.status == 0);
    CHECK(contains(stopped.out, "\nall: run r-2 stopped: "));
    petsim.signal(SIGTERM);
    petsim.wait();

    const auto united = hosts.sites[0]->directory() / "united";
    const Outcome outcome =
        run_program(PETLM_PROGRAM, {"union", hosts.sites[0]->run("r").string(),
                                    hosts.sites[1]->run("r").string(), "-o", united.string()});
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    const auto run = json::parse(read_file(united / "run.json"));
    CHECK(run["state"] == "complete");
    CHECK(run["united"]["runs"].size() == 4);

    // One that lost nothing.
    const Site one(settings_of(0, 1));
    use_calibration(one, *hosts.sites[0]);
    const double end_s = run["stop_ticks"].get<double>() * 15.625e-12 + 0.2;
    const std::string capture = (one.directory() / "all.pcap").string();
    REQUIRE(run_program(PETSIM_PROGRAM,
                        stream(one, std::to_string(end_s), {"--write", capture, "--tag-clock", "1:0.01"}))
                .status == 0);
    REQUIRE(run_program(PETACQD_PROGRAM,
                        {"--config", one.configuration(), "--replay", capture, "--run", "all", "--from-ticks",
                         run["start_ticks"].dump(), "--to-ticks", run["stop_ticks"].dump()})
                .status == 0);
    for (const char* name : {"singles.plm", "tags.plm"}) {
        INFO(name);
        CHECK(payload_of(united / name).size() > 1000);
        CHECK(payload_of(united / name) == payload_of(one.run("all") / name));
    }
}

TEST_CASE("all hosts start a run, or none", "[e2e][hosts]") {
    Hosts hosts(3);
    const auto refused = [&](const std::vector<std::string>& arguments, const std::string& names,
                             const std::string& why) {
        const Outcome outcome = hosts.petctl(arguments, names);
        INFO(outcome.out << outcome.err);
        CHECK(outcome.status == 1);
        CHECK(outcome.out.empty());
        CHECK_THAT(outcome.err, contains(why));
        CHECK(hosts.idle(0));
        CHECK(hosts.idle(2));
        CHECK_FALSE(hosts.has(0, "r"));
        CHECK_FALSE(hosts.has(2, "r"));
    };
    refused({"start", "--run", "r"}, "a,b,down,c",
            "petctl: down: ssh: connect to host down: Connection refused\n");

    hosts.daemons[1]->start("busy");
    refused({"start", "--run", "r"}, "",
            "petctl: b: expected state idle, found running: run busy is in progress");
    hosts.daemons[1]->stop();

    std::filesystem::create_directory(hosts.sites[1]->run("r"));
    refused({"start", "--run", "r"}, "", "petctl: b: ");
    CHECK(hosts.idle(1));

    // Another calibration.
    CHECK(hosts.daemons[1]->terminate() == 0);
    const Site other;
    use_calibration(*hosts.sites[1], other);
    json patch = settings_of(1, 3);
    patch["clock"] = "hall 4";
    patch["energy"]["lower_keV"] = 400;
    patch["gammas"] = third_photons;
    patch["gammas"]["upper_keV"] = 399;
    hosts.sites[1]->configure(patch);
    hosts.daemons[1] = std::make_unique<Daemon>(*hosts.sites[1], "again");
    refused({"start", "--run", "r"}, "", "the hosts have different clocks: hall 3 (a, c) hall 4 (b)");
    refused({"start", "--run", "r"}, "", "the hosts have different lower energies (keV): 400 (b) 430 (a, c)");
    refused({"start", "--run", "r"}, "",
            "the hosts have different lower energies of gammas (keV): 200 (b) none (a, c)");
    refused({"stop"}, "", "petctl: b: no run is in progress");
}

TEST_CASE("hosts that have started give the run up if the operator interrupts the start", "[e2e][hosts]") {
    Hosts hosts(3);
    const auto has_run = [&](std::size_t host) { return hosts.daemons[host]->status()["run"].is_object(); };
    Process start = hosts.run({"--hosts", "a,b,held", "start", "--run", "r"});
    REQUIRE(eventually([&] { return hosts.holds_start() && has_run(0) && has_run(1); }));
    const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
    CAPTURE(signal);
    start.signal(signal);
    REQUIRE(eventually([&] { return contains(start.errors(), "petctl: interrupted; "); }));
    CHECK(start.running());

    SECTION("the last host starts late") {
        hosts.release_start("");
        CHECK(start.wait() == 1);
        CHECK(start.output().empty());
        CHECK(start.errors().ends_with("petctl: run r was started on no host, or taken back\n"));
        CHECK_FALSE(contains(start.errors(), "held"));
    }
    SECTION("on one of them somebody has put another run in its place") {
        hosts.daemons[0]->stop();
        hosts.daemons[0]->start("other");
        hosts.release_start("");
        CHECK(start.wait() == 1);
        CHECK(hosts.daemons[0]->status()["run"]["id"] == "other");
        hosts.daemons[0]->stop();
    }
    SECTION("the way to the last host breaks") {
        hosts.release_start("broken");
        CHECK(start.wait() == 1);
        CHECK(contains(start.errors(),
                       "petctl: held: run r may wait or run there; stop it: ssh: connect to "
                       "host held: No route to host\n"));
    }
    for (std::size_t host = 0; host < 3; ++host) {
        CHECK(hosts.idle(host));
        CHECK_FALSE(hosts.has(host, "r"));
    }
}

TEST_CASE("hosts that cannot be reached, or do not speak, are named", "[e2e][hosts]") {
    Hosts hosts(1);
    for (const auto& [host, why] :
         {std::pair("down", "ssh: connect to host down: Connection refused"),
          std::pair("silent", "cannot reach petacqd on silent: "),
          std::pair("rude",
                    "cannot reach petacqd on rude: the program that answers there does not speak JSON-RPC"),
          std::pair("odd", "its answer is not an object")}) {
        CAPTURE(host);
        const Outcome outcome = hosts.petctl({"status"}, "a," + std::string(host));
        INFO(outcome.out << outcome.err);
        CHECK(outcome.status == 69);
        CHECK(contains(outcome.out, std::string("  ") + host));
        CHECK(contains(outcome.out, "no answer"));
        CHECK(contains(outcome.out, std::string(host) + ": host_unreachable: " + why));
        const Outcome ledger = hosts.petctl({"ledger"}, "a," + std::string(host));
        CHECK(ledger.status == 69);
        CHECK(contains(ledger.out, "no ledger"));
        CHECK_FALSE(contains(ledger.out, "NOT CLOSED"));  // nobody knows
    }
    CHECK(hosts.petctl({"status"}, "a,a").status == 64);
    CHECK(hosts.petctl({"status"}, "-oProxyCommand=x").status == 64);
    CHECK(hosts.petctl({"sources"}).status == 64);
    CHECK(hosts.petctl({"status", "--full"}).status == 64);
    CHECK(hosts.petctl({"ledger", "--file", "x"}).status == 64);
}

TEST_CASE("a run that waits on all hosts is taken back by a stop, and a duration ends on all at one time",
          "[e2e][hosts]") {
    Hosts hosts(2);
    const Outcome started = hosts.petctl({"start", "--run", "r", "--duration", "0.25", "--nuclide", "Y-86"});
    REQUIRE(started.status == 0);
    CHECK(contains(started.out, "The gammas are not recorded"));
    const json run = hosts.daemons[0]->status()["run"];
    CHECK(run["waiting"] == true);
    CHECK(run["stop_ticks"].get<std::uint64_t>() - run["start_ticks"].get<std::uint64_t>() == 16'000'000'000);
    CHECK(hosts.daemons[1]->status()["run"]["stop_ticks"] == run["stop_ticks"]);
    const Outcome table = hosts.petctl({"status"});
    CHECK(contains(table.out, "r (waits)"));
    const Outcome waiting = hosts.petctl({"stop"});
    CHECK(waiting.status == 0);
    CHECK(waiting.out ==
          "a: run r had not begun, and nothing is left of it: stopped by operator before its start_ticks\n"
          "b: run r had not begun, and nothing is left of it: stopped by operator before its start_ticks\n");
    CHECK_FALSE(hosts.has(0, "r"));
    CHECK_FALSE(hosts.has(1, "r"));

    hosts.daemons[0]->start("mine");
    const Outcome differ = hosts.petctl({"status"});
    CHECK(differ.status == 0);
    CHECK(contains(differ.out, "runs_differ: the hosts have different runs: a has mine, b has none"));
    CHECK(contains(differ.out, "  different  different  "));
    CHECK(contains(hosts.petctl({"stop", "--run", "r"}).err,
                   "petctl: a: the run in progress is mine, not r\n"));
    const Outcome half = hosts.petctl({"stop", "--run", "mine"});
    CHECK(half.status == 1);
    CHECK(contains(half.out, "a: run mine stopped: "));
    CHECK(contains(half.out, "1 of 2 hosts: run mine stopped: "));
    CHECK(half.err == "petctl: b: no run is in progress\n");
}

TEST_CASE("a host that hangs does not stop the watch over the others", "[e2e][hosts]") {
    Hosts hosts(1);
    Process watch = hosts.run({"--hosts", "a,hangs", "status", "--watch", "--json"});
    REQUIRE(eventually(
        [&] { return std::regex_search(watch.output(), std::regex("\"no answer for [0-9]+ s\"")); }));
    const auto lines = std::ranges::count(watch.output(), '\n');
    REQUIRE(eventually([&] { return std::ranges::count(watch.output(), '\n') > lines + 1; }));
    const json last = json::parse(watch.output().substr(0, watch.output().find('\n')));
    CHECK(last["hosts"]["a"]["state"] == "idle");
    CHECK(last["health"]["state"] == "failed");
    watch.signal(SIGINT);
    CHECK(watch.wait() == 0);
}

TEST_CASE("the status of all hosts repeats, one line each, and says when a host goes away", "[e2e][hosts]") {
    Hosts hosts(2);
    Process watch = hosts.run({"--hosts", "a,b", "watch"});
    REQUIRE(eventually([&] { return contains(watch.output(), "2 hosts  NO DATA  idle  ok  run -  "); }));
    CHECK(hosts.daemons[1]->terminate() == 0);
    REQUIRE(eventually([&] {
        return contains(watch.output(), "2 hosts  1 NO DATA, 1 UNKNOWN  idle  failed (b host_unreachable)");
    }));
    hosts.daemons[1] = std::make_unique<Daemon>(*hosts.sites[1], "again");
    REQUIRE(eventually([&] {
        const std::string text = watch.output();
        return text.substr(text.find("failed")).find("2 hosts  NO DATA  idle  ok") != std::string::npos;
    }));
    watch.signal(SIGTERM);
    CHECK(watch.wait() == 0);
}
