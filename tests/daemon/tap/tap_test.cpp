// Which records of a run the clients of the tap get.
#include "daemon/tap/tap.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/tap/server.hpp"
#include "tests/daemon/tap/tap_client.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;
using nlohmann::json;

namespace {

gpu::Coincidence pair_number(std::uint64_t i) {
    return {1000 + i, static_cast<std::uint32_t>(i % 7), 1, 2, 511.0F, 500.5F, gpu::Kind::prompt};
}

gpu::SliceResult slice(std::uint64_t first, std::uint64_t pairs, std::uint64_t singles = 0) {
    gpu::SliceResult result;
    for (std::uint64_t i = 0; i < pairs; ++i)
        result.coincidences.push_back(pair_number(first + i));
    for (std::uint64_t i = 0; i < singles; ++i)
        result.singles.push_back({2000 + i, static_cast<std::uint32_t>(i), 400.0F});
    return result;
}

template <class Record>
std::vector<Record> records_in(const std::string& payload) {
    std::vector<Record> records(payload.size() / sizeof(Record));
    std::memcpy(static_cast<void*>(records.data()), payload.data(), records.size() * sizeof(Record));
    return records;
}

bool same_bytes(const gpu::Coincidence& a, const gpu::Coincidence& b) {
    using Bytes = std::array<std::byte, sizeof(gpu::Coincidence)>;
    return std::bit_cast<Bytes>(a) == std::bit_cast<Bytes>(b);
}

struct Served {
    TemporaryDirectory directory;
    std::filesystem::path path = directory / "tap.sock";
    Tap tap;
    TapServer server{tap, {"ring \"7\"", 15.625, 1000, true, true, true}, {path, 0660, {}, 3}};
    TapClientForTest client{path};
};

}  // namespace

TEST_CASE("tap: the answer describes the records", "[tap]") {
    Served served;
    const json pairs = served.client.ask({{"kind", "coincidences"}, {"prescale", 5}});
    CHECK(pairs["format"] == "petacqd tap");
    CHECK(pairs["version"] == 1);
    CHECK(pairs["kind"] == "coincidences");
    CHECK(pairs["prescale"] == 5);
    CHECK(pairs["record_bytes"] == 32);
    CHECK(pairs["fields"].dump() == R"([["time","<u8"],["dt","<u4"],["crystal_a","<u4"],["crystal_b","<u4"],)"
                                    R"(["energy_a","<f4"],["energy_b","<f4"],["kind","<u4"]])");
    CHECK(pairs["tick_ps"] == 15.625);
    CHECK(pairs["crystals"] == 1000);
    CHECK(pairs["scanner"] == "ring \"7\"");

    TapClientForTest other(served.path);
    const json singles = other.ask({{"kind", "singles"}});
    CHECK(singles["prescale"] == 1);
    CHECK(singles["record_bytes"] == 16);
    CHECK(singles["fields"].dump() == R"([["time","<u8"],["crystal","<u4"],["energy","<f4"]])");
    TapClientForTest third(served.path);
    const json triples = third.ask({{"kind", "triples"}});
    CHECK(triples["record_bytes"] == 48);
    std::vector<json> fields = pairs["fields"];
    for (const auto& [name, type] :
         {std::pair{"gamma_dt", "<i4"}, {"gamma_crystal", "<u4"}, {"gamma_energy", "<f4"}, {"third", "<u4"}})
        fields.push_back({name, type});
    CHECK(triples["fields"] == json(fields));
    CHECK(served.tap.statistics().accepted == 3);
}

