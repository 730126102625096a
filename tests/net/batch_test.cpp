#include "net/batch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

using namespace petacq::net;

TEST_CASE("a pool hands out all of its batches and then none") {
    BatchPool pool(5, 100'000, make_host_memory({}));
    CHECK(pool.count() == 5);
    CHECK(pool.free_count() == 5);
    CHECK(pool.batch_bytes() == 102'400);  // whole pages
    std::vector<Batch*> taken;
    std::set<std::byte*> places;
    while (Batch* batch = pool.take()) {
        taken.push_back(batch);
        places.insert(batch->data);
        CHECK(reinterpret_cast<std::uintptr_t>(batch->data) % 4096 == 0);
        CHECK(batch->capacity == pool.batch_bytes());
        CHECK(batch->max_datagrams == 400);
        CHECK(batch->datagrams.capacity() >= 400);
        std::fill_n(batch->data, batch->capacity, static_cast<std::byte>(taken.size()));
    }
    REQUIRE(taken.size() == 5);
    CHECK(places.size() == 5);
    CHECK(pool.free_count() == 0);
    // None overlaps another.
    for (std::size_t i = 0; i < taken.size(); ++i) {
        CHECK(taken[i]->data[0] == static_cast<std::byte>(i + 1));
        CHECK(taken[i]->data[taken[i]->capacity - 1] == static_cast<std::byte>(i + 1));
    }
    taken[3]->used = 77;
    taken[3]->datagrams.emplace_back(Datagram());
    pool.put(taken[3]);
    CHECK(pool.free_count() == 1);
    const Batch* again = pool.take();
    REQUIRE(again == taken[3]);
    CHECK(again->used == 0);
    CHECK(again->datagrams.empty());
    CHECK(pool.take() == nullptr);
}

TEST_CASE("a small batch has room for 64 datagrams") {
    BatchPool pool(1, 4096, make_host_memory({}));
    CHECK(pool.take()->max_datagrams == 64);
}

TEST_CASE("invalid sizes of a pool are refused") {
    CHECK_THROWS_AS(BatchPool(0, 4096, make_host_memory({})), std::invalid_argument);
    CHECK_THROWS_AS(BatchPool(1, 0, make_host_memory({})), std::invalid_argument);
    CHECK_THROWS_AS(BatchPool(1, std::size_t{1} << 40, make_host_memory({})), std::invalid_argument);

    struct Exhausted final : MemorySource {
        std::byte* allocate(std::size_t) override { throw std::runtime_error("no pinned memory left"); }
        [[nodiscard]] const char* description() const override { return "none"; }
    };
    CHECK_THROWS_WITH(BatchPool(1, 4096, std::make_unique<Exhausted>()), "no pinned memory left");
}

TEST_CASE("the memory describes itself") {
    const auto ordinary = make_host_memory({false, false});
    CHECK(ordinary->allocate(std::size_t{3} << 20)[1] == std::byte{0});
    const std::string pages = ordinary->description();
    CHECK((pages == "3 MiB, transparent huge pages" || pages == "3 MiB, ordinary pages"));

    // The memory is usable whether or not the system grants huge pages, and the description says which it is.
    BatchPool huge(2, std::size_t{3} << 20, make_host_memory({true, true}));
    for (int i = 0; i < 2; ++i) {
        Batch* batch = huge.take();
        std::fill_n(batch->data, batch->capacity, std::byte{1});
    }
    const std::string description = huge.memory_description();
    INFO(description);
    CHECK(description.find("6 MiB, ") == 0);
    CHECK(description.find("locked") != std::string::npos);

    const auto impossible = make_host_memory({});
    CHECK_THROWS_AS(impossible->allocate(std::size_t{1} << 60), std::runtime_error);
}

TEST_CASE("no two threads ever hold the same batch") {
    constexpr std::size_t batches = 3;
    BatchPool pool(batches, 4096, make_host_memory({false, false}));
    std::vector<std::atomic<bool>> held(batches);
    std::atomic<int> violations{0};
    std::atomic<std::uint64_t> taken{0};
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20000; ++i) {
                Batch* batch = pool.take();
                if (batch == nullptr) continue;
                if (held[batch->index].exchange(true, std::memory_order_relaxed)) ++violations;
                batch->data[0] = static_cast<std::byte>(i);  // a data race if two threads hold it
                held[batch->index].store(false, std::memory_order_relaxed);
                ++taken;
                pool.put(batch);
            }
        });
    }
    for (std::thread& t : threads)
        t.join();
    CHECK(violations == 0);
    CHECK(taken > 0);
    CHECK(pool.free_count() == batches);
    std::set<Batch*> left;
    while (Batch* batch = pool.take())
        left.insert(batch);
    CHECK(left.size() == batches);
}

TEST_CASE("a batch that is set aside belongs to one thread") {
    BatchPool pool(2, 4096, make_host_memory({false, false}));
    Batch* const own = pool.set_aside();
    CHECK(pool.free_count() == 2);
    Batch* const other = pool.take();
    CHECK(other != own);
    CHECK(pool.take() == nullptr);
    CHECK(pool.take(own) == own);
    CHECK(pool.take(own) == nullptr);
    CHECK_FALSE(pool.wait(own, std::chrono::microseconds(1)));
    CHECK(pool.waits() == 1);
    pool.put(own);
    CHECK(pool.take() == nullptr);
    CHECK(pool.wait(own, std::chrono::seconds(10)));
    CHECK(pool.take(own) == own);
    pool.put(other);
    CHECK(pool.take(own) == other);
    CHECK_FALSE(pool.is_awaited());
}

TEST_CASE("a thread that waits for a batch wakes up when one comes back") {
    BatchPool pool(1, 4096, make_host_memory({false, false}));
    for (int i = 0; i < 200; ++i) {
        Batch* const batch = pool.take();
        std::atomic<bool> found{false};
        std::thread waiting([&] { found = pool.wait(nullptr, std::chrono::minutes(1)); });
        pool.put(batch);
        waiting.join();
        CHECK(found);
    }
}

TEST_CASE("a pool has a batch to set aside for each receiver, or says so") {
    BatchPool pool(1, 4096, make_host_memory({false, false}));
    pool.set_aside();
    CHECK_THROWS_AS(pool.set_aside(), std::invalid_argument);
}
