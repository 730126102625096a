#include "gpu/cuda/triples/triple_assembly.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "gpu/cuda/base/fill.hpp"
#include "gpu/rules/record_order.hpp"
#include "gpu/triples/triple_search.hpp"

namespace petacq::gpu::cuda {

namespace {

constexpr std::size_t piece_pairs = std::size_t{2} << 10;

std::size_t count_below(std::span<const Single> gammas, std::uint64_t time) {
    const auto end =
        std::partition_point(gammas.begin(), gammas.end(), [=](const Single& g) { return g.time < time; });
    return static_cast<std::size_t>(end - gammas.begin());
}

}  // namespace

TripleAssembly::TripleAssembly(const PipelineOptions& o)
    : rules_(o.rules.gammas.value_or(GammaRules())),
      before_(o.rules.search ? rules_.before : 0),
      emit_singles_(o.emit_singles),
      workers_(o.rules.gammas ? fill_threads(o.threads) : 1) {}

void TripleAssembly::assemble(DeviceSlice& slice) {
    SliceResult& result = slice.result;
    const std::span<const Single> all = join_carried(slice.gammas);
    waiting_ += slice.gammas.count;

    const Slice& input = slice.input;
    const std::span<const Single> of_segment =
        all.first(input.close_at && !input.is_everything() ? count_below(all, *input.close_at) : all.size());
    used_.resize(of_segment.size());  // what it has already is of the gammas carried over
    find(result.coincidences, of_segment);
    join(result.triples);

    const std::uint64_t horizon = slice.records.horizon;
    const bool ends = input.ends_segment();
    const std::size_t decided = ends ? of_segment.size() : count_below(of_segment, horizon);
    const std::size_t done =
        ends ? of_segment.size() : count_below(of_segment, horizon - std::min(horizon, before_));
    GammaCounts& counts = result.gamma_counts;
    counts = {};
    for (const Piece& piece : std::span(pieces_).first(piece_count_))
        counts += piece.counts;
    const auto used_end = used_.begin() + static_cast<std::ptrdiff_t>(done);
    counts.unused = static_cast<std::uint64_t>(std::count(used_.begin(), used_end, 0));
    used_.erase(used_.begin(), used_end);
    carried_.assign(all.begin() + static_cast<std::ptrdiff_t>(done), all.end());
    counts_ += counts;
    if (input.ends_interval) result.sums.gammas = std::exchange(counts_, {});
    waiting_ -= counts.gammas();
    result.pending += waiting_;
    if (waiting_ > 0) result.latest_pending_time = std::max(result.latest_pending_time, slice.records.newest);
    const std::size_t first_new = std::exchange(given_, decided - done);
    if (emit_singles_)
        merge(slice.records.singles(), of_segment.first(decided).subspan(first_new), result.singles);
}

/// The gammas carried over and those of the slice, which stay where they are if the others fit before them.
std::span<const Single> TripleAssembly::join_carried(SliceGammas& gammas) {
    const std::size_t count = carried_.size() + gammas.count;
    if (carried_.size() <= SliceGammas::lead) {
        Single* const first = gammas.first() - carried_.size();
        std::ranges::copy(carried_, first);
        return {first, count};
    }
    joined_.assign(carried_.begin(), carried_.end());
    joined_.insert(joined_.end(), gammas.first(), gammas.first() + gammas.count);
    return joined_;
}

/// Finds the triples of the pairs, piece by piece.
void TripleAssembly::find(std::span<const Coincidence> pairs, std::span<const Single> gammas) {
    piece_count_ = (pairs.size() + piece_pairs - 1) / piece_pairs;
    if (pieces_.size() < piece_count_) pieces_.resize(piece_count_);
    std::atomic<std::size_t> next{0};
    const auto threads =
        static_cast<std::uint32_t>(std::clamp<std::size_t>(piece_count_, 1, workers_.size()));
    workers_.share(threads, [&](std::uint32_t /*thread*/) {
        for (std::size_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < piece_count_;) {
            Piece& piece = pieces_[i];
            piece.triples.clear();
            piece.counts = {};
            const std::size_t first = i * piece_pairs;
            find_triples(pairs.subspan(first, std::min(piece_pairs, pairs.size() - first)), gammas, rules_,
                         used_, piece.triples, piece.counts);
        }
    });
}

/// Puts the triples of the pieces one behind the other.
void TripleAssembly::join(RecordVector<Triple>& triples) {
    std::size_t count = 0;
    for (Piece& piece : std::span(pieces_).first(piece_count_)) {
        piece.before = count;
        count += piece.triples.size();
    }
    const auto next_piece = [&](std::size_t at) {
        return std::upper_bound(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(piece_count_),
                                at, [](std::size_t place, const Piece& p) { return place < p.before; });
    };
    fill(workers_, count, triples, [&](std::size_t begin, std::size_t end, Triple* to) {
        for (auto next = next_piece(begin); begin < end; ++next) {
            const Piece& piece = *(next - 1);
            const std::span<const Triple> rest = std::span(piece.triples).subspan(begin - piece.before);
            const std::span<const Triple> part = rest.first(std::min(rest.size(), end - begin));
            to = std::ranges::copy(part, to).out;
            begin += part.size();
        }
    });
}

/// Merges decided singles with the gammas of their time.
void TripleAssembly::merge(std::span<const Single> singles, std::span<const Single> gammas,
                           RecordVector<Single>& out) {
    const auto order = [](const Single& a, const Single& b) { return before(a, b); };
    // Singles among the first `count` of both.
    const auto singles_of = [&](std::size_t count) {
        std::size_t low = count - std::min(count, gammas.size());
        std::size_t high = std::min(count, singles.size());
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (before(singles[middle], gammas[count - middle - 1])) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    };
    fill(workers_, singles.size() + gammas.size(), out, [&](std::size_t begin, std::size_t end, Single* to) {
        const std::size_t first = singles_of(begin);
        const std::size_t last = singles_of(end);
        std::ranges::merge(singles.subspan(first, last - first),
                           gammas.subspan(begin - first, end - last - (begin - first)), to, order);
    });
}

void TripleAssembly::reset() {
    carried_.clear();
    used_.clear();
    given_ = 0;
    waiting_ = 0;
    counts_ = {};
}

}  // namespace petacq::gpu::cuda
