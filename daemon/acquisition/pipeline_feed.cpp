#include "daemon/acquisition/pipeline_feed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <utility>

#include "daemon/system/logging.hpp"

namespace petacq::daemon {

PipelineFeed::PipelineFeed(std::unique_ptr<gpu::Pipeline> pipeline, std::uint64_t max_pending,
                           BatchExchange& batches, AcquisitionProgress& progress)
    : max_pending_(max_pending),
      batches_(batches),
      progress_(progress),
      slots_(pipeline->depth()),
      pipeline_(std::move(pipeline)) {}

/// The one place where a failure of the pipeline counts: all calls but set_calibration() go through it.
/// Returns whether the call was made and succeeded.
template <class Call>
bool PipelineFeed::attempt(Call call) {
    if (failed()) return false;
    try {
        call();
        return true;
    } catch (const std::exception& e) {
        fail(e.what());
        return false;
    }
}

bool PipelineFeed::submit(SliceContents& contents, const SliceEnd& end) {
    assert(!full());
    const std::uint64_t frames = std::exchange(contents.frames, 0);
    frames_in_flight_ += frames;
    bool taken = false;
    attempt([&] {
        assert(end.watermark >= watermark_);
        assert(!end.close_at || *end.close_at <= end.watermark);
        SubmittedSlice& slot = slots_[(oldest_ + count_) % slots_.size()];
        std::swap(slot.contents.spans, contents.spans);
        std::swap(slot.contents.batches, contents.batches);
        slot.contents.frames = frames;
        slot.end = end;
        if (count_++ == 0) busy_.start();
        progress_.submitted.add();
        watermark_ = end.watermark;
        taken = true;
        gpu::Slice slice;
        slice.id = slices_++;
        slice.spans = slot.contents.spans;
        slice.watermark = end.watermark;
        slice.close_at = end.close_at;
        slice.decide_before = end.decide_before;
        slice.ends_interval = end.second.has_value();
        slice.spectra = spectra_;
        pipeline_->submit(slice);
    });
    contents.spans.clear();
    batches_.give_back(contents.batches);
    return taken;
}

CollectedSlice* PipelineFeed::collect(bool wait) {
    if (empty()) return nullptr;
    bool ready = false;
    attempt([&] { ready = pipeline_->collect(collected_.result, wait); });
    if (!ready) return nullptr;
    SubmittedSlice& slot = slots_[oldest_];
    batches_.give_back(slot.contents.batches);
    frames_in_flight_ -= std::exchange(slot.contents.frames, 0);
    slot.contents.spans.clear();
    collected_.end = slot.end;
    oldest_ = (oldest_ + 1) % slots_.size();
    progress_.collected.add();
    if (--count_ == 0) busy_.stop();
    waiting_ = {collected_.result.pending, collected_.result.pending_tags};
    pending_high_water_ = std::max(pending_high_water_, pending());
    latest_pending_time_ = collected_.result.latest_pending_time;
    if (pending() > max_pending_) {
        fail(fmt::format(
            "{} singles and tags wait to be decided, more than pipeline.max_pending_singles and three "
            "slices allow: the "
            "clock of a source is ahead of the others, or the window and delay are too long",
            pending()));
    }
    return &collected_;
}

bool PipelineFeed::histograms(gpu::SinglesHistograms& out) {
    return attempt([&] { pipeline_->histograms(out); });
}

bool PipelineFeed::take_spectra(config::Spectra& out) {
    return attempt([&] {
        assert(empty());
        pipeline_->take_spectra(out);
    });
}

bool PipelineFeed::unit_spectra(std::uint32_t unit, gpu::UnitSpectra& out) {
    return attempt([&] { pipeline_->unit_spectra(unit, out); });
}

std::string PipelineFeed::set_calibration(const config::Calibration& calibration) {
    if (failed()) return failure_;
    assert(empty());
    try {
        pipeline_->set_calibration(calibration);
        return {};
    } catch (const std::exception& e) {
        return e.what();
    }
}

bool PipelineFeed::reset() {
    return attempt([&] {
        assert(empty());
        pipeline_->reset();
        watermark_ = 0;
        waiting_ = {};
        latest_pending_time_ = 0;
    });
}

void PipelineFeed::fail(const std::string& reason) {
    if (failed()) return;
    failure_ = "pipeline: " + reason;
    log_error("{}", failure_);
    pipeline_.reset();  // its threads may still read the batches
    for (SubmittedSlice& slot : slots_)
        batches_.give_back(slot.contents.batches);
    progress_.collected.add(count_);
    if (count_ != 0) busy_.stop();
    count_ = 0;
}

}  // namespace petacq::daemon
