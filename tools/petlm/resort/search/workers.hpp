// Threads that search shards, whose results are used in order.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpu/second_cuts.hpp"
#include "net/base/mutex.hpp"
#include "tools/petlm/resort/search/engines.hpp"
#include "tools/petlm/resort/search/shard.hpp"
#include "tools/petlm/resort/search/shard_search.hpp"

namespace petacq::petlm {

/// Shards are taken in turn by the threads that are free. No thread is ahead of the results that were used by
/// more than two shards for each thread, so that memory stays bounded.
class Workers {
  public:
    struct Work {
        std::span<const SinglesFiles> runs;
        std::span<const gpu::TickRange> shards;  ///< as planned, one after the other
        gpu::TickRange all;       ///< no singles lie outside of it; a shard that ends there is the last one
        std::size_t from = 0;     ///< number of the first shard that is searched
        std::size_t to = 0;       ///< after the last one
        std::uint64_t begin = 0;  ///< where the first one begins
        std::span<const gpu::TickRange> seconds;
    };
    /// Starts so many threads, which wait for work. The engines must stay.
    Workers(const Engines& engines, std::size_t count);
    /// Waits for the threads to finish their shards.
    ~Workers();
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    /// What `work` refers to must stay until the results have been returned. REQUIRES: those of earlier work
    /// have been.
    void start(const Work& work);
    /// The result of the next shard. Waits for it. Throws what a worker has thrown. REQUIRES: not more calls
    /// than shards that are searched.
    ShardResult next();
    /// "4 x cpu, 1 thread". Only after next().
    [[nodiscard]] std::string description() const;

  private:
    void run(std::size_t worker);
    void work_on(std::size_t shard, ShardSearch& search);
    [[nodiscard]] std::uint64_t begin_of(std::size_t shard);

    const Engines& engines_;
    const std::size_t count_;

    mutable net::Mutex mutex_;
    std::condition_variable changed_;
    /// Changes only while no shard is searched; who searches one reads it without the mutex.
    Work work_;
    std::size_t taken_ PETACQ_GUARDED_BY(mutex_) = 0;  ///< the next shard that a worker begins
    std::size_t used_ PETACQ_GUARDED_BY(mutex_) = 0;   ///< the next shard that is returned
    /// [shard] where it begins.
    std::map<std::size_t, std::uint64_t> begins_ PETACQ_GUARDED_BY(mutex_);
    std::map<std::size_t, ShardResult> results_ PETACQ_GUARDED_BY(mutex_);
    std::exception_ptr failure_ PETACQ_GUARDED_BY(mutex_);
    bool stopping_ PETACQ_GUARDED_BY(mutex_) = false;
    std::string back_end_ PETACQ_GUARDED_BY(mutex_);
    std::vector<std::thread> threads_;
};

}  // namespace petacq::petlm
