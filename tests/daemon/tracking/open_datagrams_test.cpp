// Which datagrams wait for a decision on their times, for how long, and which batches they keep.
#include "daemon/tracking/open_datagrams.hpp"

#include <array>
#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq;
using namespace petacq::daemon;

namespace {

constexpr std::int64_t timeout = 1000;  // ns

/// At most two batches wait.
struct Waiting {
    OpenDatagrams open{2, timeout};
    std::array<net::Batch, 3> batches;
    std::vector<net::Batch*> held;
    std::vector<std::uint64_t> used;
    std::vector<net::Batch*> returned;

    bool hold(std::size_t batch, std::uint32_t source, std::uint64_t sequence, std::int64_t now) {
        net::Datagram datagram;
        datagram.sequence = sequence;
        datagram.frames = 5;
        Verdict verdict;
        verdict.source = source;
        verdict.open = true;
        return open.hold(&batches[batch], datagram, verdict, now, [&] { held.push_back(&batches[batch]); });
    }
    /// Sources from `still_open` on stay open.
    void release(std::int64_t now, std::uint32_t still_open) {
        open.release(
            now,
            [&](OpenDatagrams::OpenDatagram& entry) {
                entry.verdict.open = entry.verdict.source >= still_open;
            },
            [&](const OpenDatagrams::OpenDatagram& entry) { used.push_back(entry.datagram.sequence); },
            [&](net::Batch* batch) { returned.push_back(batch); });
    }
};

}  // namespace

TEST_CASE("open datagrams wait until they are decided, and are used in order", "[tracking]") {
    Waiting w;
    CHECK(w.open.empty());
    CHECK(w.hold(0, 1, 10, 0));
    CHECK(w.hold(1, 2, 11, 1));
    CHECK(w.hold(0, 1, 12, 2));
    CHECK(w.hold(1, 1, 13, 3));
    CHECK(w.held == std::vector<net::Batch*>{&w.batches[0], &w.batches[1]});
    CHECK(w.open.frames() == 20);
    w.release(4, 2);
    CHECK(w.open.frames() == 5);
    CHECK(w.used == std::vector<std::uint64_t>{10, 12, 13});
    CHECK(w.returned == std::vector<net::Batch*>{&w.batches[0]});
    CHECK_FALSE(w.open.empty());
    w.release(5, 3);
    CHECK(w.used == std::vector<std::uint64_t>{10, 12, 13, 11});
    CHECK(w.returned == std::vector<net::Batch*>{&w.batches[0], &w.batches[1]});
    CHECK(w.open.empty());
    CHECK(w.open.frames() == 0);
}

TEST_CASE("open datagrams keep a bounded number of batches", "[tracking]") {
    Waiting w;
    CHECK(w.hold(0, 1, 10, 0));
    CHECK(w.hold(1, 1, 11, 0));
    CHECK_FALSE(w.hold(2, 1, 12, 0));
    CHECK(w.hold(1, 1, 13, 0));
    w.release(1, 2);
    CHECK(w.hold(2, 1, 14, 2));
    CHECK_FALSE(OpenDatagrams(2, timeout).hold(nullptr, {}, {}, 0, [] {}));
    CHECK_FALSE(OpenDatagrams(0, timeout).hold(&w.batches[0], {}, {}, 0, [] {}));
}

TEST_CASE("a clock that stays wrong is waited for once", "[tracking]") {
    Waiting w;
    CHECK(w.hold(0, 1, 10, 0));
    CHECK(w.hold(0, 1, 11, timeout));
    w.release(timeout, 0);
    CHECK(w.used.empty());
    w.release(timeout + 1, 0);
    CHECK(w.used == std::vector<std::uint64_t>{10});
    CHECK_FALSE(w.hold(0, 1, 12, timeout + 2));
    CHECK(w.hold(0, 2, 13, timeout + 2));
    // Still wrong, and then right for the timeout.
    CHECK_FALSE(w.hold(0, 1, 14, 2 * timeout));
    CHECK_FALSE(w.hold(0, 1, 15, 3 * timeout));
    CHECK(w.hold(0, 1, 16, 4 * timeout + 1));
}
