// Captured datagrams become batches just as received ones do.
#include <filesystem>
#include <random>

#include "net/pcap/replayer.hpp"
#include "tests/net/loopback.hpp"
#include "tests/net/pcap/capture_out.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::net;
using petacq::test::Bytes;

namespace {

struct Sent {
    std::int64_t time_ns;
    Endpoint from;
    Bytes bytes;
};

std::vector<Sent> one_stream(std::uint64_t datagrams, std::size_t frames, std::mt19937_64& random) {
    std::vector<Sent> sent;
    for (std::uint64_t i = 0; i < datagrams; ++i)
        sent.push_back({1, {1, 1}, test::sequenced_datagram(1, i, frames, random)});
    return sent;
}

class Captures {
  public:
    std::string add(const std::vector<Sent>& datagrams, std::uint16_t port = 9601, bool ours = false) {
        const std::string name = (directory_ / std::to_string(files_++)).string();
        test::CaptureOut out(name, ours);
        for (const Sent& s : datagrams)
            out.add(s.time_ns, s.from, {0x7F000001, port}, {}, s.bytes);
        return name;
    }

  private:
    test::TemporaryDirectory directory_;
    int files_ = 0;
};

struct Got {
    Datagram record;
    Bytes frames;
};

/// Everything that a replayer publishes with a pool of `batches`: the datagrams that a receiver would
/// deliver, and the number of the others.
struct Replayed {
    std::vector<Got> delivered;
    std::size_t malformed = 0;
    std::size_t unknown_source = 0;
    std::string failure;
};

Replayed replay(const std::vector<std::string>& files, const ReceiverOptions& options,
                std::size_t batches = 4) {
    BatchPool pool(batches, 65536, make_host_memory({false, false}));
    BatchQueue queue(1, pool.count());
    Replayer replayer(files, options, {9601}, pool, queue.lane(0));
    Replayed all;
    replayer.start();
    std::int64_t now = 0;
    while (!queue.ended()) {
        const auto piece = queue.take(std::chrono::milliseconds(1));
        if (!piece) {
            REQUIRE((queue.ended() || queue.taken_until_ns() <= now));
            continue;
        }
        for (const Datagram& d : piece->datagrams) {
            REQUIRE(d.arrival_ns >= now);
            now = d.arrival_ns;
            all.malformed += d.admitted == Admitted::malformed ? 1 : 0;
            all.unknown_source += d.admitted == Admitted::unknown_source ? 1 : 0;
            if (d.admitted != Admitted::yes) continue;
            const std::byte* at = piece->batch->data + d.offset;
            REQUIRE(d.offset % frame_bytes == 0);
            all.delivered.push_back({d, Bytes(at, at + d.frames * frame_bytes)});
        }
        if (piece->last) pool.put(piece->batch);
    }
    replayer.stop();
    all.failure = replayer.failure();
    CHECK(replayer.done());
    CHECK(pool.free_count() == pool.count());
    return all;
}

}  // namespace

