// petlm union --follow: the runs are written while it works, and hosts die and come back.
#include <sys/stat.h>

#include <array>
#include <fstream>
#include <future>
#include <map>
#include <optional>

#include "daemon/listmode/reader.hpp"
#include "daemon/listmode/writer.hpp"
#include "daemon/space/reserve.hpp"
#include "tests/support/eventually.hpp"
#include "tests/tools/petlm/tags.hpp"
#include "tests/tools/petlm/union/support.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// A run that is being written.
class OpenRun {
  public:
    /// `changes`: of run.json.
    OpenRun(std::filesystem::path directory, std::uint64_t start, json changes = json::object())
        : directory_(std::move(directory)), changes_(std::move(changes)) {
        std::filesystem::create_directories(directory_);
        reserve_.emplace(directory_);
        daemon::ListModeOptions options;
        options.kind = daemon::RecordKind::singles;
        options.block_bytes = 512;
        options.sync_interval_ms = 1;
        coverage_ = covered_by_run(directory_, gpu::TickRange{start, start + 1}, resort_scanner().tick_ps);
        coverage_.anchor->utc += std::chrono::microseconds(start);
        coverage_.intervals.reset();
        describe("running");
        writer_.emplace(directory_ / "singles.plm", options,
                        json{{"run_id", "r"}, {"coverage", daemon::to_json(coverage_)}});
    }
    void append(Singles singles) {
        const std::uint64_t written = writer_->counts().written + singles.size();
        writer_->append(std::move(singles));
        REQUIRE(eventually([&] { return writer_->counts().written == written; }));
    }
    void die() {
        reserve_.reset();  // the lock goes, run.json stays
        writer_.reset();
    }
    void end(std::uint64_t stop) {
        writer_->finish();
        coverage_.intervals = gpu::TickRange{coverage_.anchor->ticks, stop};
        describe("complete");
        reserve_->remove();
    }

  private:
    void describe(const std::string& state) {
        json changes = changes_;
        changes["state"] = state;
        daemon::state_in(changes, coverage_);
        write_file(directory_ / "run.json", run_document(directory_, coincidence(), changes).dump());
    }

    std::filesystem::path directory_;
    json changes_;
    daemon::Coverage coverage_;
    std::optional<daemon::RunReserve> reserve_;
    std::optional<daemon::ListModeWriter> writer_;
};

std::future<int> follow_in_background(const petlm::UnionOptions& options) {
    return std::async(std::launch::async, [options] { return petlm::unite(options); });
}

/// The coincidences in the whole blocks of a file that is written.
gpu::RecordVector<gpu::Coincidence> coincidences_so_far(const std::filesystem::path& file) {
    gpu::RecordVector<gpu::Coincidence> all;
    if (!std::filesystem::exists(file)) return all;
    try {
        daemon::ListModeReader reader(file);
        while (reader.next())
            all.insert(all.end(), reader.coincidences().begin(), reader.coincidences().end());
    } catch (const daemon::NotListMode&) {
        // Its header is not there yet.
    }
    return all;
}

/// [name] the bytes of each file of a run.
std::map<std::string, std::string> files_of(const std::filesystem::path& run) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(run))
        files[entry.path().filename().string()] = read_file(entry.path());
    return files;
}

/// That of a union when nothing is written any more, at the same place.
std::map<std::string, std::string> united_at_once(petlm::UnionOptions options) {
    std::filesystem::remove_all(options.output);
    options.follow = false;
    REQUIRE(quietly_unite(options) == petlm::ok);
    return files_of(options.output);
}

/// Both have the same files. Nobody wants to see them.
void check_same_files(const std::map<std::string, std::string>& a,
                      const std::map<std::string, std::string>& b) {
    for (const auto& [name, bytes] : a) {
        INFO(name);
        REQUIRE(b.contains(name));
        CHECK((bytes == b.at(name)));
    }
    CHECK(a.size() == b.size());
}

/// Changes a byte of the fourth block of a file, so far behind its begin.
void spoil_fourth_block(const std::filesystem::path& file, std::size_t behind) {
    const std::string bytes = read_file(file);
    std::size_t block = 0;
    for (int i = 0; i < 4; ++i)
        block = bytes.find("PLMBLOCK", block + 1);
    REQUIRE(block != std::string::npos);
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
            .seekp(static_cast<std::streamoff>(block + behind))
        << static_cast<char>(bytes[block + behind] ^ 1);
}

}  // namespace

