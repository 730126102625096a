// The CUDA back-end: a ring of slots, each with the frames, tables and results of one slice.
//
// The calling thread only hands over spans (submit) and takes results (collect). The back-end has three
// threads, and one more for each further device: an uploader for each device copies frames there; the driver
// launches the stages and reads the few totals that the next launch depends on; the deliverer assembles the
// results, with a few helpers for large copies.
// The first device has five streams: those of its Converter, which copy frames, make ordered singles of them
// (`prepare`) and add the histograms of collected slices to the totals; `search` finds the coincidences of
// one slice after the other, and `down` copies results. Events connect the streams, so that a slice is copied
// and prepared while others are searched.
// Slices go to the devices in turn. The uploader of a further device also launches the conversion there; the
// driver then joins the singles to those of the first device.
#include "gpu/cuda/cuda_pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <condition_variable>
#include <memory>
#include <nvtx3/nvtx3.hpp>
#include <span>
#include <thread>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/convert/converter.hpp"
#include "gpu/cuda/download.hpp"
#include "gpu/cuda/requirements.hpp"
#include "gpu/cuda/ring.hpp"
#include "gpu/cuda/slice/slot.hpp"
#include "gpu/cuda/stages.hpp"
#include "gpu/cuda/transfer/result.hpp"
#include "gpu/cuda/transfer/upload.hpp"
#include "net/base/mutex.hpp"
#include "net/base/thread.hpp"

namespace petacq::gpu {

namespace {

using cuda::check;
using cuda::Memory;
using cuda::RingSlot;
using cuda::Slot;
using cuda::Stages;
using cuda::Stream;
constexpr std::uint32_t max_copiers = 8;

/// What a device does for the pipeline: it copies and converts every n-th slice.
struct Lane {
    Lane(const PipelineOptions& options, const OwnedTables& tables, std::uint64_t max_waiting,
         std::size_t number_in_turn)
        : number(number_in_turn),
          converter(options, tables, max_waiting, Memory::Purpose::use),
          folded(number_in_turn) {}
    const std::size_t number;
    cuda::Converter converter;
    net::Mutex books_mutex;
    std::uint64_t folded PETACQ_GUARDED_BY(books_mutex);  // the next slice whose histograms are to be added
    std::jthread thread;
};

std::vector<std::unique_ptr<Lane>> make_lanes(const PipelineOptions& options, const OwnedTables& tables) {
    std::vector<std::unique_ptr<Lane>> lanes;
    for (const std::uint32_t device : options.devices) {
        const cuda::OnDevice on(static_cast<int>(device));
        // Singles wait on the first device.
        const std::uint64_t waiting = lanes.empty() ? Stages::room(options) : 0;
        lanes.push_back(std::make_unique<Lane>(options, tables, waiting, lanes.size()));
    }
    return lanes;
}

class CudaPipeline final : public Pipeline {
  public:
    /// REQUIRES: the first of options.devices is the current one.
    CudaPipeline(const PipelineOptions& options, const OwnedTables& tables, TimelineSink timeline)
        : options_(options),
          lanes_(make_lanes(options, tables)),
          stages_(options, lanes_.front()->converter),
          downloader_(options),
          copiers_(std::clamp(options.threads, 1U, max_copiers)) {
        const unsigned flags = timeline ? cudaEventDefault : cudaEventDisableTiming;
        Memory& memory = lanes_.front()->converter.memory();
        for (std::size_t i = 0; i < depth_; ++i) {
            Memory& conversion = lane_of(i).converter.memory();
            ring_.push_back(std::make_unique<RingSlot>(i, options, conversion, memory, flags));
        }
        if (timeline) times_ = std::make_unique<cuda::RingTimes>(ring_, std::move(timeline));
        description_ = describe(cuda::connect_devices(options.devices));
        try {
            for (const auto& lane : lanes_)
                start(lane->thread, "cuda upload", *lane, [this, &lane = *lane] { upload_all(lane); });
            start(driver_, "cuda driver", *lanes_.front(), [this] { drive(); });
            start(deliverer_, "cuda results", *lanes_.front(), [this] { deliver_all(); });
        } catch (...) {
            stop();
            throw;
        }
    }
    CudaPipeline(const CudaPipeline&) = delete;
    CudaPipeline& operator=(const CudaPipeline&) = delete;
    ~CudaPipeline() override {
        stop();
        for (const Stream* stream : {&search_, &down_})
            cudaStreamSynchronize(*stream);
        for (const auto& lane : lanes_)
            lane->converter.synchronize();
    }

