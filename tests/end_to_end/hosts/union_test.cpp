// Two hosts hear one stream, and each loses other datagrams of it.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/files.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// The packets of a capture of petsim, each with its header.
struct Packets {
    explicit Packets(const std::filesystem::path& file) {
        const std::string bytes = read_file(file);
        header = bytes.substr(0, 24);
        for (std::size_t at = 24; at < bytes.size();) {
            std::uint32_t size = 0;
            std::memcpy(&size, &bytes[at + 8], sizeof size);
            all.push_back(bytes.substr(at, 16 + size));
            at += 16 + size;
        }
    }
    /// The source of a datagram: IPv4 and UDP take 28 bytes.
    static unsigned source(const std::string& packet) {
        return static_cast<unsigned char>(packet[16 + 28 + 7]);
    }
    template <class Keep>
    void write(const std::filesystem::path& file, Keep keep) const {
        std::string bytes = header;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (keep(i)) bytes += all[i];
        write_file(file, bytes);
    }

    std::string header;
    std::vector<std::string> all;
};

/// Whether the payloads are the same. Nobody wants to see them.
bool same(const std::filesystem::path& a, const std::filesystem::path& b) {
    return payload_of(a) == payload_of(b);
}

/// A run that has ended, written again: its singles in pieces, then the rest.
class RunAgain {
  public:
    RunAgain(std::filesystem::path from, std::filesystem::path to)
        : from_(std::move(from)), to_(std::move(to)), singles_(read_file(from_ / "singles.plm")) {
        std::filesystem::create_directories(to_);
        lock_ = ::open((to_ / ".reserve").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        REQUIRE(::flock(lock_, LOCK_EX) == 0);
        json run = json::parse(read_file(from_ / "run.json"));
        run["state"] = "running";
        for (const char* known_later : {"stop_ticks", "stop_utc", "ledger", "verdict", "files"})
            run.erase(known_later);
        run["coverage"]["intervals"] = nullptr;
        write_file(to_ / "run.json", run.dump());
    }
    RunAgain(const RunAgain&) = delete;
    RunAgain& operator=(const RunAgain&) = delete;
    ~RunAgain() { ::close(lock_); }

    /// Singles, up to this share of the file.
    void write(double share) {
        const auto size = static_cast<std::size_t>(share * static_cast<double>(singles_.size()));
        std::ofstream(to_ / "singles.plm", std::ios::binary | std::ios::app)
            << singles_.substr(written_, size - written_);
        written_ = size;
    }
    void end() {
        write(1);
        for (const auto& entry : std::filesystem::directory_iterator(from_)) {
            const auto name = entry.path().filename();
            if (name != "run.json" && name != "singles.plm")
                std::filesystem::copy_file(entry.path(), to_ / name);
        }
        std::filesystem::copy_file(from_ / "run.json", to_ / "run.json.new");
        std::filesystem::rename(to_ / "run.json.new", to_ / "run.json");
        std::filesystem::remove(to_ / ".reserve");
    }

  private:
    const std::filesystem::path from_;
    const std::filesystem::path to_;
    const std::string singles_;
    std::size_t written_ = 0;
    int lock_ = -1;
};

json settings() {
    return {{"sources", {{"ids", {0, 1, 2, 3}}}},
            {"energy", {{"lower_keV", 430}, {"upper_keV", 650}}},
            {"gammas",
             {{"lower_keV", 200},
              {"upper_keV", 400},
              {"before_ticks", 500'000},
              {"after_ticks", 1'000'000},
              {"delay_ticks", 10'000'000}}},
            {"listmode", {{"write_singles", true}, {"block_bytes", 65'536}}}};
}

/// [name] the bytes of each file.
std::map<std::string, std::string> files_of(const std::filesystem::path& directory) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
        files[entry.path().filename().string()] = read_file(entry.path());
    return files;
}

}  // namespace

TEST_CASE("the union of two hosts is the run of one that lost nothing", "[e2e][hosts][union]") {
    Site site(settings());
    const auto file = [&](const std::string& name) { return (site.directory() / name).string(); };
    REQUIRE(run_program(PETSIM_PROGRAM,
                        petsim_arguments(site, {"--cylinder", "0,0,0,10,20,0.45", "--sources", "4", "--rate",
                                                "50000", "--duration-s", "1.4", "--flush-us", "5000",
                                                "--tag-clock", "1:0.003", "--tag-dead-time", "2:0.02",
                                                "--dead-time-ticks", "1000", "--write", file("all.pcap")}))
                .status == 0);
    const Packets packets(file("all.pcap"));
    REQUIRE(packets.all.size() > 500);
    std::mt19937_64 random(55);
    // Which hosts have heard each datagram.
    std::vector<std::array<bool, 2>> heard(packets.all.size(), {true, true});
    bool boards_apart = false;
    std::size_t lost = 0;
    SECTION("each loses datagrams of other boards: all is known") {
        boards_apart = true;
        for (std::size_t i = 0; i < heard.size(); ++i)
            heard[i].at(Packets::source(packets.all[i]) / 2) = random() % 4 != 0;
    }
    SECTION("each loses any: a fifth") {
        for (auto& by : heard)
            if (const auto loser = random() % 10; loser < 4) by.at(loser % 2) = false;
    }
    SECTION("and some are lost by both") {
        for (std::size_t i = 0; i < heard.size(); ++i) {
            const auto loser = random() % 20;
            if (loser < 8) heard[i].at(loser % 2) = false;
            // No number tells of those before the first or after the last of a source.
            if (loser != 19 || i < 20 || i + 20 > heard.size()) continue;
            heard[i] = {false, false};
            ++lost;
        }
    }
    const auto record = [&](const std::string& name, auto keep) {
        packets.write(file(name + ".pcap"), keep);
        const Outcome outcome = run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay",
                                                              file(name + ".pcap"), "--run", name});
        INFO(outcome.err);
        REQUIRE((outcome.status == 0 || outcome.status == 65));  // a tenth is lost: a bad run
    };
    record("a", [&](std::size_t i) { return heard[i][0]; });
    record("b", [&](std::size_t i) { return heard[i][1]; });
    record("one", [&](std::size_t i) { return heard[i][0] || heard[i][1]; });

    for (const char* name : {"a", "b"})  // a replay writes none
        std::filesystem::copy_file(file(std::string(name) + ".pcap"), site.run(name) / "raw.pcap");
    const auto united = site.directory() / "united";
    const Outcome outcome = run_program(
        PETLM_PROGRAM,
        {"union", site.run("a").string(), site.run("b").string(), "--any-name", "--output", united.string()});
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.status == 0);
    std::vector<std::string> files{"singles.plm", "coincidences.plm", "triples.plm", "tags.plm"};
    if (boards_apart) files.push_back("seconds.plm");
    for (const std::string& name : files) {
        INFO(name);
        CHECK(same(united / name, site.run("one") / name));
        CHECK(payload_of(united / name).size() > 500);
        CHECK_FALSE(same(united / name, site.run("a") / name));
    }
    const auto run = json::parse(read_file(united / "run.json"));
    const json one = site.run_json("one");
    INFO(run["united"].dump(1));
    for (const char* same : {"state", "start_ticks", "stop_ticks"})
        CHECK(run[same] == one[same]);
    for (const char* section : {"singles", "pairs", "saved_singles", "gammas", "triples"})
        CHECK(run["ledger"][section] == one["ledger"][section]);
    const json& by_all = run["united"]["lost_by_all"];
    if (boards_apart) CHECK(by_all["datagrams"] == 0);
    if (lost > 0) {
        CHECK(by_all["datagrams"].is_null());
        const json& most = by_all["datagrams_at_most"];
        CHECK((most.is_null() || most >= lost));  // null: one lost its first datagram, too
    }
    const json& hits = run["united"]["hits"];
    CHECK(hits["only"][0] > 1000);
    CHECK(hits["only"][1] > 1000);
    CHECK(hits["several"].get<std::uint64_t>() + hits["only"][0].get<std::uint64_t>() +
              hits["only"][1].get<std::uint64_t>() ==
          run["ledger"]["saved_singles"]["written"]);
    CHECK(run_program(PETLM_PROGRAM, {"verify", united.string()}).status == 0);

    // The same while both are written, byte for byte.
    const auto at_once = files_of(united);
    std::filesystem::remove_all(united);
    for (const char* name : {"a", "b"})
        std::filesystem::rename(site.run(name), site.directory() / name);
    {
        RunAgain a(site.directory() / "a", site.run("a"));
        RunAgain b(site.directory() / "b", site.run("b"));
        a.write(0.2);
        b.write(0.2);
        Process following(PETLM_PROGRAM,
                          {"union", site.run("a").string(), site.run("b").string(), "--any-name", "--follow",
                           "--output", united.string()},
                          site.directory() / "following");
        const auto has = [&](const std::string& name, double share) {
            std::error_code absent;
            const auto bytes = std::filesystem::file_size(united / (name + ".partial"), absent);
            return !absent &&
                   static_cast<double>(bytes) > share * static_cast<double>(at_once.at(name).size());
        };
        for (const double share : {0.4, 0.6, 0.9}) {
            a.write(share);
            b.write(share + 0.1);
            CHECK(eventually([&] { return has("singles.plm", share - 0.2); }));
        }
        CHECK(eventually([&] { return has("coincidences.plm", 0.5); }));
        b.end();
        a.end();
        REQUIRE(following.wait() == 0);
        CHECK_FALSE(contains(following.errors(), "begins again"));
    }
    const auto followed = files_of(united);
    CHECK(followed.size() == at_once.size());
    for (const auto& [name, bytes] : at_once) {
        INFO(name);
        CHECK((followed.contains(name) && followed.at(name) == bytes));
    }

    // However a host divides its files.
    json divided = settings();
    divided["listmode"] = {{"write_singles", true},
                           {"files", 2},
                           {"compression", "zstd"},
                           {"split_bytes", 200'000},
                           {"block_bytes", 65'536}};
    site.configure(divided);
    record("b2", [&](std::size_t i) { return heard[i][1]; });
    site.configure(settings());
    CHECK(std::filesystem::exists(site.run("b2") / "singles-0002.2.plm"));
    const auto of_divided = site.directory() / "divided";
    CHECK(run_program(PETLM_PROGRAM, {"union", site.run("a").string(), site.run("b2").string(), "--any-name",
                                      "--output", of_divided.string()})
              .status == 0);
    CHECK(same(of_divided / "singles.plm", united / "singles.plm"));

    // The capture knows each datagram, and gives all of the run again.
    std::array<std::uint64_t, 4> counts{};  // none, a, b, both
    for (const auto& by : heard)
        ++counts.at((by[0] ? 1U : 0U) + (by[1] ? 2U : 0U));
    std::array<std::uint64_t, 4> found{};
    for (const json& source : run["united"]["datagrams"]["sources"]) {
        found[0] += source["lost_by_all"].get<std::uint64_t>();
        found[1] += source["only"][0].get<std::uint64_t>();
        found[2] += source["only"][1].get<std::uint64_t>();
        found[3] += source["several"].get<std::uint64_t>();
    }
    CHECK(found == counts);
    CHECK(by_all["captures_lack"] == lost);
    CHECK(run_program(PETACQD_PROGRAM, {"--config", site.configuration(), "--replay",
                                        (united / "raw.pcap").string(), "--run", "again"})
              .status == 0);
    for (const char* name : {"singles.plm", "coincidences.plm", "triples.plm", "tags.plm", "seconds.plm"}) {
        INFO(name);
        CHECK(same(site.run("again") / name, site.run("one") / name));
    }
    const Outcome info = run_program(PETLM_PROGRAM, {"info", united.string()});
    CHECK(contains(info.out, "\nhits         "));
    CHECK(contains(info.out, "\nlost by all  "));
}
