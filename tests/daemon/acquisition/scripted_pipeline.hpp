// A pipeline for tests: records its input, decides all singles at once or none, and fails on request.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/pipeline.hpp"

namespace petacq::test {

/// The script of a ScriptedPipeline, and its record. Outlives it.
struct PipelineScript {
    std::size_t depth = 3;
    std::string failing_call;  ///< "submit", "collect", "histograms" or "reset"; empty: none
    int fail_at = 1;           ///< the call fails from this time on
    bool ready = true;         ///< false: results are there only for a caller that waits
    bool decides = true;       ///< false: singles stay pending until their segment is closed
    bool pairs = false;        ///< two of the singles that a slice decides are a prompt

    config::Geometry geometry;  ///< of the sums of an interval, which are 0
    gpu::SinglesHistograms histograms;
    /// The time of the frames of a span: a segment that is closed before it leaves them pending. Empty: each
    /// close decides all.
    std::function<std::uint64_t(const gpu::FrameSpan&)> time_of;
    /// Called for each span, with the watermark below which frames are late.
    std::function<void(const gpu::FrameSpan&, std::uint64_t)> on_span;

    struct Slice {
        std::uint64_t frames = 0;
        std::uint64_t watermark = 0;
        std::optional<std::uint64_t> close_at;
        std::vector<gpu::FrameSpan> spans;
        std::optional<gpu::TickRange> spectra;
    };
    std::vector<Slice> slices;
    std::vector<std::string> calibrations;  ///< set one after the other
    std::uint32_t counted = 0;              ///< frames of slices with spectra, since they were taken
    int resets = 0;
    bool failed = false;
    bool used_after_failure = false;
};

/// Fails at the n-th call of `call`; gives results only to a caller that waits unless `ready`.
inline PipelineScript failing_at(const std::string& call, int n, bool ready = true) {
    PipelineScript script;
    script.failing_call = call;
    script.fail_at = n;
    script.ready = ready;
    return script;
}

class ScriptedPipeline final : public gpu::Pipeline {
  public:
    explicit ScriptedPipeline(PipelineScript& script) : script_(script) {}

    [[nodiscard]] std::size_t depth() const override { return script_.depth; }
    void submit(const gpu::Slice& slice) override {
        may_fail("submit");
        PipelineScript::Slice seen{
            0, slice.watermark, slice.close_at, {slice.spans.begin(), slice.spans.end()}, slice.spectra};
        std::uint64_t accepted = 0;
        for (const gpu::FrameSpan& span : slice.spans) {
            seen.frames += span.count;
            if (span.time_low > span.time_high) continue;
            accepted += span.count;
            pending_[script_.time_of ? script_.time_of(span) : 0] += span.count;
        }
        if (script_.on_span)
            for (const gpu::FrameSpan& span : slice.spans)
                script_.on_span(span, watermark_);
        watermark_ = slice.close_at == UINT64_MAX ? 0 : slice.watermark;
        script_.slices.push_back(seen);
        gpu::SliceResult result;
        result.id = slice.id;
        if (slice.ends_interval) result.sums = gpu::IntervalSums::none(script_.geometry);
        if (slice.spectra) script_.counted += static_cast<std::uint32_t>(seen.frames);
        result.frames.received = seen.frames;
        result.frames.accepted = accepted;
        result.frames.time_jump = seen.frames - accepted;
        const bool decides = slice.close_at || script_.decides;
        const auto end =
            decides ? pending_.lower_bound(slice.close_at.value_or(slice.watermark)) : pending_.begin();
        for (auto single = pending_.begin(); single != end; single = pending_.erase(single))
            result.counts.decided += single->second;
        result.counts.unpaired = result.counts.decided;
        for (const auto& [time, count] : pending_)
            result.pending += count;
        if (script_.pairs && result.counts.decided >= 2) {
            result.counts.prompts = 1;
            result.counts.unpaired -= 2;
            result.coincidences.resize(1);
            result.coincidences[0].time = slice.close_at.value_or(slice.watermark);
        }
        result.latest_pending_time = pending_.empty() ? 0 : slice.watermark;
        results_.push_back(std::move(result));
    }
    bool collect(gpu::SliceResult& result, bool wait) override {
        if (!script_.ready && !wait) return false;
        if (results_.empty()) return false;
        result = std::move(results_.front());  // a back-end may fail with half a result
        results_.pop_front();
        may_fail("collect");
        return true;
    }
    void histograms(gpu::SinglesHistograms& out) override {
        may_fail("histograms");
        out = script_.histograms;
    }
    void take_spectra(config::Spectra& out) override {
        may_fail("take_spectra");
        if (!results_.empty()) throw std::logic_error("spectra with slices in flight");
        out.floods = {std::exchange(script_.counted, 0)};
    }
    void unit_spectra(std::uint32_t unit, gpu::UnitSpectra& out) override {
        out.flood = {unit, script_.counted};
    }
    void reset() override {
        may_fail("reset");
        if (!results_.empty()) throw std::logic_error("reset with slices in flight");
        ++script_.resets;
        pending_.clear();
    }
    void set_calibration(const config::Calibration& calibration) override {
        may_fail("set_calibration");
        if (!results_.empty()) throw std::logic_error("another calibration with slices in flight");
        script_.calibrations.push_back(calibration.sha256);
    }
    [[nodiscard]] std::uint64_t memory_bytes() const override { return 0; }
    [[nodiscard]] std::string description() const override { return "scripted"; }

  private:
    void may_fail(const std::string& call) {
        if (script_.failed) script_.used_after_failure = true;
        if (call != script_.failing_call || ++calls_ < script_.fail_at) return;
        script_.failed = true;
        throw std::runtime_error("lost the device");
    }

    PipelineScript& script_;
    std::deque<gpu::SliceResult> results_;
    std::map<std::uint64_t, std::uint64_t> pending_;  ///< singles by time
    std::uint64_t watermark_ = 0;
    int calls_ = 0;
};

}  // namespace petacq::test
