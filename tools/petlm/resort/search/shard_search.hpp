// Finds the coincidences of shards with one pipeline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/backend/backend.hpp"
#include "daemon/listmode/file_reader.hpp"
#include "gpu/pipeline.hpp"
#include "gpu/rules/coincidence_rules.hpp"
#include "tools/petlm/resort/search/shard.hpp"
#include "tools/petlm/resort/search/shard_gammas.hpp"
#include "tools/petlm/resort/singles/singles_files.hpp"

namespace petacq::petlm {

/// Reads blocks in order of time and hands their singles to the pipeline as they lie: the pipeline puts them
/// in order. Memory is bounded by the slices of the pipeline, and for a shard by its coincidences and the
/// singles that its last windows reach, and with gammas all of these. One thread at a time.
class ShardSearch {
  public:
    /// `backend`: looks for pairs alone. `slice_singles`: as PipelineOptions::max_slice_frames. `crystals`:
    /// of the scanner.
    ShardSearch(daemon::Backend backend, std::uint32_t slice_singles, const gpu::CoincidenceRules& rules,
                std::uint32_t crystals);
    ~ShardSearch();
    ShardSearch(const ShardSearch&) = delete;
    ShardSearch& operator=(const ShardSearch&) = delete;

    /// `shard` begins and ends where groups open. Singles outside of `all` do not exist: a shard that reaches
    /// its end is the last one. `seconds`: all seconds.
    ShardResult search(std::span<const SinglesFiles> runs, gpu::TickRange shard, gpu::TickRange all,
                       std::span<const gpu::TickRange> seconds);
    [[nodiscard]] std::string back_end() const { return backend_.pipeline->description(); }

  private:
    struct Submitted {
        bool counts = true;                   ///< its singles belong to the shard
        std::optional<std::uint64_t> second;  ///< whose part in the shard it ends
    };
    void read_whole(const SinglesFiles& run, const SinglesFiles::SinglesBlock& block);
    void add(std::span<const gpu::Single> singles, std::uint64_t watermark, bool counts);
    void submit_before(std::uint64_t end, Submitted what);
    void submit(std::uint64_t watermark, Submitted what, std::optional<std::uint64_t> close_at = {},
                std::optional<std::uint64_t> decide_before = {});
    void collect();

    daemon::Backend backend_;
    const std::uint32_t slice_singles_;
    const std::uint64_t reach_;  ///< of windows and delayed windows
    ShardGammas gammas_;
    std::vector<gpu::FrameSpan> spans_;
    std::vector<gpu::Single*> buffers_;  // a ring; the pipeline may read all but the one being filled
    std::size_t filling_ = 0;
    std::uint32_t filled_ = 0;
    std::deque<Submitted> submitted_;
    daemon::LoadedBlock block_;
    std::vector<gpu::Single> kept_;   // of the block
    std::vector<gpu::Single> ahead_;  // singles after the shard
    gpu::SliceResult slice_;
    ShardResult result_;
};

}  // namespace petacq::petlm
