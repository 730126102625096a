// petlm union --follow: the runs are written while it works, and hosts die and come back.
#include <future>
#include <optional>

#include "daemon/listmode/writer.hpp"
#include "daemon/space/reserve.hpp"
#include "tests/support/eventually.hpp"
#include "tests/tools/petlm/union/support.hpp"

using namespace petacq;
using namespace petacq::test;
using nlohmann::json;

namespace {

/// A run that is being written.
class OpenRun {
  public:
    OpenRun(std::filesystem::path directory, std::uint64_t start) : directory_(std::move(directory)) {
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
        json changes = {{"state", state}};
        daemon::state_in(changes, coverage_);
        write_file(directory_ / "run.json", run_document(directory_, coincidence(), changes).dump());
    }

    std::filesystem::path directory_;
    daemon::Coverage coverage_;
    std::optional<daemon::RunReserve> reserve_;
    std::optional<daemon::ListModeWriter> writer_;
};

}  // namespace

TEST_CASE("union: runs are followed until all have ended, and a host that comes back is taken up",
          "[union]") {
    std::mt19937_64 random(41);
    const TemporaryDirectory directory;
    const Singles all = some_singles(random, 3000);
    const auto time = [&](std::size_t single) { return all.at(single).time; };
    const std::uint64_t end = all.back().time + 1;
    auto options = options_for(directory / "u", {directory / "a" / "r", directory / "b" / "r"});
    options.follow = true;
    auto following = std::async(std::launch::async, [&] { return petlm::unite(options); });
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
