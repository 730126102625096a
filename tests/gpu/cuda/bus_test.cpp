// The plan of an upload, carried out here instead of by CUDA: whatever the addresses of the spans, every
// frame is found once, with the time window and the source of its span.
#ifdef PETACQ_CUDA

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <vector>

#include "gpu/cuda/base/fill.hpp"
#include "gpu/cuda/slice/record_packing.hpp"
#include "gpu/cuda/transfer/upload_plan.hpp"
#include "tests/gpu/base/random.hpp"
#include "tests/support/catch.hpp"

namespace {

using petacq::gpu::FrameSpan;
using petacq::test::Rng;
namespace cuda = petacq::gpu::cuda;

constexpr std::size_t cell = petacq::net::frame_bytes;

/// Number of the frame, time window, source, source of tags.
using Found = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint32_t, std::uint16_t>;

std::uint64_t number_at(const std::byte* frame) {
    std::uint64_t number = 0;
    std::memcpy(&number, frame, sizeof number);
    return number;
}

struct Input {
    std::vector<std::byte> memory;
    std::vector<FrameSpan> spans;
    std::uint64_t frames = 0;

    /// Memory of whose cells each has its number, from 1 on; the spans decide which are frames.
    explicit Input(std::size_t cells) : memory(cells * cell) {
        for (std::uint64_t i = 0; i < cells; ++i) {
            const std::uint64_t number = i + 1;
            std::memcpy(memory.data() + i * cell, &number, sizeof number);
        }
    }
    void add(std::size_t at, std::uint32_t count, std::uint64_t low = 0, std::uint32_t source = 0) {
        REQUIRE((at + count) * cell <= memory.size());
        spans.push_back({memory.data() + at * cell, count, low, UINT64_MAX - low, source,
                         static_cast<std::uint16_t>(source / 2 * 3)});
        frames += count;
    }
    /// Datagrams of `count` frames with `between` cells between them. Returns the cell behind the last one.
    std::size_t add_several(std::size_t at, std::uint32_t count, std::uint16_t datagrams,
                            std::uint32_t between, std::uint64_t low = 0, std::uint32_t source = 0) {
        add(at, count, low, source);
        spans.back().datagrams = datagrams;
        spans.back().stride = static_cast<std::uint32_t>((count + between) * cell);
        frames += std::uint64_t{count} * (datagrams - 1U);
        const std::size_t end = at + std::size_t{datagrams} * (count + between) - between;
        REQUIRE(end * cell <= memory.size());
        return end;
    }
    void shuffle(Rng& rng) {
        for (std::size_t i = spans.size(); i > 1; --i)
            std::swap(spans[i - 1], spans[rng.index(i)]);
    }
};

struct Uploaded {
    bool fits = true;
    std::size_t pieces = 0;
    std::size_t rows = 0;
    std::size_t cells = 0;
    std::vector<Found> found;
};

/// Looks for the row of a cell like the kernels: from the row in which its tile starts.
const cuda::SpanRow& row_of(const cuda::SpanTable& table, std::uint32_t position) {
    std::uint32_t row = table.tile_first[position / cuda::cell_tile];
    const std::uint32_t last = table.tile_first[position / cuda::cell_tile + 1];
    while (row < last && table.rows[row + 1].first <= position)
        ++row;
    return table.rows[row];
}

/// Plans in parts of `part` spans, copies into pretended device memory, and reads it back through the table.
Uploaded upload(const Input& input, std::size_t part, std::uint32_t gap_room, std::uint32_t row_room,
                bool by_source = true) {
    Uploaded result;
    const std::size_t room = input.frames + gap_room;
    std::vector<std::byte> device(room * cell);
    std::vector<cuda::SpanRow> rows(row_room);
    std::vector<std::uint32_t> tile_first(room / cuda::cell_tile + 2);
    std::vector<std::uint16_t> tag_sources(row_room);
    cuda::SpanTable table{rows.data(), tile_first.data(), tag_sources.data()};
    cuda::UploadPlan plan(gap_room, row_room, by_source);
    plan.start(table);
    std::size_t next = 0;
    for (std::size_t begin = 0; begin < input.spans.size(); begin += part) {
        const std::size_t count = std::min(part, input.spans.size() - begin);
        if (!plan.add(std::span(input.spans).subspan(begin, count))) {
            result.fits = false;
            return result;
        }
        for (const cuda::FrameCopy& piece : plan.copies()) {
            REQUIRE(piece.cell == next);
            next += piece.cells;
            REQUIRE(next <= room);
            REQUIRE(piece.from >= input.memory.data());
            REQUIRE(piece.from + piece.cells * cell <= input.memory.data() + input.memory.size());
            std::memcpy(device.data() + piece.cell * cell, piece.from, piece.cells * cell);
            ++result.pieces;
        }
        REQUIRE(plan.cells() == next);
    }
    table.finish(plan.cells());
    REQUIRE(table.row_count <= row_room);
    REQUIRE(table.tile_count <= tile_first.size());
    for (std::uint32_t i = 0; i < next; ++i) {
        const cuda::SpanRow& row = row_of(table, i);
        if (i < row.first || !row.has(i)) continue;
        result.found.emplace_back(number_at(device.data() + i * cell), row.time_low, row.time_high,
                                  row.source(), tag_sources[static_cast<std::size_t>(&row - rows.data())]);
    }
    std::sort(result.found.begin(), result.found.end());
    result.rows = table.row_count;
    result.cells = next;
    return result;
}

std::vector<Found> wanted(const Input& input, bool by_source = true) {
    std::vector<Found> all;
    for (const FrameSpan& span : input.spans) {
        for (std::uint64_t k = 0; k < span.total(); ++k) {
            const std::byte* const frame = span.frames + k / span.count * span.stride + k % span.count * cell;
            all.emplace_back(number_at(frame), span.time_low, span.time_high, by_source ? span.source : 0,
                             span.tag_source);
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

TEST_CASE("upload plan: every frame is found once, with the window and source of its span") {
    Rng rng(71);
    for (int turn = 0; turn < 100; ++turn) {
        // Batches whose spans have one shape or many, read side by side, and now and then out of order.
        const std::size_t batches = rng.between<std::size_t>(1, 7);
        constexpr std::size_t batch_cells = 2000;
        Input input(batches * batch_cells);
        const bool alike = rng.chance(0.5);
        const bool windows = rng.chance(0.3);
        std::vector<std::size_t> used(batches, 0);
        for (int i = 0; i < 400; ++i) {
            const std::size_t b = rng.index(batches);
            for (std::size_t n = rng.between<std::size_t>(1, 44); n > 0; --n) {
                const std::vector<std::uint32_t> gaps{1, 1, 1, 0, 2, 4, 5, 300};
                const std::size_t gap = alike ? 1 : rng.pick(gaps);
                const auto count = alike && !rng.chance(0.02) ? 17 : rng.between<std::uint32_t>(0, 40);
                if (used[b] + gap + count > batch_cells) break;
                used[b] += gap;
                const std::uint64_t low = windows ? rng.between<std::uint64_t>(0, 2) : 0;
                const auto source = static_cast<std::uint32_t>(b % 3);
                const auto datagrams = rng.between<std::uint16_t>(1, 5);
                const auto between = static_cast<std::uint32_t>(alike ? 1 : rng.pick(gaps));
                const std::size_t end = used[b] + std::size_t{datagrams} * (count + between);
                if (count > 0 && rng.chance(0.3) && end <= batch_cells) {
                    used[b] =
                        input.add_several(b * batch_cells + used[b], count, datagrams, between, low, source) -
                        b * batch_cells;
                    continue;
                }
                input.add(b * batch_cells + used[b], count, low, source);
                used[b] += count;
            }
        }
        if (rng.chance(0.3)) input.shuffle(rng);
        const bool by_source = rng.chance(0.5);
        const std::size_t part = rng.chance(0.5) ? input.spans.size() : rng.between<std::size_t>(1, 500);
        const auto gap_room = rng.chance(0.3) ? rng.between<std::uint32_t>(0, 500) : 100'000;
        const Uploaded result = upload(input, std::max<std::size_t>(part, 1), gap_room, 100'000, by_source);
        INFO("turn " << turn);
        REQUIRE(result.fits);
        REQUIRE(result.cells <= input.frames + gap_room);
        REQUIRE(result.found == wanted(input, by_source));
    }
}

TEST_CASE("upload plan: batches received side by side are copied in one piece each") {
    constexpr std::size_t batches = 6;
    constexpr std::size_t reads = 20;
    constexpr std::size_t datagrams = 44;
    constexpr std::uint32_t frames = 91;
    constexpr std::size_t batch_cells = reads * datagrams * (frames + 1) + 1000;
    Input input(batches * batch_cells);
    for (std::size_t r = 0; r < reads; ++r) {
        for (std::size_t b = 0; b < batches; ++b) {
            for (std::size_t d = 0; d < datagrams; ++d) {
                input.add(b * batch_cells + (r * datagrams + d) * (frames + 1) + 1, frames, 0,
                          static_cast<std::uint32_t>(b + 1));
            }
        }
    }
    const Uploaded result = upload(input, input.spans.size(), 100'000, 1000);
    REQUIRE(result.fits);
    CHECK(result.pieces == batches);
    CHECK(result.rows == batches * reads);
    CHECK(result.found == wanted(input));
}

TEST_CASE("upload plan: a table without room is reported, and the plan can be used again") {
    Rng rng(72);
    Input input(4000);
    for (std::size_t i = 0; i < 1000; ++i)
        input.add(4 * i, 1, i);
    CHECK_FALSE(upload(input, 1000, 4000, 999).fits);
    CHECK(upload(input, 1000, 4000, 1000).fits);
    CHECK(upload(input, 7, 4000, 1000).found == wanted(input));

    std::vector<cuda::SpanRow> rows(10);
    std::vector<std::uint32_t> tile_first(4);
    std::vector<std::uint16_t> tag_sources(10);
    cuda::UploadPlan plan(100, 10, true);
    for (int turn = 0; turn < 3; ++turn) {
        cuda::SpanTable table{rows.data(), tile_first.data(), tag_sources.data()};
        plan.start(table);
        CHECK(plan.add(std::span(input.spans).first(10)));
        CHECK(plan.cells() == 10 + 9 * 3);
        CHECK_FALSE(plan.add(std::span(input.spans).subspan(10, 1)));
    }
}

TEST_CASE("record packing: every record comes back as it was") {
    Rng rng(73);
    for (int turn = 0; turn < 2000; ++turn) {
        const auto crystals = rng.between<std::uint32_t>(1, 1U << rng.between(1U, 24U));
        const auto window = static_cast<std::uint32_t>(rng.bits() >> rng.between(32U, 63U));
        const auto packing = cuda::RecordPacking::of(crystals, window);
        if (!packing.fits) {
            CHECK(packing.record_bytes() == sizeof(petacq::gpu::Coincidence));
            continue;
        }
        CHECK(packing.record_bytes() == 24);
        petacq::gpu::Coincidence c;
        c.time = rng.bits() >> rng.between(0U, 63U);
        c.dt = rng.chance(0.2) ? window : rng.between(0U, window);
        c.crystal_a = rng.chance(0.2) ? crystals - 1 : rng.between(0U, crystals - 1);
        c.crystal_b = rng.chance(0.2) ? crystals - 1 : rng.between(0U, crystals - 1);
        c.energy_a = static_cast<float>(rng.unit()) * 1000;
        c.energy_b = rng.chance(0.1) ? std::numeric_limits<float>::infinity() : 0.0F;
        c.kind = rng.chance(0.5) ? petacq::gpu::Kind::prompt : petacq::gpu::Kind::delayed;
        const petacq::gpu::Coincidence back = packing.unpack(packing.pack(c));
        REQUIRE(std::memcmp(&back, &c, sizeof c) == 0);
    }
    // The scanners of the examples, with any usual window.
    CHECK(cuda::RecordPacking::of(43'200, 1U << 16).fits);
    CHECK_FALSE(cuda::RecordPacking::of(1U << 20, UINT32_MAX).fits);
}

TEST_CASE("fill: a vector that comes back keeps its memory, whatever it held") {
    petacq::net::WorkerPool pool(3);
    constexpr std::size_t most = 500'000;
    petacq::gpu::RecordVector<std::uint64_t> out;
    const auto write = [](std::size_t begin, std::size_t end, std::uint64_t* to) {
        for (; begin < end; ++begin)
            *to++ = begin * begin;
    };
    const auto check = [&](std::size_t count) {
        REQUIRE(out.size() == count);
        for (std::size_t i = 0; i < count; ++i)
            REQUIRE((out[i] == i * i));
    };
    cuda::fill(pool, most, out, write);
    check(most);
    const std::uint64_t* const memory = out.data();
    Rng rng(74);
    for (const std::size_t left : {most, std::size_t{0}, most / 2, std::size_t{1}}) {
        out.resize(left);
        std::fill(out.begin(), out.end(), 7);
        const std::size_t count = rng.between<std::size_t>(0, most);
        cuda::fill(pool, count, out, write);
        check(count);
        CHECK(out.data() == memory);
    }
}

#endif
