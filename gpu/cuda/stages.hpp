// The stages of a slice on the device (convert, order, find), and the singles that stay there between slices.
//
// Between slices it keeps `carry`, ordered singles below the last watermark whose windows reach beyond it,
// and unordered pending singles above the watermark, like the CPU back-end. For each slice, call the
// functions in the order of their declaration, except search(), which find() calls. They launch work, and the
// host reads the totals between them.
// convert() or join(), converted() and order() prepare a slice: they may use a stream of their own, and be
// called while the slice before is searched, until its found(). find() must then wait for what order() has
// launched.
#pragma once

#include <cstdint>

#include "gpu/cuda/base/memory.hpp"
#include "gpu/cuda/coincidence/find.hpp"
#include "gpu/cuda/convert/converter.hpp"
#include "gpu/cuda/order/long_runs.hpp"
#include "gpu/cuda/slice/slot.hpp"

namespace petacq::gpu::cuda {

class Stages {
  public:
    /// `converter`: of the first device. Takes memory from there; if that is a plan, the stages cannot be
    /// used.
    Stages(const PipelineOptions& options, Converter& converter);
    /// The most singles on the device, and so the most that wait.
    static std::uint64_t room(const PipelineOptions& o) { return o.max_pending_singles + o.max_slice_frames; }

    /// Forgets all singles and the sums of the interval.
    void reset();

    /// Converts the frames of the slot, which must have arrived, and distributes them and the pending singles
    /// to ready and pending. Ends with a copy of the totals to slot.host_converted.
    void convert(Slot& slot, cudaStream_t stream);
    /// The same for a slice that was converted ahead, whose totals must be on the host. Records `joined` when
    /// the new totals have been copied, and fetches the singles of the other device after that.
    void join(Slot& slot, const Event& joined, cudaStream_t stream);
    /// Reads the totals. Throws std::runtime_error when more singles are pending than allowed.
    void converted(const Slot& slot);
    /// Orders the ready singles by time.
    void order(Slot& slot, cudaStream_t stream);
    /// Appends them to the carry, ordered by everything, and searches.
    void find(Slot& slot, cudaStream_t stream);
    /// Finds the coincidences, and packs them into slot.records if they fit. Ends with a copy of the totals
    /// to slot.host_found.
    void search(Slot& slot, cudaStream_t stream);
    /// Whether order_long_runs() and another search() are needed: too many singles share a time.
    [[nodiscard]] static bool has_long_runs(const Slot& slot) { return slot.host_found->long_run != 0; }
    void order_long_runs(Slot& slot, cudaStream_t stream);
    /// Writes records [low, low + slot.record_room) of one kind to records().
    void emit_part(const Slot& slot, Kind kind, std::uint64_t low, cudaStream_t stream) const;
    /// Reads the totals: counts and pending singles of the slot, the counts of the interval that it ends, and
    /// the carry. Throws std::runtime_error when more singles are pending than allowed.
    void found(Slot& slot);

    /// The sums of the interval so far, without the counts.
    [[nodiscard]] const SumArrays& sums() const { return sums_[sums_which_]; }
    /// Begins an interval, and records on `stream` that the sums have been read, so that they are not cleared
    /// earlier.
    void sums_read(cudaStream_t stream);
    /// Written by emit_part().
    [[nodiscard]] const Coincidence* records() const { return records_; }
    /// The decided singles of the slice searched last: the first host_found->decided of this array.
    [[nodiscard]] const Single* singles() const { return ordered_[which_]; }
    /// Records on `stream` that the singles have been read, so that they are not overwritten earlier.
    void singles_read(cudaStream_t stream);

  private:
    [[nodiscard]] FindArguments find_arguments(const Slot& slot) const;
    /// Where the ready singles of the next slice go, and those that it leaves waiting.
    [[nodiscard]] ConvertOutput output() const;
    [[nodiscard]] WaitingSingles waiting() const { return {pending_arrays_[pending_which_], pending_}; }

    PipelineOptions options_;
    Converter& converter_;
    int value_bits_ = 64;
    std::uint64_t room_ = 0;  // singles
    std::size_t scratch_bytes_ = 0;
    std::size_t run_scratch_bytes_ = 0;
    RunTotals* run_totals_ = nullptr;
    RunTotals* host_run_totals_ = nullptr;
    Event numbered_;

    SingleArrays ready_;
    SingleArrays sorted_[2];  // by time; of the slice being searched, and of the one prepared meanwhile
    SingleArrays pending_arrays_[2];
    TagCell* tags_ = nullptr;  // of the slice converted last
    Single* ordered_[2] = {nullptr, nullptr};
    void* order_scratch_ = nullptr;
    void* scratch_ = nullptr;         // of order_long_runs(); the lists of the search lie in it afterwards
    Coincidence* records_ = nullptr;  // of the slice searched last
    Coincidence* prompts_ = nullptr;
    Coincidence* delayeds_ = nullptr;
    FindArguments find_base_;
    Event read_[2];
    SumArrays sums_[2];  // of the interval, and of the one before
    Event sums_read_[2];

    int which_ = 0;  // of ordered_: the singles of the slice searched last
    int sorted_which_ = 0;
    int sums_which_ = 0;
    bool interval_begins_ = true;   // with the next slice
    SingleCounts interval_counts_;  // of the slices before
    int pending_which_ = 0;
    std::uint32_t count_ = 0;  // ordered singles
    std::uint32_t begin_ = 0;  // the first of them that is carried over
    std::uint32_t taken_ = 0;  // carried singles that already belong to a group
    std::uint32_t pending_ = 0;
};

}  // namespace petacq::gpu::cuda