TEST_CASE("union: coincidences are found while the runs are written", "[union]") {
    std::mt19937_64 random(43);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random, 3000);
    const auto time = [&](std::size_t single) { return all.at(single).time; };
    auto options = options_for(directory / "u", {directory / "a" / "r", directory / "b" / "r"});
    options.follow = true;
    OpenRun a(options.runs[0], time(0));
    OpenRun b(options.runs[1], time(0));
    auto following = follow_in_background(options);
    const auto growing = options.output / "coincidences.plm.partial";
    const auto pairs = found_at_once(all, rules()).coincidences;
    const auto grows_beyond = [&](std::uint64_t at_least) {
        return eventually([&] {
            const auto found = coincidences_so_far(growing);
            REQUIRE(found.size() <= pairs.size());
            REQUIRE(same_bytes(
                found, gpu::RecordVector<gpu::Coincidence>(
                           pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(found.size()))));
            return !found.empty() && found.back().time > at_least;
        });
    };
    a.append(between(all, 0, time(1200)));
    b.append(between(all, 0, time(1000)));
    REQUIRE(grows_beyond(time(600)));
    struct stat first {};
    REQUIRE(::stat(growing.c_str(), &first) == 0);
    b.append(between(all, time(1000), time(2500)));
    // What comes after the last hits of a may still change.
    a.append(between(all, time(1200), time(2200)));
    REQUIRE(grows_beyond(time(1800)));
    const std::uint64_t end = all.back().time + 1;
    a.append(between(all, time(2200), end));
    a.end(end);
    b.append(between(all, time(2500), end));
    b.end(end);
    CHECK(following.get() == petlm::ok);
    struct stat last {};
    REQUIRE(::stat((options.output / "coincidences.plm").c_str(), &last) == 0);
    CHECK(first.st_ino == last.st_ino);  // it has not begun again
    CHECK(same_bytes(read_coincidences(options.output / "coincidences.plm"), pairs));
    const auto followed = files_of(options.output);
    check_same_files(followed, united_at_once(options));
}

TEST_CASE("union: followed runs give the files that they give once they have ended", "[union]") {
    std::mt19937_64 random(44);
    for (int round = 0; round < 8; ++round) {
        const TemporaryDirectory directory;
        Singles all = some_singles(random, 3000);
        // Gammas are among them.
        for (gpu::Single& s : all)
            if (random() % 4 == 0) s.energy = 350;
        sort_singles(all);
        json of_run = {{"configuration",
                        {{"energy", {{"filter", true}, {"lower_keV", 450}, {"upper_keV", 550}}},
                         {"listmode", {{"files", 1 + round % 2}}}}}};
        const bool triples = round % 3 != 0;
        if (triples) {
            of_run["configuration"]["gammas"] = {{"lower_keV", 300},
                                                 {"upper_keV", 400},
                                                 {"before_ticks", 400},
                                                 {"after_ticks", 6000},
                                                 {"delay_ticks", 9000}};
        }
        const std::uint64_t start = all.front().time;
        const std::uint64_t end = all.back().time + 1;
        auto options = options_for(directory / "u", {directory / "a" / "r", directory / "b" / "r"});
        options.follow = true;
        auto following = follow_in_background(options);

        std::array<std::optional<OpenRun>, 2> hosts;
        std::array<std::uint64_t, 2> written{start, start};
        const auto open = [&](std::size_t host, const char* name) {
            const auto run = options.runs.at(host).parent_path() / name;
            hosts.at(host).emplace(run, written.at(host), of_run);
            std::vector<gpu::Tag> tags;
            for (std::uint64_t t = written.at(host); t < end; t += 997)
                if (t % 3 != host) tags.push_back(tag(t, 1, gpu::TagKind::trigger, 7));
            write_covered(run / "tags.plm", daemon::RecordKind::tags, tags,
                          covered_by_run(run, {{written.at(host), end}}, resort_scanner().tick_ps));
        };
        const std::size_t first = random() % 2;
        open(first, "r");
        std::uint64_t dies = random() % 2 == 0 ? start + (end - start) / 2 : end;
        while (written[0] < end || written[1] < end) {
            const std::size_t host = hosts[1 - first] ? random() % 2 : first;
            std::uint64_t& from = written.at(host);
            if (from >= end) continue;
            if (!hosts[1 - first] && from > start) open(1 - first, "r");
            const std::uint64_t to = std::min(end, from + 1 + random() % ((end - start) / 4));
            Singles heard;
            for (const gpu::Single& s : between(all, from, to))
                if ((s.time / 1000 + host) % 5 != 0) heard.push_back(s);
            hosts.at(host)->append(std::move(heard));
            from = to;
            // The first one dies, and comes back while the other one records.
            if (host == first && dies < end && from > dies) {
                dies = end;
                hosts.at(host)->die();
                hosts.at(host).reset();
                if (written.at(1 - host) < end) open(host, "r-2");
                if (!hosts.at(host)) from = end;
            }
        }
        for (auto& host : hosts)
            if (host) host->end(end);
        INFO("round " << round);
        CHECK(following.get() == petlm::ok);
        const auto followed = files_of(options.output);
        CHECK(followed.contains("triples" + std::string(round % 2 == 0 ? "" : ".2") + ".plm") == triples);
        check_same_files(followed, united_at_once(options));
    }
}

