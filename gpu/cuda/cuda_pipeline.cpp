// The CUDA back-end: a ring of slices in flight, which pass from thread to thread (Handover) and through the
// stages: Converter and WaitingSingles, Ordering, CoincidenceSearch and OrderedGammas, ResultAssembly.
//
// The calling thread only hands over spans (submit) and takes results (collect). The back-end has three
// threads, and one more for each further device: an uploader for each device copies frames there; the driver
// launches the stages and reads the few totals that the next launch depends on; the deliverer assembles the
// results, with a few helpers for large copies. With a gamma window there is a fourth, which joins gammas and
// records meanwhile, with helpers of its own.
// The first device has five streams: those of its Converter, which copy frames, make ordered singles of them
// (`prepare`) and add the histograms of collected slices to the totals; `find` finds the coincidences of
// one slice after the other, and `down` copies results. Events connect the streams, so that a slice is copied
// and prepared while others are searched.
// Slices go to the devices in turn. The uploader of a further device also launches the conversion there; the
// driver then joins the singles to those of the first device.
#include "gpu/cuda/cuda_pipeline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nvtx3/nvtx3.hpp>
#include <span>
#include <thread>
#include <vector>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/coincidence/search.hpp"
#include "gpu/cuda/convert/converter.hpp"
#include "gpu/cuda/convert/waiting_singles.hpp"
#include "gpu/cuda/handover.hpp"
#include "gpu/cuda/order/ordering.hpp"
#include "gpu/cuda/requirements.hpp"
#include "gpu/cuda/ring.hpp"
#include "gpu/cuda/slice/device_slice.hpp"
#include "gpu/cuda/timeline.hpp"
#include "gpu/cuda/transfer/result.hpp"
#include "gpu/cuda/triples/ordered_gammas.hpp"
#include "gpu/cuda/triples/triple_assembly.hpp"
#include "net/base/mutex.hpp"
#include "net/base/thread.hpp"

namespace petacq::gpu {

namespace {

using cuda::Converter;
using cuda::DeviceSlice;
using cuda::Memory;
using cuda::Owner;
using cuda::SliceInFlight;
using cuda::Stream;
using Begins = cuda::RingTimes::Begins;

/// What a device does for the pipeline: it copies and converts every n-th slice.
struct Lane {
    Lane(const PipelineOptions& options, const OwnedTables& tables, std::uint64_t max_waiting,
         std::size_t number_in_turn)
        : number(number_in_turn),
          converter(options, tables, max_waiting, Memory::Purpose::use),
          folded(number_in_turn) {}
    const std::size_t number;
    Converter converter;
    net::Mutex books_mutex;
    std::uint64_t folded PETACQ_GUARDED_BY(books_mutex);  // the next slice whose histograms are to be added
    std::jthread thread;
};

std::vector<std::unique_ptr<Lane>> make_lanes(const PipelineOptions& options, const OwnedTables& tables) {
    std::vector<std::unique_ptr<Lane>> lanes;
    for (const std::uint32_t device : options.devices) {
        const cuda::OnDevice on(static_cast<int>(device));
        // Singles wait on the first device.
        const std::uint64_t waiting = lanes.empty() ? cuda::room_for_singles(options) : 0;
        lanes.push_back(std::make_unique<Lane>(options, tables, waiting, lanes.size()));
    }
    return lanes;
}

cuda::Ring make_ring(const PipelineOptions& options, const std::vector<std::unique_ptr<Lane>>& lanes,
                     bool timed) {
    const unsigned flags = timed ? cudaEventDefault : cudaEventDisableTiming;
    Memory& memory = lanes.front()->converter.memory();
    cuda::Ring ring;
    for (std::size_t i = 0; i < DeviceSlice::count(options); ++i) {
        Memory& conversion = lanes[i % lanes.size()]->converter.memory();
        ring.push_back(std::make_unique<SliceInFlight>(i, options, conversion, memory, flags));
    }
    return ring;
}

class CudaPipeline final : public Pipeline {
  public:
    /// REQUIRES: the first of options.devices is the current one.
    CudaPipeline(const PipelineOptions& options, const OwnedTables& tables, TimelineSink timeline)
        : options_(options),
          lanes_(make_lanes(options, tables)),
          waiting_(options, first_),
          ordering_(options, first_.memory()),
          search_(options, first_.memory(), ordering_.scratch_bytes()),
          gammas_(options, first_.memory()),
          ring_(make_ring(options, lanes_, timeline != nullptr)),
          times_(ring_, std::move(timeline)),
          assembly_(options),
          triples_(options),
          description_(describe(cuda::connect_devices(options.devices))),
          handover_(ring_.size()) {
        try {
            for (const auto& lane : lanes_)
                start(lane->thread, "cuda upload", *lane, [this, &lane = *lane] { upload_all(lane); });
            start(driver_, "cuda driver", *lanes_.front(), [this] { drive(); });
            start(deliverer_, "cuda results", *lanes_.front(), [this] { deliver_all(); });
            if (options.rules.gammas) start(joiner_, "cuda triples", *lanes_.front(), [this] { join_all(); });
        } catch (...) {
            stop();
            throw;
        }
    }
    CudaPipeline(const CudaPipeline&) = delete;
    CudaPipeline& operator=(const CudaPipeline&) = delete;
    ~CudaPipeline() override {
        stop();
        for (const Stream* stream : {&find_, &down_})
            cudaStreamSynchronize(*stream);
        for (const auto& lane : lanes_)
            lane->converter.synchronize();
    }

