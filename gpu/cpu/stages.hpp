// The stages that a slice goes through on the CPU. cpu_pipeline.cpp says which thread calls them, and when.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/cpu/convert.hpp"
#include "gpu/cpu/cpu_tables.hpp"
#include "gpu/cpu/host_slice.hpp"
#include "gpu/cpu/order.hpp"
#include "gpu/cpu/spectra.hpp"
#include "gpu/cpu/task_pool.hpp"
#include "gpu/cpu/thread_histograms.hpp"
#include "gpu/tags.hpp"

namespace petacq::gpu {

/// The widths of the bins into which new chunks divide their singles (Chunk::fill).
struct BinWidths {
    unsigned singles = 0;
    unsigned gammas = 0;
};

/// Frames to chunks of singles.
class ConversionStage {
  public:
    /// A part is long enough that its histograms (ThreadHistograms) cost little.
    static constexpr std::size_t part_frames = 65'536;

    ConversionStage(const PipelineOptions& options, const config::Calibration& calibration,
                    ChunkStore& chunks);

    /// Converts one of the parts of a slice. Between chunks, the thread of this number helps the pool.
    /// `collected`: slices collected so far.
    void convert(HostSlice& slice, std::size_t part, std::uint32_t thread, TaskPool& pool,
                 std::uint64_t collected, const BinWidths& widths);
    /// The histograms of the slices below `collected`.
    void histograms(SinglesHistograms& out, std::uint64_t collected);
    /// Pipeline::set_calibration(). REQUIRES: no thread converts.
    void set_calibration(const PipelineOptions& options, const config::Calibration& calibration) {
        tables_ = std::make_unique<const HostTables>(options, calibration);
    }
    /// REQUIRES: PipelineOptions::spectra.
    [[nodiscard]] HostSpectra& spectra() { return *spectra_; }
    /// Bytes of memory that the tables and the spectra take.
    [[nodiscard]] std::uint64_t table_bytes() const {
        return tables_->bytes() + (spectra_ ? spectra_->bytes() : 0);
    }

  private:
    struct alignas(64) Thread {
        explicit Thread(const config::Geometry& geometry) : histograms(geometry) {}
        SingleBuffer converted;
        SingleBuffer gammas;
        ThreadHistograms histograms;
    };
    const config::Geometry geometry_;
    decltype(&convert_frames) convert_;
    std::unique_ptr<const HostTables> tables_;
    std::unique_ptr<HostSpectra> spectra_;  // if requested
    ChunkStore& chunks_;
    std::vector<std::unique_ptr<Thread>> threads_;
};

/// Chunks to ordered singles. One slice at a time, in order.
class OrderStage {
  public:
    OrderStage(const CoincidenceRules& rules, ChunkStore& chunks)
        : reach_(rules.reach()),
          gammas_before_(rules.gammas_before()),
          orderer_(chunks),
          gamma_orderer_(chunks) {}

    /// Takes the chunks. Returns the number of refits, which come before plan().
    std::size_t start(HostSlice& slice);
    void refit(std::size_t i);
    /// Returns the number of parts to be ordered.
    std::size_t plan(HostSlice& slice);
    void order(HostSlice& slice, std::size_t part);
    /// Finds out which of the singles are decided. The others go to the next slice.
    void finish(HostSlice& slice);

    void reset();
    /// For chunks to come. Any thread may call it.
    [[nodiscard]] BinWidths bin_widths() const { return {orderer_.bin_width(), gamma_orderer_.bin_width()}; }

  private:
    const std::uint64_t reach_;          // a window ends at most this long after its opener
    const std::uint64_t gammas_before_;  // CoincidenceRules::gammas_before
    std::uint64_t horizon_ = 0;          // of the slice before
    Orderer orderer_;
    Orderer gamma_orderer_;
    std::span<const Single> carry_;        // undecided singles, in the slice before
    std::span<const Single> gamma_carry_;  // gammas that are still needed, likewise
};

/// Ordered singles to records, and tags in order. One slice at a time, in order; but deliver() may run during
/// the next slice.
class SearchStage {
  public:
    explicit SearchStage(const PipelineOptions& options)
        : finder_(options.geometry, options.rules),
          gammas_(options.rules.gammas),
          emit_singles_(options.emit_singles),
          none_(IntervalSums::none(options.geometry)),
          sums_(options.threads, ThreadSums(options.geometry)) {}

    /// Returns the number of shares to be searched.
    std::size_t start(HostSlice& slice);
    void search(HostSlice& slice, std::size_t share, std::uint32_t thread) {
        finder_.find(slice.search, share, sums_[thread]);
        if (gammas_) find_triples(slice, slice.search.shares[share]);
    }
    /// Everything in the result but records and singles.
    void finish(HostSlice& slice);
    void deliver(HostSlice& slice) const;

    void reset();

  private:
    void find_triples(const HostSlice& slice, Search::Share& share);
    void count_gammas(HostSlice& slice);
    void take_sums(IntervalSums& out);
    void hold(std::vector<Coincidence>& records, std::uint64_t horizon);

    const CoincidenceFinder finder_;
    const std::optional<GammaRules> gammas_;
    const bool emit_singles_;
    const IntervalSums none_;
    std::vector<ThreadSums> sums_;    // [thread] since the interval began
    SingleCounts counts_;             // likewise
    GammaCounts gamma_counts_;        // likewise
    std::vector<std::uint8_t> used_;  // [gamma of the slice] it belongs to a triple
    std::size_t gammas_given_ = 0;    // of those carried over, the first were given out as singles
    std::size_t taken_ = 0;           // undecided singles that already belong to a prompt group
    std::vector<Coincidence> held_;   // records held back by the slice before
    std::uint64_t pending_ = 0;       // accepted and undecided
    std::uint64_t newest_ = 0;        // time of the newest accepted single
    WaitingTags tags_;
};

}  // namespace petacq::gpu
