// Compression of the records of a block: their bytes are transposed, so that like bytes stand together, and
// then compressed by zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): of zstd
struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

namespace petacq::daemon {

/// One thread at a time. Its memory is at most about three blocks.
class BlockCompressor {
  public:
    /// Throws std::bad_alloc.
    explicit BlockCompressor(std::uint32_t record_bytes);
    ~BlockCompressor();
    BlockCompressor(const BlockCompressor&) = delete;
    BlockCompressor& operator=(const BlockCompressor&) = delete;

    /// The compressed records; valid until the next call. Empty if they would not become smaller, or if zstd
    /// fails: the block is then stored as it is.
    std::span<const std::byte> compress(std::span<const std::span<const std::byte>> stretches);

  private:
    const std::size_t record_bytes_;
    ZSTD_CCtx_s* const context_;
    std::vector<std::byte> transposed_;
    std::vector<std::byte> compressed_;
};

/// One thread at a time.
class BlockDecompressor {
  public:
    /// Throws std::bad_alloc.
    BlockDecompressor();
    ~BlockDecompressor();
    BlockDecompressor(const BlockDecompressor&) = delete;
    BlockDecompressor& operator=(const BlockDecompressor&) = delete;

    /// Fills `records`, whose size must be that of the records. False if `stored` does not hold that many
    /// bytes, or is no whole zstd frame.
    bool decompress(std::span<const std::byte> stored, std::uint32_t record_bytes,
                    std::span<std::byte> records);

  private:
    ZSTD_DCtx_s* const context_;
    std::vector<std::byte> transposed_;
};

}  // namespace petacq::daemon
