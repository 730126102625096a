#include "tools/petsim/simulation/chunk_queue.hpp"

namespace petacq::sim {

ChunkQueue::ChunkQueue(const EventGenerator& generator, std::uint32_t threads)
    : generator_(generator), slots_(threads > 1 ? 4UL * threads : 1) {
    if (threads <= 1) return;
    for (std::uint32_t t = 0; t < threads; ++t)
        threads_.emplace_back([this] { make_loop(); });
}

ChunkQueue::~ChunkQueue() {
    {
        const net::MutexLock lock(mutex_);
        stopping_ = true;
    }
    taken_.notify_all();
    for (auto& thread : threads_)
        thread.join();
}

const Chunk* ChunkQueue::next() {
    net::MutexLock lock(mutex_);
    if (threads_.empty()) {
        if (next_to_take_ == generator_.chunk_count()) return nullptr;
        generator_.generate(next_to_take_++, slots_[0].chunk);
        return &slots_[0].chunk;
    }
    if (next_to_take_ > 0) {
        slots_[(next_to_take_ - 1) % slots_.size()].full = false;
        taken_.notify_all();
    }
    if (next_to_take_ == generator_.chunk_count()) return nullptr;
    QueuedChunk& slot = slots_[next_to_take_ % slots_.size()];
    while (!slot.full && !error_)
        made_.wait(lock.native());
    if (error_) std::rethrow_exception(error_);
    ++next_to_take_;
    return &slot.chunk;
}

void ChunkQueue::make_loop() {
    net::MutexLock lock(mutex_);
    while (!stopping_ && !error_ && next_to_make_ < generator_.chunk_count()) {
        const std::uint64_t index = next_to_make_++;
        QueuedChunk& slot = slots_[index % slots_.size()];
        // The slot of the chunk in use is still full.
        while (!stopping_ && (slot.full || index >= next_to_take_ + slots_.size()))
            taken_.wait(lock.native());
        if (stopping_) return;
        lock.unlock();
        std::exception_ptr error;
        try {
            generator_.generate(index, slot.chunk);
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        if (error) error_ = error;
        slot.full = true;
        made_.notify_all();
    }
}

}  // namespace petacq::sim
