// Linked into a special petacqd in place of daemon/backend/backend.cpp: the CPU back-end, until it fails for
// good, as a GPU does. PETACQ_TEST_FAILURE="CALL N": the N-th call of CALL (submit, collect or histograms)
// throws. PETACQ_TEST_FAILURE="CALL FILE": CALL throws once FILE exists.
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "daemon/backend/backend.hpp"
#include "daemon/backend/pipeline_options.hpp"

namespace petacq::daemon {

namespace {

class FailingPipeline final : public gpu::Pipeline {
  public:
    explicit FailingPipeline(std::unique_ptr<gpu::Pipeline> pipeline) : pipeline_(std::move(pipeline)) {
        const char* text = std::getenv("PETACQ_TEST_FAILURE");
        std::string when;
        if (text == nullptr || !(std::istringstream(text) >> call_ >> when)) {
            throw std::invalid_argument("PETACQ_TEST_FAILURE: expected a call, and a number or a file");
        }
        if (when.front() == '/') {
            file_ = when;
        } else {
            left_ = std::stoi(when);
        }
    }

    [[nodiscard]] std::size_t depth() const override { return slices_under_way; }
    void submit(const gpu::Slice& slice) override {
        fail_in("submit", slice.spans.empty());
        pipeline_->submit(slice);
        pipeline_->collect(results_.emplace_back(), true);
        polls_ = 0;
    }
    /// Results come late, as from a device: while further slices are being filled.
    bool collect(gpu::SliceResult& result, bool wait) override {
        if (results_.empty() || (!wait && results_.size() < slices_under_way && ++polls_ < 20)) return false;
        result = std::move(results_.front());
        results_.pop_front();
        fail_in("collect", result.frames.received == 0);
        return true;
    }
    void histograms(gpu::SinglesHistograms& out) override {
        fail_in("histograms", false);
        pipeline_->histograms(out);
    }
    void take_spectra(config::Spectra& out) override { pipeline_->take_spectra(out); }
    void unit_spectra(std::uint32_t unit, gpu::UnitSpectra& out) override {
        pipeline_->unit_spectra(unit, out);
    }
    void reset() override {
        refuse();
        pipeline_->reset();
    }
    void set_calibration(const config::Calibration& calibration) override {
        refuse();
        pipeline_->set_calibration(calibration);
    }
    [[nodiscard]] std::uint64_t memory_bytes() const override { return pipeline_->memory_bytes(); }
    [[nodiscard]] std::string description() const override { return "failing " + pipeline_->description(); }

  private:
    void refuse() const {
        if (failed_) throw std::runtime_error("used after it has failed");
    }
    void fail_in(const std::string& call, bool empty) {
        refuse();
        if (call != call_ || empty) return;
        if (file_.empty() ? --left_ > 0 : !std::filesystem::exists(file_)) return;
        failed_ = true;
        throw std::runtime_error(
            "CUDA: cudaEventSynchronize failed while converting frames: an illegal memory access was "
            "encountered (cudaErrorIllegalAddress)");
    }

    static constexpr std::size_t slices_under_way = 4;

    std::unique_ptr<gpu::Pipeline> pipeline_;
    std::deque<gpu::SliceResult> results_;
    int polls_ = 0;
    std::string call_;
    std::filesystem::path file_;
    int left_ = 0;
    bool failed_ = false;
};

}  // namespace

Backend make_backend(const config::Configuration& configuration, const config::Scanner& scanner,
                     const config::Calibration& calibration, std::size_t producers, gpu::Input input,
                     const net::Cores& /*near_gpu*/) {
    gpu::PipelineOptions options = pipeline_options(configuration, scanner, producers);
    options.input = input;
    Backend backend;
    backend.pipeline = std::make_unique<FailingPipeline>(gpu::make_cpu_pipeline(options, calibration));
    backend.memory = net::make_host_memory({});
    backend.choice = "a test";
    return backend;
}

std::optional<std::string> check_devices(const config::Configuration& /*configuration*/) {
    return std::nullopt;
}

unsigned usable_gpus() {
    return 0;
}

std::string gpu_address(const config::Pipeline& /*pipeline*/) {
    return "";
}

}  // namespace petacq::daemon