    [[nodiscard]] std::size_t depth() const override { return depth_; }
    void submit(const Slice& slice) override {
        const nvtx3::scoped_range range{"submit"};
        if (submitted_ - collected_ == depth_) {
            throw std::logic_error("pipeline: submit with depth() slices not collected");
        }
        throw_if_failed();
        const std::size_t place = submitted_ % depth_;
        RingSlot& r = *ring_[place];
        r.slot.id = slice.id;
        r.slot.late_below = std::exchange(watermark_, slice.watermark);
        r.slot.watermark = slice.watermark;
        r.slot.close_at = slice.close_at;
        r.slot.decide_before = slice.decide_before;
        r.slot.ends_interval = slice.ends_interval;
        r.slot.spectra = slice.spectra;
        r.spans = slice.spans;
        if (times_) times_->mark(place, &SliceTimeline::submit_begin);
        {
            const net::MutexLock lock(mutex_);
            ++submitted_;
        }
        to_upload_.notify_all();
        if (times_) times_->mark(place, &SliceTimeline::submit_end);
    }

    bool collect(SliceResult& result, bool wait) override {
        if (collected_ == submitted_) return false;
        {
            net::MutexLock lock(mutex_);
            while (wait && finished_ == collected_ && failure_.empty())
                to_collect_.wait(lock.native());
            if (!failure_.empty()) throw std::runtime_error(failure_);
            if (finished_ == collected_) return false;
        }
        RingSlot& r = *ring_[collected_ % depth_];
        if (times_) times_->tell(collected_ % depth_, r);
        std::swap(result, r.slot.result);
        ++collected_;
        return true;
    }

    void histograms(SinglesHistograms& out) override {
        for (const auto& lane : lanes_)
            fold_to(*lane, collected_);
        SinglesHistograms more;
        lanes_.front()->converter.copy_histograms(out);
        for (const auto& lane : further_lanes()) {
            lane->converter.copy_histograms(more);
            out += more;
        }
    }
    void take_spectra(config::Spectra& out) override {
        require_collected("spectra");
        lanes_.front()->converter.take_spectra(out);
        config::Spectra more{{}, {}, out.calibration_sha256};
        for (const auto& lane : further_lanes()) {
            lane->converter.take_spectra(more);
            out += more;
        }
    }
    void unit_spectra(std::uint32_t unit, UnitSpectra& out) override {
        UnitSpectra more;
        lanes_.front()->converter.copy_unit_spectra(unit, out);
        for (const auto& lane : further_lanes()) {
            lane->converter.copy_unit_spectra(unit, more);
            out += more;
        }
    }
    void reset() override {
        require_collected("reset");
        // The threads are waiting for the next slice and see the change when it arrives.
        const net::MutexLock lock(mutex_);
        stages_.reset();
        order_.reset();
        tags_.reset();
        watermark_ = 0;
    }
    void set_calibration(const config::Calibration& calibration) override {
        require_collected("another calibration");
        const OwnedTables tables(options_, calibration);
        std::vector<std::unique_ptr<cuda::DeviceTables>> on_devices;
        for (const auto& lane : lanes_)
            on_devices.push_back(lane->converter.make_tables(tables));
        const net::MutexLock lock(mutex_);  // as in reset()
        for (std::size_t i = 0; i < lanes_.size(); ++i)
            lanes_[i]->converter.set_tables(std::move(on_devices[i]));
    }
    [[nodiscard]] std::uint64_t memory_bytes() const override {
        std::uint64_t bytes = 0;
        for (const auto& lane : lanes_)
            bytes += lane->converter.device_bytes() + lane->converter.memory().pinned_bytes();
        return bytes;
    }
    [[nodiscard]] std::string description() const override { return description_; }

