// Runs that not every rank can read: what is known of them, and their singles, come from a rank that can.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "gpu/second_cuts.hpp"
#include "tools/petlm/mpi/communicator.hpp"
#include "tools/petlm/resort/singles/inputs.hpp"

namespace petacq::petlm {

/// One thread at a time. All functions are collective.
class Exchange {
  public:
    /// Finds out which rank can read which run. Throws UsageError, on all ranks, for a run that none can
    /// read. `follow`: the runs may still be written, or not have started; waits for a run that none can read
    /// yet.
    Exchange(Communicator& ranks, std::span<const std::filesystem::path> runs, bool follow);

    /// Opens the runs that this rank can read. Of the others it learns the documents. Of no run it knows
    /// singles.
    [[nodiscard]] Inputs open();

    /// Learns where the singles lie that have been written since the last call, and, of runs that have ended,
    /// the final documents and coverages. Throws BadInput if a run that ended as complete is not.
    void extend(Inputs& inputs);

    [[nodiscard]] bool follows() const { return follow_; }

    /// Sends and receives the singles in these ranges: [rank] what it is about to search; an empty range:
    /// nothing.
    void singles(Inputs& inputs, std::span<const gpu::TickRange> wanted);

    /// Brings seconds and tags of the runs that rank 0 cannot read to it. On rank 0 returns where those of
    /// each run lie: in the run, or in a directory under `directory`.
    [[nodiscard]] std::vector<std::filesystem::path> files(const std::filesystem::path& directory);

  private:
    [[nodiscard]] bool can_read(std::size_t run, int rank) const { return readable_[run][rank] != 0; }
    /// A rank that can read the run, another one for each `for_rank` if there are several.
    [[nodiscard]] int provider(std::size_t run, int for_rank) const;
    struct Shipped {
        std::size_t run;
        const SinglesFiles::SinglesBlock* block;
    };
    /// What one rank sends to another, which is about to search this range.
    [[nodiscard]] std::vector<Shipped> shipped(const Inputs& inputs, gpu::TickRange range, int from,
                                               int to) const;
    bool find_runs();
    void extend(Inputs& inputs, std::size_t run);

    Communicator& ranks_;
    const bool follow_;
    const std::vector<std::filesystem::path> runs_;
    std::vector<std::vector<std::uint64_t>> readable_;  ///< [run][rank]
    std::vector<std::size_t> told_;                     ///< [run] blocks that all ranks know
};

}  // namespace petacq::petlm
