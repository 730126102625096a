// The hand-over of slices between the threads of the CUDA back-end. Needs no GPU.
#ifdef PETACQ_CUDA

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "gpu/cuda/handover.hpp"
#include "tests/support/catch.hpp"

using petacq::gpu::cuda::Handover;
using petacq::gpu::cuda::Owner;
using petacq::test::contains;

TEST_CASE("hand-over: every owner gets every slice, in order, with what the owner before wrote") {
    constexpr std::uint64_t depth = 4;
    constexpr std::uint64_t slices = 5000;
    constexpr std::uint64_t uploaders = 2;
    Handover handover(depth);
    std::vector<std::uint64_t> written(depth);
    std::atomic<std::uint64_t> wrong{0};
    const auto pass_all = [&](std::uint64_t first, std::uint64_t step, Owner self, Owner next) {
        for (std::uint64_t slice = first; slice < slices; slice += step) {
            if (!handover.wait(self, slice)) return;
            std::uint64_t& value = written[slice % depth];
            if (value != slice * 10 + static_cast<std::uint64_t>(self) - 1) ++wrong;
            ++value;
            handover.pass(slice, next);
        }
    };
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < uploaders; ++i)
        threads.emplace_back(pass_all, i, uploaders, Owner::uploader, Owner::driver);
    threads.emplace_back(pass_all, 0, 1, Owner::driver, Owner::deliverer);
    threads.emplace_back(pass_all, 0, 1, Owner::deliverer, Owner::joiner);
    threads.emplace_back(pass_all, 0, 1, Owner::joiner, Owner::caller);
    std::uint64_t collected = 0;
    for (std::uint64_t slice = 0; slice < slices + depth; ++slice) {
        if (slice >= depth) {
            if (!handover.wait(Owner::caller, collected)) ++wrong;
            if (written[collected % depth] != collected * 10 + 4) ++wrong;
            ++collected;
        }
        if (slice >= slices) continue;
        written[slice % depth] = slice * 10;
        handover.pass(slice, Owner::uploader);
    }
    for (std::thread& thread : threads)
        thread.join();
    CHECK(wrong == 0);
    CHECK_NOTHROW(handover.throw_if_failed());
}

TEST_CASE("hand-over: a failure ends all waiting, and the first one is told") {
    Handover handover(4);
    handover.pass(1, Owner::uploader);
    std::vector<std::thread> threads;
    std::atomic<int> ended{0};
    for (const Owner owner : {Owner::uploader, Owner::driver, Owner::deliverer, Owner::joiner})
        threads.emplace_back([&, owner] { ended += handover.wait(owner, 0) ? 0 : 1; });
    CHECK(handover.has(Owner::uploader, 1));
    CHECK_FALSE(handover.has(Owner::driver, 1));
    handover.stop("the device is gone");
    for (std::thread& thread : threads)
        thread.join();
    CHECK(ended == 4);
    handover.stop("another failure");
    CHECK_FALSE(handover.has(Owner::uploader, 1));
    CHECK_FALSE(handover.wait(Owner::uploader, 1));
    CHECK_THROWS_WITH(handover.throw_if_failed(), contains("the device is gone"));
}

TEST_CASE("hand-over: a stop is no failure") {
    Handover handover(4);
    handover.stop();
    CHECK_FALSE(handover.wait(Owner::deliverer, 0));
    CHECK_NOTHROW(handover.throw_if_failed());
}

#endif
