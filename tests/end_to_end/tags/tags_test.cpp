// Tags through the real daemon: from datagrams to tags.plm, ledger, status, metrics and replay.
#include <algorithm>
#include <csignal>
#include <span>
#include <tuple>

#include "net/sender.hpp"
#include "net/wire.hpp"
#include "tests/end_to_end/daemon_fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/read_listmode.hpp"

using namespace petacq::test;
using nlohmann::json;
namespace gpu = petacq::gpu;
namespace net = petacq::net;

namespace {

constexpr std::uint64_t ms = 64'000'000;  // about a millisecond, in ticks

/// Datagrams of one source: a few hits and tags each.
class Board {
  public:
    Board(const Daemon& daemon, std::uint16_t id, bool bare = false)
        : id_(id), bare_(bare), sender_({"127.0.0.1", daemon.ports().front(), false}) {}

    void hit(std::uint64_t time) {
        net::Frame frame{};
        frame.head_marker = net::default_head_marker;
        frame.tail_marker = net::default_tail_marker;
        frame.time = time;
        net::encode_frame(frame, add(), net::FrameVersion::one);
    }
    void tag(std::uint64_t time, std::uint8_t channel, std::uint8_t kind, std::uint32_t value) {
        net::encode_tag({net::default_tag_marker, channel, kind, time, value}, add(), net::FrameVersion::one);
        sent.push_back({time, value, id_, channel, kind});
    }
    void send(std::uint8_t flags = 0) {
        std::vector<std::byte> bytes(bare_ ? 0 : net::header_bytes);
        if (!bare_) net::encode_header({flags, id_, sequence_++}, bytes.data(), net::FrameVersion::one);
        bytes.insert(bytes.end(), frames_.begin(), frames_.end());
        frames_.clear();
        const std::span<const std::byte> one(bytes);
        sender_.send({&one, 1});
    }
    [[nodiscard]] std::uint16_t port() const { return sender_.local_port(); }

    std::vector<gpu::Tag> sent;

  private:
    std::byte* add() {
        frames_.resize(frames_.size() + net::frame_bytes);
        return frames_.data() + frames_.size() - net::frame_bytes;
    }
    std::uint16_t id_;
    bool bare_;
    std::uint64_t sequence_ = 5;
    std::vector<std::byte> frames_;
    net::Sender sender_;
};

/// Half a second from both: a gate every 10 ms, a bed position, dead times, something unknown. In some
/// datagrams there are tags at both ends, in some nothing else.
void send_stream(Board& a, Board& b, std::uint64_t start, bool end = true) {
    for (std::uint64_t i = 0; i < 500; ++i) {
        const std::uint64_t t = start + i * ms;
        if (i % 10 == 0) a.tag(t, 0, 1, i / 10 % 2);
        if (i % 7 != 0) a.hit(t + 1);
        if (i % 100 == 50) a.tag(t + 9, 2, 2, static_cast<std::uint32_t>(-1000 - std::int32_t(i)));
        a.tag(t + 9, 15, 3, 3);
        b.hit(t + 2);
        if (i % 3 == 0) b.tag(t + 9, 15, 3, 1);
        if (i % 50 == 0) b.tag(t + 7, 4, 77, 0xFFFFFFFF);
        const bool last = end && i == 499;
        a.send(last ? net::flag_end_of_stream : 0);
        b.send(last ? net::flag_end_of_stream : 0);
    }
}

std::vector<gpu::Tag> in_order(std::vector<gpu::Tag> tags) {
    std::sort(tags.begin(), tags.end(), [](const gpu::Tag& a, const gpu::Tag& b) {
        return std::tie(a.time, a.source, a.channel, a.kind, a.value) <
               std::tie(b.time, b.source, b.channel, b.kind, b.value);
    });
    return tags;
}

std::vector<gpu::Tag> sent_by(const Board& a, const Board& b) {
    std::vector<gpu::Tag> all = a.sent;
    all.insert(all.end(), b.sent.begin(), b.sent.end());
    return in_order(all);
}

gpu::RecordVector<gpu::Tag> tags_of(const std::filesystem::path& file) {
    return read_all<gpu::Tag>(file, [](const auto& reader) { return reader.tags(); });
}

json closed_stop(Daemon& daemon) {
    json stopped = daemon.stop();
    INFO(stopped.dump());
    CHECK(stopped["ledger_closed"] == true);
    return stopped["ledger"];
}

const json of_file(const json& run, const std::string& kind) {
    for (const json& file : run["files"])
        if (file["kind"] == kind) return file;
    return nullptr;
}

const json open_site = {{"sources", {{"accept_any", true}}},
                        {"listmode", {{"write_raw", true}, {"write_singles", true}}}};

}  // namespace

