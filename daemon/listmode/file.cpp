#include "daemon/listmode/file.hpp"

#include <cassert>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/listmode/compression.hpp"
#include "daemon/listmode/crc32c.hpp"

namespace petacq::daemon {

ListModeFile::ListModeFile(std::filesystem::path path, RecordKind kind, std::uint32_t block_bytes,
                           const nlohmann::json& description, config::Compression compression,
                           std::uint32_t record_bytes, bool has_closing)
    : file_(std::move(path)),
      has_closing_(has_closing),
      record_bytes_(record_bytes != 0 ? record_bytes : record_bytes_of(kind)) {
    index_.reserve(1024);
    try {
        const bool compressed = compression != config::Compression::none;
        if (compressed) compressor_ = std::make_unique<BlockCompressor>(record_bytes_);
        const std::uint32_t version = has_closing  ? closing_version
                                      : compressed ? compressed_version
                                                   : plain_version;
        file_.append(make_file_header(kind, block_bytes, description, version, record_bytes_));
        header_bytes_ = file_.bytes();
        file_.sync();
        sync_directory_of(file_.path());
    } catch (...) {
        file_.discard();
        throw;
    }
}

ListModeFile::~ListModeFile() = default;

void ListModeFile::write_block(const BlockOfRecords& block) {
    check();  // writing on would leave a hole where the file was cut
    BlockHeader header;
    std::uint64_t bytes = 0;
    pieces_ = {{&header, sizeof header}};
    for (const std::span<const std::byte> stretch : block.stretches) {
        assert(!stretch.empty() && stretch.size() % record_bytes_ == 0);
        header.payload_crc = crc32c(stretch, header.payload_crc);
        bytes += stretch.size();
        pieces_.push_back({const_cast<std::byte*>(stretch.data()), stretch.size()});  // writev takes no const
    }
    const auto& last = block.stretches.back();
    header.number = block.number;
    std::uint64_t stored = bytes;
    if (compressor_) {
        const std::span<const std::byte> smaller = compressor_->compress(block.stretches);
        if (!smaller.empty()) {
            pieces_.resize(1);
            pieces_.push_back({const_cast<std::byte*>(smaller.data()), smaller.size()});
            stored = smaller.size();
            header.codec = BlockCodec::zstd;
        }
    }
    if (compressor_ || has_closing_) header.stored_bytes = static_cast<std::uint32_t>(stored);
    header.records = static_cast<std::uint32_t>(bytes / record_bytes_);
    header.record_bytes = record_bytes_;
    header.first_time = time_of(block.stretches.front().data());
    header.last_time = time_of(last.data() + last.size() - record_bytes_);
    header.first_record = block.first_record;
    seal(header);

    const std::uint64_t offset = file_.bytes();
    file_.append(pieces_);
    index_.push_back({offset, header.records, header.payload_crc, header.first_time, header.last_time});
    records_ += header.records;
    payload_crc_ = crc32c_combine(payload_crc_, header.payload_crc, bytes);
    file_.start_writeback(sizeof header + stored);
}

void ListModeFile::remove_blocks() {
    check();
    file_.cut(header_bytes_);
    index_.clear();
    records_ = 0;
    payload_crc_ = 0;
}

void ListModeFile::close() {
    close(nlohmann::json::object());
}

void ListModeFile::close(const nlohmann::json& closing) {
    if (!file_.is_open()) return;
    assert(closing.is_object() && (has_closing_ || closing.empty()));
    check();
    if (!has_index_) append_index(has_closing_ ? description_text(closing) : std::string());
    file_.sync();
    file_.close();
}

void ListModeFile::append_index(const std::string& closing) {
    Trailer trailer;
    trailer.index_offset = file_.bytes();
    trailer.blocks = index_.size();
    trailer.records = records_;
    trailer.payload_crc = payload_crc_;
    const auto entries = std::as_bytes(std::span(index_));
    trailer.index_crc = crc32c(entries);
    const auto closing_bytes = std::as_bytes(std::span(closing));
    trailer.closing_bytes = static_cast<std::uint32_t>(closing.size());
    trailer.closing_crc = crc32c(closing_bytes);
    seal(trailer);
    std::vector<std::byte> tail(entries.begin(), entries.end());
    tail.insert(tail.end(), closing_bytes.begin(), closing_bytes.end());
    const auto trailer_bytes = std::as_bytes(std::span(&trailer, 1));
    tail.insert(tail.end(), trailer_bytes.begin(), trailer_bytes.end());

    file_.append(tail);
    has_index_ = true;
}

}  // namespace petacq::daemon
