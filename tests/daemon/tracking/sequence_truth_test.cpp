// Sequence accounting against the truth: the sender knows what it sent and what got lost on the way.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "daemon/tracking/sequence_tracker.hpp"
#include "tests/daemon/tracking/helpers.hpp"
#include "tests/support/catch.hpp"

using petacq::daemon::SequenceTracker;
using petacq::daemon::SequenceVerdict;
using petacq::test::Random;

namespace {

struct Sent {
    std::uint64_t number = 0;
    std::uint32_t content = 0;  ///< every datagram has its own
    bool end_of_stream = false;
    std::size_t epoch = 0;
    bool wild = false;  ///< its number is wrong
};

/// The datagrams that a receiver sees, in the order of arrival.
struct Traffic {
    std::vector<Sent> arrivals;
    std::size_t epochs = 0;
};

/// How a stream is sent: each of these is one in so many datagrams; 0: never.
struct Faults {
    std::uint64_t loss = 0;
    std::uint64_t burst = 0;  ///< of up to 3000 lost ones
    std::uint64_t copy = 0;   ///< late by up to 5000 datagrams, so that it may come after a restart
    std::uint64_t wild = 0;
    std::uint64_t reach = 1;  ///< a datagram is overtaken by fewer than this many
};

/// One epoch of `length` numbers. Its first and last few datagrams are neither lost nor wild.
void send_epoch(Random& random, const Faults& faults, std::uint64_t first, std::uint64_t length, bool ends,
                std::uint32_t& content, Traffic& traffic,
                std::vector<std::pair<std::uint64_t, Sent>>& copies) {
    constexpr std::uint64_t calm = 200;
    const auto strikes = [&](std::uint64_t one_in) { return one_in != 0 && random.one_in(one_in); };
    std::vector<std::pair<std::uint64_t, Sent>> stream;  // place in the stream, datagram
    for (std::uint64_t i = 0; i < length; ++i) {
        Sent sent{first + i, ++content, ends && i + 1 == length, traffic.epochs};
        const bool safe = i < calm || i + calm > length;
        if (!safe && strikes(faults.burst)) i = std::min(i + random.below(3000), length - calm);
        if (!safe && strikes(faults.loss)) continue;
        if (!safe && strikes(faults.wild)) {
            sent.number = random.one_in(2) ? random.next() : sent.number + 200 + random.below(10'000);
            sent.wild = true;
        } else {
            sent.number = first + i;
        }
        // The end of a stream comes last.
        stream.emplace_back(sent.end_of_stream ? i + faults.reach : i + random.below(faults.reach), sent);
    }
    std::stable_sort(stream.begin(), stream.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [place, sent] : stream) {
        const std::uint64_t now = traffic.arrivals.size();
        traffic.arrivals.push_back(sent);
        if (strikes(faults.copy)) copies.emplace_back(now + 1 + random.below(5000), sent);
        for (auto& copy : copies) {
            if (copy.first > now) continue;
            traffic.arrivals.push_back(copy.second);
            copy = copies.back();
            copies.pop_back();
            break;
        }
    }
    ++traffic.epochs;
}

/// The slow reference: sets of everything that has arrived.
struct Reference {
    std::map<std::size_t, std::set<std::uint64_t>> numbers;  ///< [epoch]
    std::map<std::size_t, std::set<std::uint64_t>> wild;     ///< likewise
    std::set<std::uint32_t> contents;
    std::uint64_t copies = 0;
    std::uint64_t restarts = 0;

    /// Whether the datagram is new.
    bool observe(const Sent& sent) {
        if (!contents.insert(sent.content).second) {
            ++copies;
            return false;
        }
        (sent.wild ? wild : numbers)[sent.epoch].insert(sent.number);
        return true;
    }
    /// A number that a wild one has taken has arrived. Numbers do not wrap around here.
    [[nodiscard]] std::uint64_t lost() {
        std::uint64_t lost = 0;
        for (auto& [epoch, seen] : numbers) {
            for (const std::uint64_t number : wild[epoch]) {
                if (number > *seen.begin() && number < *seen.rbegin()) seen.insert(number);
            }
            lost += *seen.rbegin() - *seen.begin() + 1 - seen.size();
        }
        return lost;
    }
};

}  // namespace

TEST_CASE("sequence accounting agrees with the truth", "[tracking]") {
    const std::uint64_t seed = GENERATE(range(1, 31));
    CAPTURE(seed);
    Random random(seed);
    const auto maybe = [&](std::uint64_t one_in) { return random.one_in(3) ? 0 : one_in; };
    Faults faults;
    faults.loss = maybe(30);
    faults.burst = maybe(4000);
    faults.copy = maybe(20);
    faults.wild = maybe(2000);
    faults.reach = std::vector<std::uint64_t>{1, 3, 20, 60}[random.below(4)];
    CAPTURE(faults.loss, faults.burst, faults.copy, faults.wild, faults.reach);

    Traffic traffic;
    std::vector<std::pair<std::uint64_t, Sent>> copies;
    std::uint32_t content = 0;
    std::uint64_t announced = 0;
    bool ended = false;
    for (std::size_t epoch = 0; epoch < 4; ++epoch) {
        if (ended) ++announced;
        ended = random.one_in(2);
        // Restarts go back: far, or into the numbers of the epoch before, where a wild number may fill a gap.
        const bool into = faults.wild == 0 && random.one_in(2);
        const std::uint64_t first = (4 - epoch) * 50'000 + (into ? 30'000 : random.below(15'000));
        send_epoch(random, faults, first, 8'000 + random.below(15'000), ended, content, traffic, copies);
    }

    SequenceTracker tracker;
    Reference truth;
    for (std::size_t i = 0; i < traffic.arrivals.size(); ++i) {
        const Sent& sent = traffic.arrivals[i];
        const bool is_new = truth.observe(sent);
        const SequenceVerdict verdict = tracker.observe(sent.number, sent.content, sent.end_of_stream);
        if (petacq::daemon::is_copy(verdict) == !is_new) continue;  // an assertion for each would take long
        INFO("datagram " << i << ", number " << sent.number << ", epoch " << sent.epoch);
        REQUIRE(petacq::daemon::is_copy(verdict) == !is_new);
    }
    CHECK(tracker.lost() == truth.lost());
    CHECK(tracker.counts().restarted == 3);
    CHECK(tracker.counts().new_streams == announced);
    CHECK(tracker.counts().accepted == truth.contents.size());
    CHECK(tracker.counts().duplicate + tracker.counts().repeated == truth.copies);
}

TEST_CASE("a reordered stream with losses and copies has an exact loss at every moment", "[tracking]") {
    const std::uint64_t seed = GENERATE(1, 2, 3, 4);
    constexpr std::uint64_t last = ~std::uint64_t{0};
    const std::uint64_t first = GENERATE(std::uint64_t{0}, last - 20'000, std::uint64_t{1} << 63);
    CAPTURE(seed, first);
    Random random(seed);
    const std::uint64_t reach = std::vector<std::uint64_t>{1, 5, 40, 60}[seed % 4];
    std::vector<std::pair<std::uint64_t, std::uint64_t>> stream;  // place in the stream, number
    std::uint64_t n = 0;
    for (std::uint64_t i = 0; i < 60'000; ++i, ++n) {
        if (random.one_in(50)) n += random.below(3);
        const auto place = n + random.below(reach);
        stream.emplace_back(place, n);
        if (random.one_in(30)) stream.emplace_back(place + random.below(12'000), n);
    }
    std::stable_sort(stream.begin(), stream.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    SequenceTracker tracker;
    std::set<std::uint64_t> seen;
    std::uint64_t highest = 0;
    for (const auto& [place, number] : stream) {
        const bool is_new = seen.insert(number).second;
        const bool late = is_new && seen.size() > 1 && number < highest;
        highest = std::max(highest, number);
        const SequenceVerdict verdict = tracker.observe(first + number);
        const SequenceVerdict expected = !is_new ? SequenceVerdict::duplicate
                                         : late  ? SequenceVerdict::reordered
                                                 : SequenceVerdict::in_order;
        const std::uint64_t lost = highest - *seen.begin() + 1 - seen.size();
        if (verdict == expected && tracker.lost() == lost) continue;
        REQUIRE(verdict == expected);
        REQUIRE(tracker.lost() == lost);
    }
    const std::uint64_t low = highest - SequenceTracker::window + 1;
    const auto remembered = static_cast<std::uint64_t>(std::distance(seen.lower_bound(low), seen.end()));
    CHECK(tracker.gaps() == SequenceTracker::window - remembered);
    CHECK(tracker.lost() > 0);
}
