// Chunks in order, made ahead by several threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/petsim/events.hpp"

namespace petacq::sim {

/// One thread takes; the order and the contents do not depend on the number of makers.
class ChunkQueue {
  public:
    /// With one thread chunks are made on the taking thread.
    ChunkQueue(const EventGenerator& generator, std::uint32_t threads);
    ~ChunkQueue();
    ChunkQueue(const ChunkQueue&) = delete;
    ChunkQueue& operator=(const ChunkQueue&) = delete;

    /// The next chunk, nullptr after the last. It stays as it is until the next call.
    const Chunk* next();

  private:
    struct Slot {
        Chunk chunk;
        bool full = false;
    };
    void make_loop();

    const EventGenerator& generator_;
    std::mutex mutex_;
    std::condition_variable made_;
    std::condition_variable taken_;
    std::vector<Slot> slots_;
    std::uint64_t next_to_make_ = 0;
    std::uint64_t next_to_take_ = 0;
    bool stopping_ = false;
    std::exception_ptr error_;
    std::vector<std::thread> threads_;
};

}  // namespace petacq::sim