TEST_CASE("tags of a run: file, ledger, status, metrics, and the same bytes from its capture",
          "[e2e][tags]") {
    Site site(open_site);
    std::vector<gpu::Tag> expected;
    {
        Daemon daemon(site);
        daemon.start("none");
        CHECK(closed_stop(daemon)["tags"]["received"] == 0);
        CHECK_FALSE(std::filesystem::exists(site.run("none") / "tags.plm"));
        CHECK(of_file(site.run_json("none"), "tags").is_null());

        daemon.start("live");
        Board a(daemon, 300);
        Board b(daemon, 2);
        send_stream(a, b, 1000 * ms);
        expected = sent_by(a, b);
        REQUIRE(daemon.received(1000));
        const json ledger = closed_stop(daemon);
        const json& tags = ledger["tags"];
        CHECK(tags["received"] == expected.size());
        CHECK(tags["accepted"] == expected.size());
        CHECK(tags["found"] == expected.size());
        CHECK(tags["written"] == expected.size());
        CHECK(tags["late"] == 0);
        CHECK(ledger["frames"]["received"].get<std::size_t>() + expected.size() ==
              ledger["datagrams"]["frames"]);
        CHECK(ledger["frames"]["bad_marker"] == 0);

        const json status = daemon.status();
        REQUIRE(status["tags"].size() == 4);
        CHECK(status["tags"][0]["channel"] == 0);
        CHECK(status["tags"][0]["kind"] == 1);
        CHECK(status["tags"][0]["value"] == 1);
        CHECK(status["tags"][0]["source"] == 300);
        CHECK(status["tags"][1]["value"] == -1450);
        CHECK(status["tags"][2]["value"] == 0xFFFFFFFF);
        CHECK(status["tags"][3]["time_s"].get<double>() == Approx(double(1499 * ms + 9) * 15.625e-12));
        CHECK(daemon.terminate() == 0);
    }
    const auto live = tags_of(site.run("live") / "tags.plm");
    CHECK(std::ranges::equal(live, expected));
    const json run = site.run_json("live");
    CHECK(run["state"] == "complete");
    CHECK(of_file(run, "tags")["records"] == expected.size());
    CHECK(of_file(run, "tags")["name"] == "tags.plm");
    CHECK(of_file(run, "tags")["last_time"] == expected.back().time);
    CHECK(contains(read_file(site.run("live") / "ledger.csv"), "tags.received"));

    const std::string capture = (site.run("live") / "raw.pcap").string();
    int number = 0;
    for (const json& pipeline : {json{{"slice_frames", 1024}, {"threads", 1}}, json{{"threads", 3}}}) {
        json patch = open_site;
        patch["pipeline"] = pipeline;
        patch["listmode"] = {{"write_singles", true}, {"split_s", 0.1}, {"files", 3}};
        site.configure(patch);
        const std::string name = "again" + std::to_string(number++);
        const Outcome replayed = run_program(
            PETACQD_PROGRAM, {"--config", site.configuration(), "--replay", capture, "--run", name});
        INFO(replayed.err);
        REQUIRE(replayed.status == 0);
        const json again = site.run_json(name);
        CHECK(again["ledger"]["tags"] == run["ledger"]["tags"]);
        gpu::RecordVector<gpu::Tag> all;
        for (const json& file : again["files"]) {
            if (file["kind"] != "tags") continue;
            const auto some = tags_of(site.run(name) / file["name"].get<std::string>());
            all.insert(all.end(), some.begin(), some.end());
        }
        CHECK(all == live);
    }
}

