// The pool that runs one function in parallel.
#include "net/base/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

using petacq::net::WorkerPool;

TEST_CASE("worker pool: run calls the function once for each worker", "[worker_pool]") {
    WorkerPool pool(4);
    REQUIRE(pool.size() == 4);
    for (const std::uint32_t workers : {1U, 2U, 4U, 9U}) {
        std::vector<std::atomic<int>> calls(10);
        pool.run(workers, [&](std::uint32_t worker) { ++calls[worker]; });
        for (std::uint32_t i = 0; i < calls.size(); ++i)
            CHECK(calls[i] == (i < std::min(workers, 4U) ? 1 : 0));
    }
}

TEST_CASE("worker pool: shared work is complete, and nobody works on it after the return", "[worker_pool]") {
    WorkerPool pool(4);
    for (int round = 0; round < 2000; ++round) {
        constexpr int pieces = 20;
        std::vector<std::atomic<int>> done(pieces);
        std::atomic<int> next{0};
        std::atomic<int> inside{0};
        pool.share(4, [&](std::uint32_t) {
            ++inside;
            for (int piece = 0; (piece = next++) < pieces;)
                ++done[static_cast<std::size_t>(piece)];
            --inside;
        });
        REQUIRE(inside == 0);
        for (const std::atomic<int>& piece : done)
            REQUIRE(piece == 1);
    }
}

TEST_CASE("worker pool: the return waits for a thread that has begun", "[worker_pool]") {
    WorkerPool pool(2);
    std::promise<void> begun;
    std::atomic<bool> finished{false};
    pool.share(2, [&](std::uint32_t worker) {
        if (worker == 0) {
            begun.get_future().wait();
            return;
        }
        begun.set_value();
        for (int i = 0; i < 100; ++i)
            std::this_thread::yield();
        finished = true;
    });
    CHECK(finished);
}

TEST_CASE("worker pool: the first exception reaches the caller, and the pool works on", "[worker_pool]") {
    WorkerPool pool(3);
    CHECK_THROWS_AS(pool.run(3,
                             [](std::uint32_t worker) {
                                 if (worker == 2) throw std::runtime_error("worker");
                             }),
                    std::runtime_error);
    CHECK_THROWS_AS(pool.share(3, [](std::uint32_t) { throw std::runtime_error("worker"); }),
                    std::runtime_error);
    std::atomic<int> calls{0};
    pool.run(3, [&](std::uint32_t) { ++calls; });
    CHECK(calls == 3);
}
