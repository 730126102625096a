// Finds the triples of the records of a slice, on the host.
//
// Gammas are few, and so are the pairs that have one: the device only puts gammas in order, and threads of
// the host join them with the records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/cuda/slice/device_slice.hpp"
#include "net/base/worker_pool.hpp"

namespace petacq::gpu::cuda {

/// Takes the slices in order, after ResultAssembly. No thread-safety.
class TripleAssembly {
  public:
    /// Up to eight of PipelineOptions::threads take part. Without a gamma window it cannot be used.
    explicit TripleAssembly(const PipelineOptions& options);

    /// Adds to slice.result the triples of its coincidences, the counts of gammas, the gammas that wait, and
    /// the singles with the gammas of their time.
    void assemble(DeviceSlice& slice);
    /// Forgets gammas and the counts of the interval.
    void reset();

  private:
    /// The triples of some records.
    struct Piece {
        std::vector<Triple> triples;
        std::size_t before = 0;  // triples of the pieces before
        GammaCounts counts;
    };
    [[nodiscard]] std::span<const Single> join_carried(SliceGammas& gammas);
    void find(std::span<const Coincidence> pairs, std::span<const Single> gammas);
    void join(RecordVector<Triple>& triples);
    void merge(std::span<const Single> singles, std::span<const Single> gammas, RecordVector<Single>& out);

    const GammaRules rules_;
    const std::uint64_t before_;  // a gamma comes at most this long before its pair
    const bool emit_singles_;
    net::WorkerPool workers_;
    RecordVector<Single> carried_;    // gammas of earlier slices that pairs still to come may use
    RecordVector<Single> joined_;     // with those of the slice, when they are many
    std::vector<std::uint8_t> used_;  // [gamma] it belongs to a triple
    std::vector<Piece> pieces_;
    std::size_t piece_count_ = 0;
    std::size_t given_ = 0;      // of those carried over: returned by assemble() already
    std::uint64_t waiting_ = 0;  // gammas that are not counted yet
    GammaCounts counts_;         // of the interval
};

}  // namespace petacq::gpu::cuda