TEST_CASE("replay: datagrams come in the order of their times, from several files, whole") {
    std::mt19937_64 random(3);
    Captures captures;
    std::vector<std::vector<Sent>> files(3);
    std::vector<Sent> all;
    for (std::uint64_t i = 0; i < 2000; ++i) {
        Sent s{static_cast<std::int64_t>(1'000'000'000 + i * 10'000),
               {0x0A000001, static_cast<std::uint16_t>(i % 7)},
               test::sequenced_datagram(static_cast<std::uint16_t>(i % 7), i / 7, random() % 91, random)};
        files[random() % files.size()].push_back(s);
        all.push_back(std::move(s));
    }
    std::vector<std::string> names;
    for (const auto& file : files)
        names.push_back(captures.add(file));
    const std::vector<Got> got = replay(names, {}).delivered;
    REQUIRE(got.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Bytes& bytes = all[i].bytes;
        REQUIRE(got[i].frames == Bytes(bytes.begin() + header_bytes, bytes.end()));
        REQUIRE(got[i].record.bytes == bytes.size());
        REQUIRE(got[i].record.source == i % 7);
        REQUIRE(got[i].record.sequence == i / 7);
        REQUIRE(got[i].record.port == i % 7);
        REQUIRE(got[i].record.arrival_ns == all[i].time_ns);
        if (!got[i].frames.empty()) {
            const ValidTimes times = valid_times({}, Modules::below(65'536), got[i].frames.data(),
                                                 got[i].frames.size() / frame_bytes);
            REQUIRE(got[i].record.first_time == times.first);
            REQUIRE(got[i].record.last_time == times.last);
        }
    }
}

TEST_CASE("replay: datagrams that a receiver would reject are counted as there") {
    std::mt19937_64 random(5);
    Captures captures;
    std::vector<Sent> sent;
    for (std::uint64_t i = 0; i < 10; ++i)
        sent.push_back({1, {0x0A000001, 1}, test::sequenced_datagram(3, i, 5, random)});
    sent.push_back({1, {0x0A000001, 1}, test::random_bytes(160, random)});
    sent.push_back({1, {0x0A000001, 1}, {}});
    sent.push_back({1, {0x0A000001, 1}, test::sequenced_datagram(4, 0, 5, random)});
    sent.push_back({1, {0x0A000002, 1}, test::sequenced_datagram(3, 0, 5, random)});
    ReceiverOptions options;
    options.allowed_sources = {{3, {}}};
    options.allowed_addresses = {0x0A000001};
    const Replayed replayed = replay({captures.add(sent)}, options);
    CHECK(replayed.delivered.size() == 10);
    CHECK(replayed.malformed == 2);
    CHECK(replayed.unknown_source == 2);
    CHECK(replay({captures.add(sent, 9999)}, options).delivered.empty());  // another port
}

TEST_CASE("replay: datagrams that were captured as one are separated") {
    std::mt19937_64 random(6);
    Captures captures;
    for (const std::size_t frames : {0, 1, 5, 91}) {
        std::vector<Bytes> datagrams;
        Bytes joined;
        for (std::uint64_t i = 0; i < 8; ++i) {
            datagrams.push_back(test::sequenced_datagram(2, 100 + i, i == 7 ? frames / 2 : frames, random));
            joined.insert(joined.end(), datagrams.back().begin(), datagrams.back().end());
        }
        const std::vector<Got> got = replay({captures.add({{1, {1, 1}, joined}})}, {}).delivered;
        REQUIRE(got.size() == datagrams.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            CHECK(got[i].record.sequence == 100 + i);
            CHECK(got[i].frames == Bytes(datagrams[i].begin() + header_bytes, datagrams[i].end()));
        }
    }
    // Coalesced datagrams may be of several sources, duplicate, out of order, or damaged.
    for (const std::size_t damaged : {0, 1, 3, 7, 8}) {
        std::vector<Bytes> datagrams;
        Bytes joined;
        const std::vector<std::uint64_t> sequence{4, 6, 5, 5, 900, 7, 8, 9};
        for (std::size_t i = 0; i < sequence.size(); ++i) {
            datagrams.push_back(test::sequenced_datagram(static_cast<std::uint16_t>(i % 3), sequence[i],
                                                         i == 7 ? 0 : 4, random));
            if (i == damaged) datagrams[i][0] ^= std::byte{1};
            joined.insert(joined.end(), datagrams[i].begin(), datagrams[i].end());
        }
        const Replayed replayed = replay({captures.add({{1, {1, 1}, joined}})}, {});
        const std::vector<Got>& got = replayed.delivered;
        CAPTURE(damaged);
        CHECK(replayed.malformed == (damaged < 8 ? 1 : 0));
        REQUIRE(got.size() == (damaged < 8 ? 7 : 8));
        for (std::size_t i = 0; i < got.size(); ++i) {
            const std::size_t n = i < damaged ? i : i + 1;
            const std::size_t sent = damaged < 8 ? n : i;
            CHECK(got[i].record.sequence == sequence[sent]);
            CHECK(got[i].frames == Bytes(datagrams[sent].begin() + header_bytes, datagrams[sent].end()));
        }
    }
    // In a capture of petacqd a packet is one datagram, whatever its frames look like.
    Bytes corrupt = test::sequenced_datagram(2, 5, 12, random);
    encode_header({0, 2, 6}, corrupt.data() + header_bytes + 3 * frame_bytes, FrameVersion::one);
    CHECK(replay({captures.add({{1, {1, 1}, corrupt}}, 9601, true)}, {}).delivered.size() == 1);
    CHECK(replay({captures.add({{1, {1, 1}, corrupt}}, 9601, false)}, {}).malformed == 2);
    // A single datagram stays as it is.
    const Bytes alone = test::sequenced_datagram(2, 0, 50, random);
    CHECK(joined_length(alone, FrameVersion::one) == alone.size());
}

TEST_CASE("replay: bare frames") {
    std::mt19937_64 random(7);
    Captures captures;
    const Bytes frames = test::random_bytes(16 * 20, random);
    ReceiverOptions options;
    options.framing = Framing::bare;
    const std::vector<Got> got =
        replay({captures.add({{1, {1, 5}, frames}, {2, {1, 6}, frames}})}, options).delivered;
    REQUIRE(got.size() == 2);
    CHECK(got[0].frames == frames);
    CHECK(got[1].record.port == 6);
}

TEST_CASE("replay: a truncated capture gives its whole datagrams, and the reason") {
    std::mt19937_64 random(8);
    Captures captures;
    const std::string name = captures.add(one_stream(100, 10, random));
    std::filesystem::resize_file(name, std::filesystem::file_size(name) - 1);
    const Replayed replayed = replay({name}, {});
    CHECK(replayed.delivered.size() == 99);
    CHECK(replayed.failure.find("cut") != std::string::npos);
}

TEST_CASE("replay: waits while the pool is empty, and stops meanwhile on request") {
    std::mt19937_64 random(9);
    Captures captures;
    const std::string name = captures.add(one_stream(1000, 91, random));
    CHECK(replay({name}, {}, 1).delivered.size() == 1000);

    BatchPool pool(2, 65536, make_host_memory({false, false}));
    BatchQueue queue(1, pool.count());
    Replayer replayer({name}, {}, {}, pool, queue.lane(0));
    replayer.start();
    while (pool.free_count() != 0)
        std::this_thread::yield();
    CHECK_FALSE(replayer.done());
    replayer.stop();
    CHECK(replayer.done());
}