TEST_CASE("union: a block that the disk spoils while it is followed is left out", "[union]") {
    std::mt19937_64 random(45);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random, 1000);
    const std::uint64_t start = all.front().time;
    const std::uint64_t middle = all[500].time;
    const std::uint64_t end = all.back().time + 1;
    auto options = options_for(directory / "u", {directory / "a" / "r", directory / "b" / "r"});
    options.follow = true;
    OpenRun a(options.runs[0], start);
    OpenRun b(options.runs[1], start);
    a.append(between(all, 0, middle));
    b.append(between(all, 0, middle));
    // Its header: nothing tells where the next block is, until there is an index.
    spoil_fourth_block(options.runs[0] / "singles.plm", 0);
    auto following = follow_in_background(options);
    REQUIRE(eventually([&] { return std::filesystem::exists(options.output / "singles.plm.partial"); }));
    a.append(between(all, middle, end));
    b.append(between(all, middle, end));
    a.end(end);
    b.end(end);
    CHECK(following.get() == petlm::ok);
    CHECK(same_bytes(read_singles(options.output / "singles.plm"), all));
    CHECK(run_json_of(options.output)["united"]["runs"][0]["damage"] ==
          "1 blocks of its singles cannot be read");
    const auto followed = files_of(options.output);
    check_same_files(followed, united_at_once(options));
}

TEST_CASE("union: what changes coincidences that were found already makes the union begin again", "[union]") {
    std::mt19937_64 random(46);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random, 2000);
    const auto time = [&](std::size_t single) { return all.at(single).time; };
    const std::uint64_t end = all.back().time + 1;
    auto options = options_for(directory / "u", {directory / "a" / "r", directory / "b" / "r"});
    options.follow = true;
    const auto finds_pairs = [&] {
        return eventually(
            [&] { return !coincidences_so_far(options.output / "coincidences.plm.partial").empty(); });
    };
    std::future<int> following;
    SECTION("a run that comes late began first") {
        following = follow_in_background(options);
        OpenRun b(options.runs[1], time(500));
        b.append(between(all, time(500), time(1500)));
        REQUIRE(finds_pairs());
        OpenRun a(options.runs[0], time(0));
        a.append(between(all, 0, time(1000)));
        b.append(between(all, time(1500), end));
        a.end(time(1000));
        b.end(end);
        CHECK(following.get() == petlm::ok);
        CHECK(same_bytes(read_singles(options.output / "singles.plm"), all));
    }
    SECTION("in a time that only one run covers, it has a spoilt block") {
        OpenRun a(options.runs[0], time(0));
        OpenRun b(options.runs[1], time(1000));
        a.append(between(all, 0, time(1500)));
        b.append(between(all, time(1000), time(1500)));
        spoil_fourth_block(options.runs[0] / "singles.plm", sizeof(daemon::BlockHeader));
        following = follow_in_background(options);
        REQUIRE(finds_pairs());
        a.append(between(all, time(1500), end));
        b.append(between(all, time(1500), end));
        a.end(end);
        b.end(end);
        CHECK(following.get() == petlm::ok);
        CHECK(run_json_of(options.output)["state"] == "partial");
    }
    const auto followed = files_of(options.output);
    check_same_files(followed, united_at_once(options));
}

