#include "tools/petlm/resort/search/workers.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "tools/petlm/resort/search/group_starts.hpp"

namespace petacq::petlm {
namespace {

/// Another worker has failed.
struct Stopped {};

}  // namespace

Workers::Workers(const Engines& engines, std::size_t count) : engines_(engines), count_(count) {
    for (std::size_t i = 0; i < count_; ++i)
        threads_.emplace_back([this, i] { run(i); });
}

Workers::~Workers() {
    {
        const net::MutexLock lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_)
        thread.join();
}

void Workers::start(const Work& work) {
    {
        const net::MutexLock lock(mutex_);
        work_ = work;
        taken_ = used_ = work.from;
        begins_ = {{work.from, work.begin}};
    }
    changed_.notify_all();
}

ShardResult Workers::next() {
    net::MutexLock lock(mutex_);
    while (!results_.contains(used_) && !failure_)
        changed_.wait(lock.native());
    if (failure_) std::rethrow_exception(failure_);
    ShardResult result = std::move(results_.extract(used_).mapped());
    ++used_;
    changed_.notify_all();
    return result;
}

std::string Workers::description() const {
    const net::MutexLock lock(mutex_);
    return threads_.size() == 1 ? back_end_ : std::to_string(threads_.size()) + " x " + back_end_;
}

void Workers::run(std::size_t worker) {
    try {
        std::unique_ptr<ShardSearch> search;
        for (;;) {
            std::size_t shard = 0;
            {
                net::MutexLock lock(mutex_);
                while (!stopping_ && (taken_ == work_.to || taken_ >= used_ + 2 * count_))
                    changed_.wait(lock.native());
                if (stopping_) return;
                shard = taken_++;
            }
            if (!search) {
                search = engines_.make_search(worker);
                const net::MutexLock lock(mutex_);
                back_end_ = search->back_end();
            }
            work_on(shard, *search);
        }
    } catch (const Stopped&) {
    } catch (...) {
        const net::MutexLock lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        stopping_ = true;
    }
    changed_.notify_all();
}

void Workers::work_on(std::size_t shard, ShardSearch& search) {
    gpu::TickRange range = work_.shards[shard];
    if (range.end < work_.all.end) {
        GroupStarts starts(work_.runs, engines_.rules, engines_.energies());
        range.end = starts.next(range, [&] { return begin_of(shard); });
        const net::MutexLock lock(mutex_);
        begins_[shard + 1] = range.end;
        changed_.notify_all();
    }
    range.start = begin_of(shard);
    ShardResult result;
    if (range.start < range.end) result = search.search(work_.runs, range, work_.all, work_.seconds);
    result.range = range;
    const net::MutexLock lock(mutex_);
    begins_.erase(shard);
    results_.emplace(shard, std::move(result));
    changed_.notify_all();
}

std::uint64_t Workers::begin_of(std::size_t shard) {
    net::MutexLock lock(mutex_);
    while (!begins_.contains(shard)) {
        if (stopping_) throw Stopped();
        changed_.wait(lock.native());
    }
    return begins_.at(shard);
}

}  // namespace petacq::petlm
