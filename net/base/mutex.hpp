// A mutex whose guarded members clang checks at compile time (-Wthread-safety; tools/check --lint). A member
// that a mutex guards is declared PETACQ_GUARDED_BY(mutex_); a function that must be called with it held,
// PETACQ_REQUIRES(mutex_). Other compilers see plain std::mutex.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define PETACQ_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define PETACQ_THREAD_ANNOTATION(x)
#endif
#define PETACQ_GUARDED_BY(mutex) PETACQ_THREAD_ANNOTATION(guarded_by(mutex))
#define PETACQ_REQUIRES(mutex) PETACQ_THREAD_ANNOTATION(requires_capability(mutex))

namespace petacq::net {

class PETACQ_THREAD_ANNOTATION(capability("mutex")) Mutex {
  public:
    void lock() PETACQ_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
    /// Returns false if another thread holds it.
    bool try_lock() PETACQ_THREAD_ANNOTATION(try_acquire_capability(true)) { return mutex_.try_lock(); }
    void unlock() PETACQ_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

  private:
    friend class MutexLock;
    std::mutex mutex_;
};

/// Holds the mutex until it goes out of scope; may release it meanwhile.
class PETACQ_THREAD_ANNOTATION(scoped_lockable) MutexLock {
  public:
    explicit MutexLock(Mutex& mutex) PETACQ_THREAD_ANNOTATION(acquire_capability(mutex))
        : lock_(mutex.mutex_) {}
    ~MutexLock() PETACQ_THREAD_ANNOTATION(release_capability()) = default;
    MutexLock(const MutexLock&) = delete;
    MutexLock& operator=(const MutexLock&) = delete;

    void lock() PETACQ_THREAD_ANNOTATION(acquire_capability()) { lock_.lock(); }
    void unlock() PETACQ_THREAD_ANNOTATION(release_capability()) { lock_.unlock(); }

    /// For std::condition_variable. The analysis does not look into a predicate: wait in a loop instead.
    std::unique_lock<std::mutex>& native() { return lock_; }

  private:
    std::unique_lock<std::mutex> lock_;
};

}  // namespace petacq::net