TEST_CASE("union: runs are followed until all have ended, and a host that comes back is taken up",
          "[union]") {
    std::mt19937_64 random(41);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random, 3000);
    const auto time = [&](std::size_t single) { return all.at(single).time; };
    const std::uint64_t end = all.back().time + 1;
    auto options = options_for(directory / "u", {directory / "a" / "r", directory / "b" / "r"});
    options.follow = true;
    auto following = follow_in_background(options);
    const auto united_bytes = [&] {
        std::error_code absent;
        const auto bytes = std::filesystem::file_size(directory / "u" / "singles.plm.partial", absent);
        return absent ? 0 : bytes;
    };
    const auto grows_beyond = [&](std::uintmax_t bytes) {
        return eventually([&] { return united_bytes() > bytes; });
    };

    OpenRun a(directory / "a" / "r", time(0));
    a.append(between(all, 0, time(1000)));
    OpenRun b(directory / "b" / "r", time(0));
    b.append(between(all, 0, time(500)));
    // What b lacks it may still write.
    REQUIRE(grows_beyond(4096 + 400 * sizeof(gpu::Single)));
    a.die();
    b.append(between(all, time(600), time(1500)));
    REQUIRE(grows_beyond(4096 + 1200 * sizeof(gpu::Single)));
    std::optional<OpenRun> again;
    again.emplace(directory / "a" / "r-2", time(1600));
    again->append(between(all, time(1600), time(2400)));
    b.append(between(all, time(1700), time(2200)));
    SECTION("b ends last") {
        again->append(between(all, time(2400), time(2500)));
        again->end(time(2500));
        b.append(between(all, time(2500), end));
    }
    SECTION("the one that came back ends last") {
        b.append(between(all, time(2300), time(2310)));
        again->append(between(all, time(2400), end));
        again->end(end);
    }
    b.end(end);
    REQUIRE(following.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
    CHECK(following.get() == petlm::ok);
    Singles heard = between(all, 0, time(1500));
    const Singles later = between(all, time(1600), end);
    heard.insert(heard.end(), later.begin(), later.end());
    CHECK(same_bytes(read_singles(directory / "u" / "singles.plm"), heard));
    CHECK(same_bytes(read_coincidences(directory / "u" / "coincidences.plm"),
                     found_at_once(heard, rules()).coincidences));
    const json run = run_json_of(directory / "u");
    CHECK(run["state"] == "complete");
    REQUIRE(run["united"]["runs"].size() == 3);
    CHECK(run["united"]["runs"][0]["state"] == "interrupted");
}

TEST_CASE("union: a run NAME-2 is another one unless another host recorded when it began", "[union]") {
    std::mt19937_64 random(42);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random, 400);
    const std::uint64_t middle = all[200].time;
    const gpu::TickRange times{all.front().time, all.back().time + 1};
    const json cut_off = {{"state", "running"}, {"stop_ticks", nullptr}};
    const bool died = GENERATE(true, false);
    const bool overlaps = GENERATE(true, false);
    const auto a = write_heard(directory / "a", between(all, 0, middle), gpu::TickRange{times.start, middle},
                               died ? cut_off : json::object());
    const auto next = write_heard(directory / "a", between(all, middle, UINT64_MAX), {{middle, times.end}},
                                  json::object(), "r-2");
    const std::uint64_t end = overlaps ? times.end : middle;
    const auto b = write_heard(directory / "b", between(all, 0, end), gpu::TickRange{times.start, end});
    REQUIRE(quietly_unite(options_for(directory / "u", {a / "", b})) == petlm::ok);
    CHECK(run_json_of(directory / "u")["united"]["runs"].size() == (overlaps ? 3 : 2));
    // Once, though it is named, too.
    auto options = options_for(directory / "v", {a, b, directory / "b" / ".." / "a" / "r-2"});
    options.any_name = true;
    REQUIRE(quietly_unite(options) == petlm::ok);
    CHECK(run_json_of(directory / "v")["united"]["runs"].size() == 3);
}
