#include <atomic>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/cpu/task_pool.hpp"
#include "tests/support/catch.hpp"

namespace {

using petacq::gpu::TaskPool;
using Priority = TaskPool::Priority;

}  // namespace

TEST_CASE("task pool: every task runs once, and then the job is done") {
    for (const std::uint32_t threads : {1U, 2U, 8U}) {
        std::string failure;
        TaskPool pool(threads, [&](const std::string& reason) { failure = reason; });
        std::vector<std::atomic<int>> runs(1000);
        std::atomic<bool> known_thread = true;
        for (int turn = 0; turn < 20; ++turn) {
            std::promise<std::size_t> done;
            TaskPool::Job job(
                [&](std::uint32_t thread, std::size_t i) {
                    if (thread >= threads) known_thread = false;
                    ++runs[i];
                },
                [&] {
                    std::size_t sum = 0;
                    for (const auto& n : runs)
                        sum += static_cast<std::size_t>(n);
                    done.set_value(sum);
                });
            pool.post(job, runs.size(), turn % 2 == 0 ? Priority::normal : Priority::urgent);
            CHECK(done.get_future().get() == runs.size() * static_cast<std::size_t>(turn + 1));
        }
        CHECK(known_thread);
        CHECK(failure.empty());
    }
}

TEST_CASE("task pool: urgent tasks go first, also within a long task that helps") {
    std::vector<std::string> order;
    std::promise<void> posted;
    std::promise<void> end;
    TaskPool pool(1, [](const std::string&) {});
    TaskPool::Job urgent([&](std::uint32_t, std::size_t) { order.emplace_back("urgent"); },
                         [&] { order.emplace_back("done"); });
    TaskPool::Job late([&](std::uint32_t, std::size_t) { order.emplace_back("late"); },
                       [&] { end.set_value(); });
    TaskPool::Job lengthy(
        [&](std::uint32_t thread, std::size_t) {
            posted.get_future().wait();
            order.emplace_back("first half");
            CHECK(pool.help(thread));
            order.emplace_back("second half");
        },
        [] {});
    pool.post(lengthy, 1, Priority::normal);
    pool.post(late, 1, Priority::normal);
    pool.post(urgent, 2, Priority::urgent);
    posted.set_value();
    end.get_future().wait();
    CHECK(
        (order == std::vector<std::string>{"urgent", "urgent", "done", "first half", "second half", "late"} ||
         order == std::vector<std::string>{"first half", "urgent", "urgent", "done", "second half", "late"}));
}

TEST_CASE("task pool: a task that throws stops the pool, and says so once") {
    std::atomic<int> failures = 0;
    std::promise<std::string> failure;
    std::atomic<bool> done = false;
    TaskPool pool(4, [&](const std::string& reason) {
        ++failures;
        failure.set_value(reason);
    });
    TaskPool::Job job(
        [&](std::uint32_t thread, std::size_t i) {
            if (i >= 3) throw std::runtime_error("out of luck");
            while (pool.help(thread)) {
            }
        },
        [&] { done = true; });
    pool.post(job, 100, Priority::normal);
    CHECK(failure.get_future().get() == "out of luck");
    pool.stop();
    CHECK(failures == 1);
    CHECK_FALSE(done);
}