  private:
    /// The one that a slice goes to, by number or by place in the ring, whose size is a multiple.
    [[nodiscard]] Lane& lane_of(std::uint64_t slice) const { return *lanes_[slice % lanes_.size()]; }
    [[nodiscard]] std::span<const std::unique_ptr<Lane>> further_lanes() const {
        return std::span(lanes_).subspan(1);
    }

    /// "cuda, 0 NVIDIA H100 and 1 NVIDIA H100, sort auto, 900 + 700 MiB on the devices, 90 MiB pinned".
    /// `connected`: the devices copy to the first without the host.
    [[nodiscard]] std::string describe(bool connected) const {
        std::vector<std::string> names;
        std::vector<std::uint64_t> device_mib;
        std::uint64_t pinned = 0;
        for (const auto& lane : lanes_) {
            cudaDeviceProp properties{};
            check(cudaGetDeviceProperties(&properties, lane->converter.device()), "cudaGetDeviceProperties",
                  "set-up");
            names.emplace_back(lanes_.size() == 1
                                   ? std::string(properties.name)
                                   : fmt::format("{} {}", lane->converter.device(), properties.name));
            device_mib.push_back(lane->converter.device_bytes() >> 20);
            pinned += lane->converter.memory().pinned_bytes();
        }
        return fmt::format("cuda, {}{}, sort {}, {} MiB on the device{}, {} MiB pinned",
                           fmt::join(names, " and "), connected ? "" : " (connected through the host)",
                           name_of(options_.sort_engine), fmt::join(device_mib, " + "),
                           lanes_.size() > 1 ? "s" : "", pinned >> 20);
    }

    void throw_if_failed() {
        const net::MutexLock lock(mutex_);
        if (!failure_.empty()) throw std::runtime_error(failure_);
    }

    void require_collected(const char* call) {
        if (submitted_ != collected_) {
            throw std::logic_error(fmt::format("pipeline: {} with slices that were not collected", call));
        }
        throw_if_failed();
    }

    void stop() {
        {
            const net::MutexLock lock(mutex_);
            stop_ = true;
        }
        wake_all();
        for (const auto& lane : lanes_)
            if (lane->thread.joinable()) lane->thread.join();
        for (std::jthread* thread : {&driver_, &deliverer_})
            if (thread->joinable()) thread->join();
    }

    /// Runs `work` in a thread of the back-end, on the device of `lane`, and keeps its failure for the
    /// caller.
    template <class Work>
    void start(std::jthread& thread, const char* name, const Lane& lane, Work work) {
        thread = net::start_thread(name, [this, device = lane.converter.device(), work] {
            try {
                check(cudaSetDevice(device), "cudaSetDevice", "starting");
                work();
            } catch (const std::exception& e) {
                const net::MutexLock lock(mutex_);
                if (failure_.empty()) failure_ = e.what();
            }
            wake_all();
        });
    }
    /// Adds the histograms of the lane's slices among the first `slices` to its totals. They must have been
    /// collected.
    void fold_to(Lane& lane, std::uint64_t slices) {
        const net::MutexLock lock(lane.books_mutex);
        for (; lane.folded < slices; lane.folded += lanes_.size()) {
            const RingSlot& r = *ring_[lane.folded % depth_];
            lane.converter.fold(r.slot.histograms, r.folded);
        }
    }
    void wake_all() {
        for (std::condition_variable* changed : {&to_upload_, &to_launch_, &to_deliver_, &to_collect_})
            changed->notify_all();
    }

    // Called by the uploader threads:

