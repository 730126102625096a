// Finds the triples of the records of a slice, on the host.
//
// Gammas are few, and so are the pairs that have one: the device only puts gammas in order. Threads that
// would otherwise wait for copies join them with the records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/cuda/slice/device_slice.hpp"
#include "net/base/worker_pool.hpp"

namespace petacq::gpu::cuda {

/// Takes the slices in order. No thread-safety.
class TripleAssembly {
  public:
    explicit TripleAssembly(const PipelineOptions& options);

    /// Adds to slice.result the triples of its coincidences, which must be complete, the counts of gammas,
    /// and the gammas that wait. Returns the gammas that belong to its singles, in order, which are valid
    /// until the next call and as long as the slice.
    std::span<const Single> assemble(DeviceSlice& slice, net::WorkerPool& workers);
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
    void find(std::span<const Coincidence> pairs, std::span<const Single> gammas, net::WorkerPool& workers);
    void join(RecordVector<Triple>& triples, net::WorkerPool& workers);

    const std::optional<GammaRules> rules_;
    const std::uint64_t before_;      // a gamma comes at most this long before its pair
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
