#include "daemon/detector/seconds_thread.hpp"

#include <chrono>
#include <exception>
#include <utility>

#include "net/base/thread.hpp"

namespace petacq::daemon {

SecondsThread::SecondsThread(const Options& options, Listener listener)
    : geometry_(options.geometry),
      listener_(std::move(listener)),
      meter_(options.geometry, options.rules, options.ticks_per_s),
      // Without prompts there is nothing to compare with those of the reference.
      watch_(options.geometry, options.ticks_per_s, options.rules.search ? options.reference : nullptr),
      thread_(net::start_thread("second sums", [this] { run(); })) {}

SecondsThread::~SecondsThread() {
    tasks_.enqueue(in_order_, {});
    thread_.join();
}

/// Its memory returns when the last reader has gone.
std::shared_ptr<Second> SecondsThread::new_second() {
    std::unique_ptr<Second> second;
    if (!spare_->try_dequeue(second)) second = std::make_unique<Second>();
    return {second.release(),
            [spare = spare_](Second* unused) { spare->enqueue(std::unique_ptr<Second>(unused)); }};
}

void SecondsThread::add(gpu::TickRange range, gpu::IntervalSums& sums, BoardReport report,
                        std::shared_ptr<const SynchronyReport> synchrony) {
    std::shared_ptr<Second> second = new_second();
    static_cast<BoardReport&>(*second) = std::move(report);
    second->range = range;
    std::swap(second->sums, sums);
    if (!room_.tryWait()) {
        if (!writing_) stalls_.add(1);
        room_.wait();
    }
    added_.add(1);
    tasks_.enqueue(in_order_, {[this, second = std::move(second), synchrony = std::move(synchrony)] {
                                   measure(second, synchrony.get());
                               },
                               &room_});
}

void SecondsThread::start_run(SecondsFile& file, std::uint64_t ticks) {
    finish([&] {
        file_ = &file;
        begin(ticks);
    });
}

void SecondsThread::start_run_again(std::uint64_t ticks) {
    finish([&] {
        file_->start_again();
        begin(ticks);
    });
}

SecondsOfRun SecondsThread::end_run() {
    SecondsOfRun run;
    finish([&] {
        run = std::exchange(of_run_, {});
        run.live = live_.mean();
        file_ = nullptr;
        watch_.end_run();
        show();
    });
    return run;
}

void SecondsThread::wait() {
    finish([] {});
}

void SecondsThread::finish(std::function<void()> work) {
    tasks_.enqueue(in_order_, {std::move(work), &finished_});
    finished_.wait();
}

std::string SecondsThread::failure() const {
    return failure_.why();
}

void SecondsThread::run() {
    for (bool failed = false;;) {
        Task task;
        tasks_.wait_dequeue(task);
        if (!task.work) return;
        try {
            if (!failed) task.work();
        } catch (const std::exception& error) {
            failed = true;
            failure_.set(error.what());
        }
        // The thread that waits for the task may use the memory of its second afterwards.
        task.work = nullptr;
        task.done->signal();
    }
}

void SecondsThread::measure(const std::shared_ptr<Second>& second, const SynchronyReport* synchrony) {
    ++taken_;
    const auto begin = std::chrono::steady_clock::now();
    meter_.complete(*second);
    watch_.observe(*second, synchrony);
    view_.pace.busy_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (file_ != nullptr) {
        note_faults(of_run_.faults, *watch_.faults());
        of_run_.total.add(*second);
        live_.add(*second, geometry_);
        writing_ = true;
        file_->append(*second);
        writing_ = false;
    }
    view_.second = second;
    show();
}

void SecondsThread::begin(std::uint64_t ticks) {
    of_run_ = {};
    live_ = {};
    watch_.start_run(ticks);
    show();
}

void SecondsThread::show() {
    view_.seconds = meter_.total();
    view_.detector_faults = watch_.faults();
    view_.pace.waiting = added_.value() - taken_;
    view_.pace.stalls = stalls_.value();
    listener_(view_);
}

}  // namespace petacq::daemon