    void upload_all(Lane& lane) {
        for (std::uint64_t uploaded = lane.number;; uploaded += lanes_.size()) {
            {
                net::MutexLock lock(mutex_);
                while (!stop_ && submitted_ <= uploaded)
                    to_upload_.wait(lock.native());
                if (stop_) return;
            }
            // The slice that had the slot before.
            if (uploaded >= depth_) fold_to(lane, uploaded + 1 - depth_);
            RingSlot& r = *ring_[uploaded % depth_];
            const Stream& up = lane.converter.up();
            if (times_) times_->mark(r.place, &SliceTimeline::plan_begin);
            if (times_) times_->begins(r.place).upload.record(up);
            lane.converter.upload(r.spans, r.slot);
            r.uploaded.record(up);
            if (times_) times_->mark(r.place, &SliceTimeline::plan_end);
            if (r.slot.is_ahead()) convert(r, lane.converter);
            {
                const net::MutexLock lock(mutex_);
                sent_up_[lane.number] = uploaded + 1;
            }
            to_launch_.notify_one();
        }
    }

    /// Converts the slice on the device of its frames.
    void convert(RingSlot& r, cuda::Converter& converter) {
        const Stream& stream = converter.stream();
        stream.wait_for(r.uploaded);
        stream.wait_for(r.folded);
        if (times_) times_->begins(r.place).fetch.record(stream);
        cuda::fetch_table(r.slot, stream);
        if (times_) times_->begins(r.place).convert.record(stream);
        if (r.slot.is_ahead()) {
            converter.convert(r.slot, r.slot.ahead, {}, stream);
        } else {
            stages_.convert(r.slot, stream);
        }
        r.converted.record(stream);
    }

    // Called by the driver thread:

    void drive() {
        const Stream& prepare = lanes_.front()->converter.stream();
        std::uint64_t launched = 0;
        RingSlot* before = nullptr;  // the slice being searched for coincidences
        while (RingSlot* r = next(launched, before == nullptr)) {
            cuda::Converter& converter = lane_of(launched).converter;
            const bool ahead = r->slot.is_ahead();
            if (!ahead) convert(*r, converter);
            // The slice before ends first while the bus is the limit. Otherwise ordering starts first, so
            // that the device has work until the host has read the totals of the slice before.
            if (before != nullptr && !(ahead ? r->converted : r->uploaded).is_done()) {
                finish(*before);
                before = nullptr;
            }
            converter.wait(r->slot, r->converted);
            if (ahead) {
                stages_.join(r->slot, r->joined, prepare);
                r->joined.wait("joining the singles of another device");
            }
            stages_.converted(r->slot);
            if (times_) times_->begins(r->place).order.record(prepare);
            stages_.order(r->slot, prepare);
            r->ordered.record(prepare);
            if (before != nullptr) finish(*before);
            search_.wait_for(r->ordered);
            if (times_) times_->begins(r->place).find.record(search_);
            stages_.find(r->slot, search_);
            r->found.record(search_);
            ++launched;
            before = r;
            if (next(launched, false) == nullptr) {
                finish(*before);
                before = nullptr;
            }
        }
    }

    /// The next slice to launch; nullptr when there is none yet, or no more.
    RingSlot* next(std::uint64_t launched, bool wait) {
        net::MutexLock lock(mutex_);
        const std::uint64_t& sent_up = sent_up_[launched % lanes_.size()];
        while (wait && !stop_ && sent_up <= launched)
            to_launch_.wait(lock.native());
        if (stop_ || sent_up <= launched) return nullptr;
        return ring_[launched % depth_].get();
    }

    /// Waits for the coincidences of a slice and starts copying them to the host.
    void finish(RingSlot& r) {
        Slot& s = r.slot;
        r.found.wait("looking for coincidences");
        if (Stages::has_long_runs(s)) {
            stages_.order_long_runs(s, search_);
            stages_.search(s, search_);
            r.found.record(search_);
            r.found.wait("looking for coincidences");
        }
        if (times_) times_->begins(r.place).down.record(down_);
        downloader_.download(s, stages_, search_, down_);
        r.downloaded.record(down_);
        stages_.found(s);
        {
            const net::MutexLock lock(mutex_);
            ++sent_down_;
        }
        to_deliver_.notify_one();
    }

    // Called by the deliverer thread:

    void deliver_all() {
        for (std::uint64_t delivered = 0;; ++delivered) {
            {
                net::MutexLock lock(mutex_);
                while (!stop_ && failure_.empty() && sent_down_ == delivered)
                    to_deliver_.wait(lock.native());
                if (sent_down_ == delivered) return;
            }
            deliver(*ring_[delivered % depth_]);
        }
    }

    /// Waits for the copies that finish() has started and assembles the result.
    void deliver(RingSlot& r) {
        const nvtx3::scoped_range range{"deliver"};
        Slot& s = r.slot;
        r.downloaded.wait("copying results to the host");
        if (times_) times_->mark(r.place, &SliceTimeline::deliver_begin);
        SliceResult& result = s.result;
        result.id = s.id;
        cuda::take_tags(s);
        result.frames = cuda::frame_counts(s);
        if (s.ends_interval) cuda::copy_sums(s, result.sums);
        result.tag_counts = s.tags.counts;
        tags_.add(s.tags.tags);
        tags_.release(s.watermark, s.close_at, result.tags);
        tags_.describe(result);
        order_.take(s, copiers_, result.coincidences);
        const bool many = !s.many_singles.empty();
        const Single* const singles = many ? s.many_singles.data() : s.host_singles;
        cuda::fill(copiers_, many ? s.many_singles.size() : s.single_count, result.singles,
                   [=](std::size_t begin, std::size_t end, Single* to) {
                       std::copy(singles + begin, singles + end, to);
                   });
        if (times_) times_->mark(r.place, &SliceTimeline::deliver_end);
        {
            const net::MutexLock lock(mutex_);
            ++finished_;
        }
        to_collect_.notify_one();
    }

    const PipelineOptions options_;
    const std::size_t depth_ = Slot::count(options_);
    // The streams come before the memory, because freeing the memory waits for them.
    Stream search_;
    Stream down_;
    const std::vector<std::unique_ptr<Lane>> lanes_;  // in the order of options_.devices
    Stages stages_;
    std::vector<std::unique_ptr<RingSlot>> ring_;
    std::unique_ptr<cuda::RingTimes> times_;
    cuda::Downloader downloader_;
    std::string description_;
    net::WorkerPool copiers_;
    cuda::RecordOrder order_;
    WaitingTags tags_;

    std::uint64_t collected_ = 0;  // used by the caller only, like watermark_
    std::uint64_t watermark_ = 0;  // of the slice submitted last
    net::Mutex mutex_;
    std::condition_variable to_upload_, to_launch_, to_deliver_, to_collect_;
    std::uint64_t submitted_ = 0;  // the caller writes it with the mutex held, and reads it without
    // [lane] The last slice of which everything has been launched that its uploader launches, plus 1.
    std::vector<std::uint64_t> sent_up_ PETACQ_GUARDED_BY(mutex_) = std::vector<std::uint64_t>(lanes_.size());
    std::uint64_t sent_down_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::uint64_t finished_ PETACQ_GUARDED_BY(mutex_) = 0;
    std::string failure_ PETACQ_GUARDED_BY(mutex_);
    bool stop_ PETACQ_GUARDED_BY(mutex_) = false;
    std::jthread driver_;
    std::jthread deliverer_;
};

}  // namespace

std::unique_ptr<Pipeline> make_cuda_pipeline(const PipelineOptions& options,
                                             const config::Calibration& calibration) {
    return make_timed_cuda_pipeline(options, calibration, {});
}

std::unique_ptr<Pipeline> make_timed_cuda_pipeline(const PipelineOptions& wanted,
                                                   const config::Calibration& calibration,
                                                   TimelineSink timeline) {
    PipelineOptions options = wanted;
    cuda::check_options(options);
    config::check_calibration(options.geometry, calibration);
    if (const auto reason = cuda_unusable_reason(options.devices)) throw std::runtime_error(*reason);
    if (options.devices.empty()) options.devices = {cuda::current_device()};
    const OwnedTables tables(options, calibration);
    cuda::check_memory(options, tables);
    return std::make_unique<CudaPipeline>(options, tables, std::move(timeline));
}

}  // namespace petacq::gpu