    [[nodiscard]] std::size_t depth() const override { return ring_.size(); }
    void submit(const Slice& slice) override {
        const nvtx3::scoped_range range{"submit"};
        if (submitted_ - collected_ == depth()) {
            throw std::logic_error("pipeline: submit with depth() slices not collected");
        }
        handover_.throw_if_failed();
        SliceInFlight& r = at(submitted_);
        r.slice.input = slice;
        r.slice.late_below = std::exchange(watermark_, slice.watermark);
        times_.mark(r, &SliceTimeline::submit_begin);
        handover_.pass(submitted_++, Owner::uploader);
        times_.mark(r, &SliceTimeline::submit_end);
    }

    bool collect(SliceResult& result, bool wait) override {
        if (collected_ == submitted_) return false;
        const bool finished =
            wait ? handover_.wait(Owner::caller, collected_) : handover_.has(Owner::caller, collected_);
        handover_.throw_if_failed();
        if (!finished) return false;
        SliceInFlight& r = at(collected_);
        times_.tell(r);
        std::swap(result, r.slice.result);
        ++collected_;
        return true;
    }

    void histograms(SinglesHistograms& out) override {
        for (const auto& lane : lanes_)
            fold_to(*lane, collected_);
        add_up(out, SinglesHistograms(), [](Converter& from, auto& to) { from.copy_histograms(to); });
    }
    void take_spectra(config::Spectra& out) override {
        require_collected("spectra");
        add_up(out, config::Spectra{{}, {}, out.calibration_sha256},
               [](Converter& from, auto& to) { from.take_spectra(to); });
    }
    void unit_spectra(std::uint32_t unit, UnitSpectra& out) override {
        add_up(out, UnitSpectra(), [&](Converter& from, auto& to) { from.copy_unit_spectra(unit, to); });
    }
    void reset() override {
        require_collected("reset");
        // The threads are waiting for the next slice and see the change when it is passed on.
        waiting_.reset();
        search_.reset();
        assembly_.reset();
        triples_.reset();
        watermark_ = 0;
    }
    void set_calibration(const config::Calibration& calibration) override {
        require_collected("another calibration");
        const OwnedTables tables(options_, calibration);
        std::vector<std::unique_ptr<cuda::DeviceTables>> on_devices;
        for (const auto& lane : lanes_)
            on_devices.push_back(lane->converter.make_tables(tables));
        for (std::size_t i = 0; i < lanes_.size(); ++i)  // as in reset()
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
    [[nodiscard]] SliceInFlight& at(std::uint64_t slice) const { return *ring_[slice % ring_.size()]; }
    /// Adds up what the devices have counted. `copy` copies it from a Converter; `more`: room for that.
    template <class Counters, class Copy>
    void add_up(Counters& out, Counters more, const Copy& copy) {
        copy(first_, out);
        for (const auto& lane : std::span(lanes_).subspan(1)) {
            copy(lane->converter, more);
            out += more;
        }
    }

    /// "cuda, 0 NVIDIA H100 and 1 NVIDIA H100, sort auto, 900 + 700 MiB on the devices, 90 MiB pinned".
    /// `connected`: the devices copy to the first without the host.
    [[nodiscard]] std::string describe(bool connected) const {
        std::vector<std::string> names;
        std::vector<std::uint64_t> device_mib;
        std::uint64_t pinned = 0;
        for (const auto& lane : lanes_) {
            cudaDeviceProp properties{};
            cuda::check(cudaGetDeviceProperties(&properties, lane->converter.device()),
                        "cudaGetDeviceProperties", "set-up");
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

    void require_collected(const char* call) {
        if (submitted_ != collected_) {
            throw std::logic_error(fmt::format("pipeline: {} with slices that were not collected", call));
        }
        handover_.throw_if_failed();
    }

    void stop() {
        handover_.stop();
        for (const auto& lane : lanes_)
            if (lane->thread.joinable()) lane->thread.join();
        for (std::jthread* thread : {&driver_, &deliverer_, &joiner_})
            if (thread->joinable()) thread->join();
    }

    /// Runs `work` in a thread of the back-end, on the device of `lane`, and keeps its failure for the
    /// caller.
    template <class Work>
    void start(std::jthread& thread, const char* name, const Lane& lane, Work work) {
        thread = net::start_thread(name, [this, device = lane.converter.device(), work] {
            try {
                cuda::check(cudaSetDevice(device), "cudaSetDevice", "starting");
                work();
            } catch (const std::exception& e) {
                handover_.stop(e.what());
            }
        });
    }
    /// Adds the histograms of the lane's slices among the first `slices` to its totals. They must have been
    /// collected.
    void fold_to(Lane& lane, std::uint64_t slices) {
        const net::MutexLock lock(lane.books_mutex);
        for (; lane.folded < slices; lane.folded += lanes_.size()) {
            const SliceInFlight& r = at(lane.folded);
            lane.converter.fold(r.slice.singles.histograms, r.folded);
        }
    }

    // Called by the uploader threads:

    void upload_all(Lane& lane) {
        for (std::uint64_t slice = lane.number; handover_.wait(Owner::uploader, slice);
             slice += lanes_.size()) {
            // Those that had its memory before have been collected.
            if (slice >= depth()) fold_to(lane, slice + 1 - depth());
            SliceInFlight& r = at(slice);
            const Stream& up = lane.converter.up();
            times_.mark(r, &SliceTimeline::plan_begin);
            times_.mark(r, &Begins::upload, up);
            lane.converter.upload(r.slice);
            r.uploaded.record(up);
            times_.mark(r, &SliceTimeline::plan_end);
            if (r.slice.singles.is_ahead()) convert(r, lane.converter);
            handover_.pass(slice, Owner::driver);
        }
    }

    /// Converts the slice on the device of its frames.
    void convert(SliceInFlight& r, Converter& converter) {
        const Stream& stream = converter.stream();
        stream.wait_for(r.uploaded);
        stream.wait_for(r.folded);
        times_.mark(r, &Begins::fetch, stream);
        cuda::fetch_table(r.slice.frames, stream);
        times_.mark(r, &Begins::convert, stream);
        if (r.slice.singles.is_ahead()) {
            converter.convert(r.slice, r.slice.singles.ahead, {}, stream);
        } else {
            waiting_.convert(r.slice, stream);
        }
        r.converted.record(stream);
    }

    // Called by the driver thread:

    void drive() {
        std::uint64_t next = 0;
        SliceInFlight* before = nullptr;  // the slice being searched for coincidences
        while (handover_.wait(Owner::driver, next)) {
            SliceInFlight& r = at(next);
            Converter& converter = lanes_[next % lanes_.size()]->converter;
            const bool ahead = r.slice.singles.is_ahead();
            if (!ahead) convert(r, converter);
            // The slice before ends first while the bus is the limit. Otherwise ordering starts first, so
            // that the device has work until the host has read the totals of the slice before.
            if (before != nullptr && !(ahead ? r.converted : r.uploaded).is_done()) {
                finish(*before);
                before = nullptr;
            }
            converter.wait(r.slice, r.converted);
            order(r);
            if (before != nullptr) finish(*before);
            find(r);
            before = &r;
            if (!handover_.has(Owner::driver, ++next)) {
                finish(r);
                before = nullptr;
            }
        }
    }

    void order(SliceInFlight& r) {
        const Stream& prepare = first_.stream();
        if (r.slice.singles.is_ahead()) {
            waiting_.join(r.slice, r.joined, prepare);
            r.joined.wait("joining the singles of another device");
        }
        waiting_.take_totals(r.slice);
        times_.mark(r, &Begins::order, prepare);
        ordering_.order(r.slice, waiting_.ready(), prepare);
        r.ordered.record(prepare);
    }

    void find(SliceInFlight& r) {
        const nvtx3::scoped_range range{"find"};
        find_.wait_for(r.ordered);
        times_.mark(r, &Begins::find, find_);
        search_.carry_over(r.slice, find_);
        gammas_.start(find_);
        ordering_.complete(r.slice, ordered(), find_);
        search_.search(r.slice, find_);
        r.found.record(find_);
    }

    [[nodiscard]] cuda::OrderedOutput ordered() const { return {search_.new_singles(), gammas_.gammas()}; }

    /// Waits for the coincidences of a slice and starts copying them to the host.
    void finish(SliceInFlight& r) {
        r.found.wait("looking for coincidences");
        if (cuda::Ordering::has_long_runs(r.slice)) {
            ordering_.complete_long_runs(r.slice, ordered(), search_.scratch(), find_);
            search_.search(r.slice, find_);
            r.found.record(find_);
            r.found.wait("looking for coincidences");
        }
        times_.mark(r, &Begins::down, down_);
        search_.download(r.slice, find_, down_);
        gammas_.download(r.slice, down_);
        r.downloaded.record(down_);
        search_.take_totals(r.slice);
        handover_.pass(r.place, Owner::deliverer);
    }

    // Called by the deliverer thread:

    void deliver_all() {
        for (std::uint64_t slice = 0; handover_.wait(Owner::deliverer, slice); ++slice) {
            const nvtx3::scoped_range range{"deliver"};
            SliceInFlight& r = at(slice);
            r.downloaded.wait("copying results to the host");
            times_.mark(r, &SliceTimeline::deliver_begin);
            assembly_.assemble(r.slice);
            times_.mark(r, &SliceTimeline::deliver_end);
            handover_.pass(slice, options_.rules.gammas ? Owner::joiner : Owner::caller);
        }
    }

    // Called by the joiner thread:

    void join_all() {
        for (std::uint64_t slice = 0; handover_.wait(Owner::joiner, slice); ++slice) {
            const nvtx3::scoped_range range{"find triples"};
            triples_.assemble(at(slice).slice);
            handover_.pass(slice, Owner::caller);
        }
    }

    const PipelineOptions options_;
    // The streams come before the memory, because freeing the memory waits for them.
    Stream find_;
    Stream down_;
    const std::vector<std::unique_ptr<Lane>> lanes_;  // in the order of options_.devices
    Converter& first_ = lanes_.front()->converter;
    cuda::WaitingSingles waiting_;
    cuda::Ordering ordering_;
    cuda::CoincidenceSearch search_;
    cuda::OrderedGammas gammas_;
    const cuda::Ring ring_;  // its size is a multiple of the number of lanes
    cuda::RingTimes times_;
    cuda::ResultAssembly assembly_;
    cuda::TripleAssembly triples_;
    const std::string description_;

    // Used by the caller only:
    std::uint64_t submitted_ = 0;
    std::uint64_t collected_ = 0;
    std::uint64_t watermark_ = 0;  // of the slice submitted last

    cuda::Handover handover_;
    std::jthread driver_;
    std::jthread deliverer_;
    std::jthread joiner_;
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