TEST_CASE("the source of a tag with bare framing is its place in the list", "[e2e][tags]") {
    json patch = open_site;
    patch["receive"] = {{"framing", "bare"}};
    Site site(patch);
    Daemon daemon(site);
    daemon.start("r");
    Board a(daemon, gpu::Tag::no_source, true);
    Board b(daemon, gpu::Tag::no_source, true);
    send_stream(a, b, 1000 * ms, false);
    REQUIRE(daemon.received(1000));
    closed_stop(daemon);
    CHECK(std::ranges::equal(tags_of(site.run("r") / "tags.plm"), sent_by(a, b)));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a board that floods the daemon with tags harms no other, and none is lost", "[e2e][tags]") {
    const Site site(open_site);
    Daemon daemon(site);
    daemon.start("r");
    Board a(daemon, 1);
    Board b(daemon, 2);
    Board flood(daemon, 3);
    for (std::uint64_t i = 0; i < 100; ++i) {
        for (std::uint32_t k = 0; k < 500; ++k)
            flood.tag((1000 + 5 * i) * ms, 0, 0, k);
        flood.send(i == 99 ? net::flag_end_of_stream : 0);
    }
    send_stream(a, b, 1000 * ms);
    REQUIRE(daemon.received(1100));
    const json ledger = closed_stop(daemon);
    CHECK(ledger["tags"]["accepted"].get<std::size_t>() + ledger["tags"]["late"].get<std::size_t>() ==
          flood.sent.size() + a.sent.size() + b.sent.size());
    CHECK(ledger["tags"]["late"] == 0);
    CHECK(ledger["tags"]["written"] == ledger["tags"]["accepted"]);
    CHECK(ledger["frames"]["late"] == 0);
    auto tags = tags_of(site.run("r") / "tags.plm");
    std::erase_if(tags, [](const gpu::Tag& t) { return t.source == 3; });
    CHECK(std::ranges::equal(tags, sent_by(a, b)));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("a tag far from the time of its source is a time jump", "[e2e][tags]") {
    const Site site(open_site);
    Daemon daemon(site);
    daemon.start("r");
    Board a(daemon, 1);
    Board b(daemon, 2);
    for (std::uint64_t i = 0; i < 200; ++i) {
        for (Board* board : {&a, &b}) {
            board->hit((1000 + i) * ms);
            if (i == 150) board->tag(1'000'000 * ms, 0, 1, 1);
            board->hit((1000 + i) * ms + 5);
            board->send();
        }
    }
    REQUIRE(daemon.received(400));
    const json ledger = closed_stop(daemon);
    CHECK(ledger["tags"]["received"] == 2);
    CHECK(ledger["tags"]["time_jump"] == 2);
    CHECK_FALSE(std::filesystem::exists(site.run("r") / "tags.plm"));
    CHECK(daemon.terminate() == 0);
}

TEST_CASE("the tags of a killed run are readable", "[e2e][tags]") {
    json patch = open_site;
    patch["listmode"] = {{"sync_interval_ms", 20}};
    const Site site(patch);
    std::vector<gpu::Tag> expected;
    {
        Daemon daemon(site);
        daemon.start("killed");
        Board a(daemon, 1);
        Board b(daemon, 2);
        send_stream(a, b, 1000 * ms, false);
        expected = sent_by(a, b);
        REQUIRE(daemon.until([](const json& s) { return s["ledger"]["tags"]["written"] > 100; }));
        daemon.process().signal(SIGKILL);
        daemon.process().wait();
    }
    petacq::daemon::ListModeReader reader(site.run("killed") / "tags.plm");
    gpu::RecordVector<gpu::Tag> all;
    while (reader.next())
        all.insert(all.end(), reader.tags().begin(), reader.tags().end());
    REQUIRE(all.size() > 100);
    REQUIRE(all.size() <= expected.size());
    CHECK(std::equal(all.begin(), all.end(), expected.begin()));
}
