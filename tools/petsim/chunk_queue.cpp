#include "tools/petsim/chunk_queue.hpp"

namespace petacq::sim {

ChunkQueue::ChunkQueue(const EventGenerator& generator, std::uint32_t threads)
    : generator_(generator), slots_(threads > 1 ? 4UL * threads : 1) {
    if (threads <= 1) return;
    for (std::uint32_t t = 0; t < threads; ++t)
        threads_.emplace_back([this] { make_loop(); });
}

ChunkQueue::~ChunkQueue() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    taken_.notify_all();
    for (auto& thread : threads_)
        thread.join();
}

const Chunk* ChunkQueue::next() {
    if (threads_.empty()) {
        if (next_to_take_ == generator_.chunk_count()) return nullptr;
        generator_.generate(next_to_take_++, slots_[0].chunk);
        return &slots_[0].chunk;
    }
    std::unique_lock lock(mutex_);
    if (next_to_take_ > 0) {
        slots_[(next_to_take_ - 1) % slots_.size()].full = false;
        taken_.notify_all();
    }
    if (next_to_take_ == generator_.chunk_count()) return nullptr;
    Slot& slot = slots_[next_to_take_ % slots_.size()];
    made_.wait(lock, [&] { return slot.full || error_; });
    if (error_) std::rethrow_exception(error_);
    ++next_to_take_;
    return &slot.chunk;
}

void ChunkQueue::make_loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
        if (stopping_ || error_ || next_to_make_ == generator_.chunk_count()) return;
        const std::uint64_t index = next_to_make_++;
        Slot& slot = slots_[index % slots_.size()];
        // The chunk being used counts as not taken: its slot is still full.
        taken_.wait(lock, [&] { return stopping_ || (!slot.full && index < next_to_take_ + slots_.size()); });
        if (stopping_) return;
        lock.unlock();
        try {
            generator_.generate(index, slot.chunk);
            lock.lock();
        } catch (...) {
            lock.lock();
            error_ = std::current_exception();
        }
        slot.full = true;
        made_.notify_all();
    }
}

}  // namespace petacq::sim