TEST_CASE("tap: a client gets every N-th triple", "[tap]") {
    Served served;
    TapClientForTest some(served.path);
    served.client.ask({{"kind", "triples"}});
    some.ask({{"kind", "triples"}, {"prescale", 3}});
    std::string all;
    std::string every_third;
    served.tap.begin_run("r");
    // More than the prescaled records that are copied at once, and slices with none.
    for (const std::uint64_t count : {1, 0, 400, 2}) {
        gpu::SliceResult result = slice(all.size(), count);
        for (std::uint64_t i = 0; i < count; ++i) {
            const gpu::Triple triple{result.coincidences[i], -static_cast<std::int32_t>(i), 7, 1157.5F,
                                     gpu::ThirdPhoton::delayed};
            result.triples.push_back(triple);
            const std::string bytes(reinterpret_cast<const char*>(&triple), sizeof triple);
            if (all.size() / sizeof triple % 3 == 0) every_third += bytes;
            all += bytes;
        }
        served.tap.offer(result);
    }
    served.tap.end_run();
    CHECK(served.client.records_of_run() == all);
    CHECK(some.records_of_run() == every_third);
}

TEST_CASE("tap: each client gets every N-th record of its kind, run by run", "[tap]") {
    Served served;
    TapClientForTest all_singles(served.path);
    TapClientForTest many(served.path);
    served.client.ask({{"kind", "coincidences"}, {"prescale", 7}});
    all_singles.ask({{"kind", "singles"}});
    many.ask({{"kind", "coincidences"}});
    const auto run = [&](const std::string& id, const std::vector<std::uint64_t>& slices) {
        served.tap.begin_run(id);
        std::uint64_t first = 0;
        for (const std::uint64_t pairs : slices) {
            served.tap.offer(slice(first, pairs, 3));
            first += pairs;
        }
        served.tap.end_run();
        return first;
    };
    std::uint64_t number = 0;
    for (const auto& slices : std::vector<std::vector<std::uint64_t>>{{1, 0, 5, 1, 1, 30, 9'999}, {0, 8}}) {
        ++number;
        const std::string id = "run-" + std::to_string(number);
        const std::uint64_t pairs = run(id, slices);
        const auto started = served.client.next();
        REQUIRE(started);
        CHECK(started->type == 1);
        CHECK(started->run == number);
        CHECK(started->payload == id);
        std::uint64_t next = 0;
        for (auto m = served.client.next(); m && m->type != 3; m = served.client.next()) {
            REQUIRE(m->type == 2);
            CHECK(m->run == number);
            CHECK(m->first_record == next);
            CHECK(m->dropped == 0);
            const auto records = records_in<gpu::Coincidence>(m->payload);
            REQUIRE(records.size() == m->records);
            CHECK(m->first_time == records.front().time);
            CHECK(m->last_time == records.back().time);
            for (const gpu::Coincidence& record : records) {
                const gpu::Coincidence expected = pair_number(next);
                REQUIRE(same_bytes(record, expected));
                next += 7;
            }
        }
        CHECK(next == (pairs + 6) / 7 * 7);
        const auto singles = records_in<gpu::Single>(all_singles.records_of_run());
        CHECK(singles.size() == 3 * slices.size());
        CHECK(records_in<gpu::Coincidence>(many.records_of_run()).size() == pairs);
    }
    CHECK(eventually([&] { return served.tap.statistics().sent >= 10'037 + 8; }));
    CHECK(served.tap.statistics().dropped == 0);
    CHECK(served.tap.statistics().clients == 3);
}

TEST_CASE("tap: a client that connects during a run gets the rest of it, with the same records", "[tap]") {
    Served served;
    served.tap.begin_run("r");
    served.tap.offer(slice(0, 100));
    served.client.ask({{"kind", "coincidences"}, {"prescale", 10}});
    REQUIRE(served.client.next()->payload == "r");
    served.tap.offer(slice(100, 55));
    const auto m = served.client.next();
    CHECK(m->first_record == 100);
    CHECK(m->records == 6);
    served.tap.offer(slice(155, 10));
    CHECK(served.client.next()->first_record == 160);
    served.tap.end_run();
    CHECK(served.client.next()->type == 3);
    // A client that comes after the run learns nothing of it.
    TapClientForTest late(served.path);
    late.ask({{"kind", "coincidences"}});
    served.tap.begin_run("next");
    CHECK(late.next()->payload == "next");
}

TEST_CASE("tap: who subscribed before a run gets its first records, whatever other threads ask meanwhile",
          "[tap]") {
    Tap tap;
    std::vector<std::jthread> asking;
    for (int i = 0; i < 4; ++i) {
        asking.emplace_back([&](const std::stop_token& stopping) {
            while (!stopping.stop_requested())
                static_cast<void>(tap.latest_run());
        });
    }
    std::vector<std::byte> buffer(TapSubscription::piece_bytes);
    for (int run = 0; run < 50; ++run) {
        const auto subscription = tap.subscribe(RecordKind::coincidences, 1);
        tap.begin_run("r");
        tap.offer(slice(0, 3));
        tap.end_run();
        REQUIRE(subscription->take(buffer).records == 3);
        tap.unsubscribe(subscription);
    }
}

TEST_CASE("tap: what a client does not take is dropped and counted, and the rest is right", "[tap]") {
    Served served;
    served.client.ask({{"kind", "coincidences"}});
    constexpr std::uint64_t slices = 400;
    constexpr std::uint64_t pairs = 5000;  // 64 MB in all; buffers hold about 8
    served.tap.begin_run("flood");
    for (std::uint64_t i = 0; i < slices; ++i)
        served.tap.offer(slice(i * pairs, pairs));
    served.tap.end_run();
    const std::uint64_t dropped = served.tap.statistics().dropped;
    CHECK(dropped > slices * pairs / 2);
    REQUIRE(served.client.next()->type == 1);
    std::uint64_t got = 0;
    std::uint64_t next = 0;
    auto m = served.client.next();
    for (; m && m->type == 2; m = served.client.next()) {
        CHECK(m->first_record == got + m->dropped);
        CHECK(m->first_record >= next);
        const auto records = records_in<gpu::Coincidence>(m->payload);
        for (std::uint64_t i = 0; i < records.size(); ++i) {
            const gpu::Coincidence expected = pair_number(m->first_record + i);
            REQUIRE(same_bytes(records[i], expected));
        }
        next = m->first_record + m->records;
        got += m->records;
    }
    REQUIRE(m);
    CHECK(m->type == 3);
    CHECK(m->dropped == dropped);
    CHECK(got + dropped == slices * pairs);
    CHECK(eventually([&] { return served.tap.statistics().sent == got; }));
}

TEST_CASE("tap: a client that leaves frees its place", "[tap]") {
    Served served;
    served.tap.begin_run("r");
    for (int i = 0; i < 20; ++i) {
        TapClientForTest client(served.path);
        REQUIRE(client.ask({{"kind", "coincidences"}}).contains("format"));
        served.tap.offer(slice(0, 100));
        if (i % 2 == 0) client.next();
        if (i % 3 == 0) client.finish_sending();
    }
    CHECK(eventually([&] { return served.tap.statistics().clients == 0; }));
    for (int i = 0; i < 100; ++i)  // twice what a buffer holds
        served.tap.offer(slice(0, 5000));
    CHECK(served.tap.statistics().dropped == 0);
    CHECK(served.client.ask({{"kind", "coincidences"}}).contains("format"));
    CHECK(served.tap.statistics().accepted == 21);
}

TEST_CASE("tap: a client that has finished sending is served", "[tap]") {
    Served served;
    served.client.ask({{"kind", "coincidences"}});
    served.client.finish_sending();
    served.tap.begin_run("r");
    served.tap.offer(slice(0, 10));
    served.tap.end_run();
    CHECK(served.client.records_of_run().size() == 320);
}

TEST_CASE("tap: the server closes its clients, also one that does not read", "[tap]") {
    Served served;
    TapClientForTest stuck(served.path);
    stuck.ask({{"kind", "coincidences"}});
    served.tap.begin_run("r");
    served.tap.offer(slice(0, 100'000));  // more than the socket takes
    served.client.ask({{"kind", "singles"}});
    CHECK(served.client.next()->payload == "r");
    served.server.close();
    CHECK(served.client.at_end());
    CHECK_FALSE(std::filesystem::exists(served.path));
}
