// Chunks in order, made ahead by several threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

#include "net/base/mutex.hpp"
#include "tools/petsim/simulation/events/event_generator.hpp"

namespace petacq::sim {

/// One thread takes the chunks. Order and contents do not depend on the number of makers.
class ChunkQueue {
  public:
    /// With one thread chunks are made on the taking thread.
    ChunkQueue(const EventGenerator& generator, std::uint32_t threads);
    ~ChunkQueue();
    ChunkQueue(const ChunkQueue&) = delete;
    ChunkQueue& operator=(const ChunkQueue&) = delete;

    /// The next chunk, nullptr after the last. Valid until the next call.
    const Chunk* next();

  private:
    struct QueuedChunk {
        Chunk chunk;        ///< belongs to the maker, or to the taking thread once `full`
        bool full = false;  ///< guarded by mutex_
    };
    void make_loop();

    const EventGenerator& generator_;
    std::vector<QueuedChunk> slots_;
    net::Mutex mutex_;
    std::condition_variable made_;
    std::condition_variable taken_;
    std::uint64_t next_to_make_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint64_t next_to_take_ PETACQ_GUARDED_BY(mutex_) = 0;
    bool stopping_ PETACQ_GUARDED_BY(mutex_) = false;
    std::exception_ptr error_ PETACQ_GUARDED_BY(mutex_);
    std::vector<std::thread> threads_;
};

}  // namespace petacq::sim
