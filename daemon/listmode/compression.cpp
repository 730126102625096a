#include "daemon/listmode/compression.hpp"

#include <zstd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <new>

namespace petacq::daemon {
namespace {

/// A slower level saves little: docs/explanation/measurements.md has the figures.
constexpr int level = -1;

template <class Context>
Context* checked(Context* context) {
    if (context == nullptr) throw std::bad_alloc();
    return context;
}

using Row = std::uint8_t __attribute__((vector_size(16)));
using Square = std::array<Row, 16>;

/// Exchanges rows and columns.
void transpose(Square& square) {
    for (int round = 0; round < 4; ++round) {
        Square next;
        for (std::size_t i = 0; i < 8; ++i) {
            const Row a = square[i];
            const Row b = square[i + 8];
            next[2 * i] =
                __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            next[2 * i + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        square = next;
    }
}

/// Sixteen rows of 16 bytes, `stride` bytes apart.
Square load(const std::byte* from, std::size_t stride) {
    Square square;
    for (std::size_t i = 0; i < 16; ++i)
        std::memcpy(&square[i], from + i * stride, sizeof(Row));
    return square;
}
void store(const Square& square, std::byte* to, std::size_t stride) {
    for (std::size_t i = 0; i < 16; ++i)
        std::memcpy(to + i * stride, &square[i], sizeof(Row));
}

/// Transposes `rows` rows of `columns` bytes, a multiple of 16: byte j of row i goes to to[j * stride + i].
void split_rows(const std::byte* from, std::size_t rows, std::size_t columns, std::byte* to,
                std::size_t stride) {
    std::size_t i = 0;
    for (; i + 16 <= rows; i += 16) {
        for (std::size_t j = 0; j < columns; j += 16) {
            Square square = load(from + i * columns + j, columns);
            transpose(square);
            store(square, to + j * stride + i, stride);
        }
    }
    for (; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            to[j * stride + i] = from[i * columns + j];
}

/// The reverse.
void join_rows(const std::byte* from, std::size_t rows, std::size_t columns, std::byte* to) {
    std::size_t i = 0;
    for (; i + 16 <= rows; i += 16) {
        for (std::size_t j = 0; j < columns; j += 16) {
            Square square = load(from + j * rows + i, rows);
            transpose(square);
            store(square, to + i * columns + j, columns);
        }
    }
    for (; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            to[i * columns + j] = from[j * rows + i];
}

}  // namespace

BlockCompressor::BlockCompressor(std::uint32_t record_bytes)
    : record_bytes_(record_bytes), context_(checked(ZSTD_createCCtx())) {}

BlockCompressor::~BlockCompressor() {
    ZSTD_freeCCtx(context_);
}

std::span<const std::byte> BlockCompressor::compress(std::span<const std::span<const std::byte>> stretches) {
    std::size_t bytes = 0;
    for (const auto& stretch : stretches)
        bytes += stretch.size();
    transposed_.resize(bytes);
    compressed_.resize(ZSTD_compressBound(bytes));
    std::size_t at = 0;
    for (const auto& stretch : stretches) {
        const std::size_t records = stretch.size() / record_bytes_;
        split_rows(stretch.data(), records, record_bytes_, transposed_.data() + at, bytes / record_bytes_);
        at += records;
    }
    const std::size_t size = ZSTD_compressCCtx(context_, compressed_.data(), compressed_.size(),
                                               transposed_.data(), transposed_.size(), level);
    if (ZSTD_isError(size) != 0 || size >= bytes) return {};
    return std::span(compressed_).first(size);
}

BlockDecompressor::BlockDecompressor() : context_(checked(ZSTD_createDCtx())) {}

BlockDecompressor::~BlockDecompressor() {
    ZSTD_freeDCtx(context_);
}

bool BlockDecompressor::decompress(std::span<const std::byte> stored, std::uint32_t record_bytes,
                                   std::span<std::byte> records) {
    transposed_.resize(records.size());
    const std::size_t size =
        ZSTD_decompressDCtx(context_, transposed_.data(), transposed_.size(), stored.data(), stored.size());
    if (ZSTD_isError(size) != 0 || size != records.size()) return false;
    join_rows(transposed_.data(), records.size() / record_bytes, record_bytes, records.data());
    return true;
}

}  // namespace petacq::daemon
