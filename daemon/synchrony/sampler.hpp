// Watches whether the modules are in step, from a sample of the frames in each second.
//
// The acquisition thread copies the frames of one slice or, at low rates, of some in a row, at most 2 MiB a
// second. A thread of its own converts and compares them. It judges when a sample comes in, as long as
// something is open, and begins anew when all modules are decided or the samples are many. A replay has no
// such thread: its samples are judged at once, so that a capture has one result.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "config/calibration.hpp"
#include "daemon/synchrony/synchrony.hpp"
#include "gpu/conversion_tables.hpp"
#include "gpu/pipeline.hpp"
#include "net/base/mutex.hpp"
#include "net/base/record_vector.hpp"

namespace petacq::daemon {

class SynchronyWatch {
  public:
    /// `second`: ticks. `threaded`: with a thread of its own.
    SynchronyWatch(const gpu::PipelineOptions& pipeline, const config::Calibration& calibration,
                   const SynchronyOptions& options, std::uint64_t second, bool threaded);
    ~SynchronyWatch();
    SynchronyWatch(const SynchronyWatch&) = delete;
    SynchronyWatch& operator=(const SynchronyWatch&) = delete;

    // The acquisition thread.

    /// The frames of a slice that is about to be submitted. Waits for nobody.
    void offer(std::span<const gpu::FrameSpan> spans, std::uint64_t watermark);
    /// Of the frames from now on; what is known of the earlier ones is forgotten.
    void set_calibration(const config::Calibration& calibration);

    /// Any thread. The latest; nullptr: nothing is known yet.
    [[nodiscard]] std::shared_ptr<const SynchronyReport> report() const;

  private:
    struct Sample {
        std::vector<gpu::FrameSpan> spans;  ///< their frames lie in `frames`, one after the other
        net::RecordVector<std::byte> frames;
        std::shared_ptr<const gpu::OwnedTables> tables;  ///< nullptr: no sample
    };

    void hand_over();
    void work(const std::stop_token& stopping);
    void take(const Sample& sample);
    void convert(const Sample& sample);
    template <net::FrameVersion version>
    void convert_frames(const Sample& sample);
    void judge();

    const gpu::PipelineOptions pipeline_;
    const SynchronyOptions options_;
    const std::uint64_t second_;
    const gpu::Sectors compared_;

    // Of the acquisition thread.
    std::shared_ptr<const gpu::OwnedTables> tables_;
    Sample filling_;
    std::uint64_t room_ = 0;            ///< frames that the sample may still take; 0: none is being taken
    std::uint64_t begun_ = UINT64_MAX;  ///< ticks: watermark when the latest sample was begun

    // Of the one that judges.
    std::vector<TimedSingle> hits_;
    std::shared_ptr<const gpu::OwnedTables> tables_of_hits_;
    std::size_t samples_ = 0;  ///< that `hits_` are from
    std::size_t known_ = 0;    ///< modules known when something was published last

    mutable net::Mutex mutex_;
    std::condition_variable arrived_;
    Sample waiting_ PETACQ_GUARDED_BY(mutex_);
    bool stopping_ PETACQ_GUARDED_BY(mutex_) = false;
    std::shared_ptr<const SynchronyReport> report_ PETACQ_GUARDED_BY(mutex_);
    std::jthread thread_;
};

}  // namespace petacq::daemon
