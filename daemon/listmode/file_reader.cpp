#include "daemon/listmode/file_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "config/base/json_file.hpp"
#include "daemon/listmode/compression.hpp"
#include "daemon/listmode/crc32c.hpp"
#include "daemon/listmode/set.hpp"

namespace petacq::daemon {
namespace {

constexpr std::size_t search_window = 1U << 20;

template <class Part>
std::span<std::byte> bytes_of(Part& part) {
    return std::as_writable_bytes(std::span(&part, 1));
}

nlohmann::json parse_description(const std::string& text) {
    if (config::json_nested_deeper(text)) throw std::runtime_error("nested too deeply");
    auto json = nlohmann::json::parse(text);
    if (!json.is_object()) throw std::runtime_error("not an object");
    return json;
}

std::string block_text(std::uint64_t number) {
    return "block " + std::to_string(number);
}

}  // namespace

LoadedBlock::LoadedBlock() = default;
LoadedBlock::~LoadedBlock() = default;
LoadedBlock::LoadedBlock(LoadedBlock&&) noexcept = default;
LoadedBlock& LoadedBlock::operator=(LoadedBlock&&) noexcept = default;

ListModeFileReader::ListModeFileReader(std::filesystem::path path) : path_(std::move(path)) {
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);  // NOLINT(cppcoreguidelines-pro-type-vararg)
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), path_.string());
    try {
        read_size();
        ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);  // makes the kernel read further ahead
        read_header();
        position_ = header_.header_bytes;
        expected_block_ = file_;
        read_index();
    } catch (...) {
        ::close(descriptor_);
        throw;
    }
}

ListModeFileReader::~ListModeFileReader() {
    ::close(descriptor_);
}

// Returns fewer bytes than requested only at the end of the file.
std::size_t ListModeFileReader::read_at(std::uint64_t offset, std::byte* into, std::size_t bytes) const {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t got =
            ::pread(descriptor_, into + done, bytes - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw std::system_error(errno, std::generic_category(), path_.string());
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

void ListModeFileReader::read_header() {
    const auto refuse = [&](const std::string& why) { throw NotListMode(path_.string() + ": " + why); };
    const std::size_t got = read_at(0, bytes_of(header_).data(), sizeof header_);
    if (got == 0) refuse("empty, not a list-mode file");
    if (std::memcmp(&header_, file_magic.data(), std::min(got, file_magic.size())) != 0) {
        refuse("not a list-mode file: it does not begin with \"PETACQLM\"");
    }
    if (got < sizeof header_) refuse("list-mode file cut off inside its header");
    if (header_.version < plain_version || header_.version > closing_version) {
        refuse("list-mode version " + std::to_string(header_.version) + ", expected version 1 to 3");
    }
    if (!is_sealed(header_)) refuse("list-mode file with a damaged header: its CRC is wrong");
    if (!is_record(header_.kind, header_.record_bytes) || header_.header_bytes % header_alignment != 0 ||
        header_.header_bytes < header_alignment || header_.header_bytes > max_header_bytes ||
        header_.block_bytes < min_block_bytes || header_.block_bytes > max_block_bytes ||
        header_.description_bytes > header_.header_bytes - sizeof header_) {
        refuse("list-mode header with invalid values");
    }
    std::vector<std::byte> rest(header_.header_bytes - sizeof header_);
    if (read_at(sizeof header_, rest.data(), rest.size()) != rest.size()) {
        refuse("list-mode file cut off inside its header");
    }
    if (crc32c(rest) != header_.description_crc) {
        refuse("list-mode file with a damaged header: the CRC of its description is wrong");
    }
    read_description(std::span(rest).first(header_.description_bytes));
}

void ListModeFileReader::read_description(std::span<const std::byte> text) {
    const auto refuse = [&](const std::string& why) { throw NotListMode(path_.string() + ": " + why); };
    try {
        description_ = std::make_unique<nlohmann::json>(
            parse_description({reinterpret_cast<const char*>(text.data()), text.size()}));
    } catch (const std::exception& error) {
        refuse(std::string("the description in the list-mode header is not a JSON object: ") + error.what());
    }
    const nlohmann::json of = description_->value("file", nlohmann::json());
    const nlohmann::json all = description_->value("files", nlohmann::json());
    const bool of_set = of.is_number_unsigned() && all.is_number_unsigned();
    if (!of_set) {
        header_description_ = std::make_unique<nlohmann::json>(*description_);
        return;
    }
    const auto file = of.get<std::uint64_t>();
    const auto files = all.get<std::uint64_t>();
    if (files > max_files || file == 0 || file > files)
        refuse("the description in the list-mode header names no file of a set");
    file_ = static_cast<std::uint32_t>(file - 1);
    files_ = static_cast<std::uint32_t>(files);
    description_->erase("file");
    description_->erase("files");
    header_description_ = std::make_unique<nlohmann::json>(*description_);
}

void ListModeFileReader::read_size() {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0)
        throw std::system_error(errno, std::generic_category(), path_.string());
    if (!S_ISREG(status.st_mode)) throw NotListMode(path_.string() + ": not a regular file");
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    blocks_end_ = bytes_;
}

void ListModeFileReader::refresh() {
    if (trailer_) return;
    read_size();
    read_index();
}

void ListModeFileReader::read_index() {
    Trailer trailer;
    if (bytes_ < header_.header_bytes + sizeof trailer) return;
    const std::uint64_t trailer_offset = bytes_ - sizeof trailer;
    if (read_at(trailer_offset, bytes_of(trailer).data(), sizeof trailer) != sizeof trailer) return;
    if (!is_sealed(trailer) || trailer.index_offset < header_.header_bytes ||
        trailer.index_offset > trailer_offset) {
        return;
    }
    const std::uint64_t after_blocks = trailer_offset - trailer.index_offset;
    const std::uint64_t closing_bytes = header_.version == closing_version ? trailer.closing_bytes : 0;
    if (closing_bytes > after_blocks) return;
    const std::uint64_t index_bytes = after_blocks - closing_bytes;
    if (index_bytes % sizeof(IndexEntry) != 0 || index_bytes / sizeof(IndexEntry) != trailer.blocks) return;
    index_.resize(trailer.blocks);
    const auto bytes = std::as_writable_bytes(std::span(index_));
    if (read_at(trailer.index_offset, bytes.data(), bytes.size()) != bytes.size() ||
        crc32c(bytes) != trailer.index_crc ||
        (closing_bytes != 0 && !read_closing(trailer, trailer_offset - closing_bytes))) {
        index_.clear();
        return;
    }
    trailer_ = trailer;
    blocks_end_ = trailer.index_offset;
}

/// False if it is damaged.
bool ListModeFileReader::read_closing(const Trailer& trailer, std::uint64_t offset) {
    std::string text(trailer.closing_bytes, '\0');
    const auto bytes = std::as_writable_bytes(std::span(text));
    if (read_at(offset, bytes.data(), bytes.size()) != bytes.size() || crc32c(bytes) != trailer.closing_crc)
        return false;
    try {
        description_->update(parse_description(text));
    } catch (const std::exception&) {
        return false;
    }
    return true;
}

bool ListModeFileReader::can_select(std::size_t first, std::size_t end) const {
    if (!trailer_ || first > end || end > index_.size()) return false;
    const auto offset = [&](std::size_t i) {
        return i == index_.size() ? trailer_->index_offset : index_[i].offset;
    };
    return offset(first) >= header_.header_bytes && offset(first) <= offset(end) &&
           offset(end) <= trailer_->index_offset;
}

void ListModeFileReader::select(std::size_t first, std::size_t end) {
    assert(can_select(first, end));
    selected_ = true;
    position_ = first == index_.size() ? trailer_->index_offset : index_[first].offset;
    blocks_end_ = end == index_.size() ? trailer_->index_offset : index_[end].offset;
    expected_block_ = first * files_ + file_;
}

bool ListModeFileReader::plausible(const BlockHeader& header, std::uint64_t offset, std::string& why) const {
    if (header.magic != block_magic) {
        why = "no block header";
    } else if (!is_sealed(header)) {
        why = "block header with a wrong CRC";
    } else if (header.record_bytes != header_.record_bytes || header.records == 0 ||
               header.records > (header_.block_bytes - sizeof header) / header.record_bytes) {
        why = "block header with invalid values";
    } else if (header.number % files_ != file_) {
        why = block_text(header.number) + " of another file of the set";
    } else if (header_.version != plain_version &&
               (header.codec > BlockCodec::zstd || header.stored_bytes > header.payload_bytes() ||
                (header.codec == BlockCodec::plain && header.stored_bytes != header.payload_bytes()))) {
        why = "block header with an invalid codec or size";
    } else if (stored_bytes(header) > blocks_end_ - offset - sizeof header) {
        why = block_text(header.number) + " is cut off";
    } else {
        return true;
    }
    return false;
}

std::uint64_t ListModeFileReader::stored_bytes(const BlockHeader& header) const {
    return header_.version == plain_version ? header.payload_bytes() : header.stored_bytes;
}

bool ListModeFileReader::read_block_header(std::uint64_t offset, BlockHeader& block, std::string& why) const {
    if (offset > blocks_end_ || blocks_end_ - offset < sizeof block ||
        read_at(offset, bytes_of(block).data(), sizeof block) != sizeof block) {
        why = "block header cut off";
        return false;
    }
    return plausible(block, offset, why);
}

std::optional<std::uint64_t> ListModeFileReader::find_block(std::uint64_t offset, BlockHeader& header) const {
    std::string why;
    if (!read_block_header(offset, header, why)) return std::nullopt;
    return offset + sizeof header + stored_bytes(header);
}

bool ListModeFileReader::load(std::uint64_t offset, LoadedBlock& block, std::string& why) const {
    if (!read_block_header(offset, block.header, why)) return false;
    block.records.resize(block.header.payload_bytes());
    return load_records(offset, block, block.records, why);
}

bool ListModeFileReader::load(std::uint64_t offset, LoadedBlock& block, std::span<std::byte> records,
                              std::string& why) const {
    if (!read_block_header(offset, block.header, why)) return false;
    if (block.header.payload_bytes() == records.size()) return load_records(offset, block, records, why);
    why = block_text(block.header.number) + " has another size than expected";
    return false;
}

bool ListModeFileReader::load_records(std::uint64_t offset, LoadedBlock& to, std::span<std::byte> records,
                                      std::string& why) const {
    const BlockHeader& block = to.header;
    const bool compressed = header_.version != plain_version && block.codec == BlockCodec::zstd;
    if (compressed) to.stored.resize(stored_bytes(block));
    const std::span<std::byte> stored = compressed ? std::span<std::byte>(to.stored) : records;
    if (read_at(offset + sizeof block, stored.data(), stored.size()) != stored.size()) {
        why = block_text(block.number) + " is cut off";
        return false;
    }
    if (compressed && !to.decompressor) to.decompressor = std::make_unique<BlockDecompressor>();
    if (compressed && !to.decompressor->decompress(stored, header_.record_bytes, records)) {
        why = block_text(block.number) + " cannot be decompressed";
        return false;
    }
    if (crc32c(records) != block.payload_crc) {
        why = block_text(block.number) + " with a wrong CRC";
        return false;
    }
    return true;
}

// Loads the block at `offset` as the current one, unless the pass has been there.
bool ListModeFileReader::load_block(std::uint64_t offset, std::string& why) {
    if (!load(offset, loaded_, why)) return false;
    if (loaded_.header.number >= expected_block_) return true;
    why = block_text(loaded_.header.number) + " again";
    return false;
}

// The first offset from `from` on at which a block header may start.
std::optional<std::uint64_t> ListModeFileReader::find_magic(std::uint64_t from) {
    search_.resize(search_window);
    while (from < blocks_end_) {
        const std::size_t wanted = std::min<std::uint64_t>(search_window, blocks_end_ - from);
        const std::size_t got = read_at(from, search_.data(), wanted);
        const void* hit = ::memmem(search_.data(), got, block_magic.data(), block_magic.size());
        if (hit != nullptr) {
            return from + static_cast<std::uint64_t>(static_cast<const std::byte*>(hit) - search_.data());
        }
        if (got < wanted || from + got >= blocks_end_) break;
        from += got - (block_magic.size() - 1);  // it may lie across two windows
    }
    return std::nullopt;
}

bool ListModeFileReader::next(std::vector<Damage>& damage) {
    if (done_) return false;
    if (position_ >= blocks_end_) {
        finish(damage);
        return false;
    }
    std::string why;
    if (load_block(position_, why)) {
        block_offset_ = position_;
        accept_block(damage);
        return true;
    }
    std::string ignored;
    for (auto place = find_magic(position_ + 1); place; place = find_magic(*place + 1)) {
        if (!load_block(*place, ignored)) continue;
        note(damage, {position_, *place - position_, expected_block_, why});
        block_offset_ = *place;
        accept_block(damage);
        return true;
    }
    if (trailer_) {
        note(damage, {position_, blocks_end_ - position_, expected_block_, why});
    } else {
        tail_bytes_ = blocks_end_ - position_;
    }
    finish(damage);
    return false;
}

void ListModeFileReader::accept_block(std::vector<Damage>& damage) {
    const BlockHeader& block = loaded_.header;
    const std::vector<std::byte>& records = loaded_.records;
    if (block.number != expected_block_ && block_offset_ == position_) {
        note(damage, {position_, 0, expected_block_,
                      block_text(block.number) + " where " + block_text(expected_block_) + " was expected"});
    }
    const IndexEntry found{block_offset_, block.records, block.payload_crc, block.first_time,
                           block.last_time};
    const std::uint64_t entry = entry_of(block.number);
    if (trailer_ && (entry >= index_.size() || index_[entry] != found)) {
        note(damage, {block_offset_, 0, block.number, "index and " + block_text(block.number) + " disagree"});
    }
    if (block.first_time != time_of(records.data()) ||
        block.last_time != time_of(records.data() + records.size() - header_.record_bytes)) {
        note(damage,
             {block_offset_, 0, block.number,
              "times in the header of " + block_text(block.number) + " are not those of its records"});
    }
    ++blocks_;
    records_ += block.records;
    payload_crc_ = crc32c_combine(payload_crc_, block.payload_crc, records.size());
    expected_block_ = block.number + files_;
    position_ = block_offset_ + sizeof block + stored_bytes(block);
}

void ListModeFileReader::note(std::vector<Damage>& damage, Damage found) {
    damaged_ = true;
    if (files_ > 1) found.file = path_.filename().string();
    damage.push_back(std::move(found));
}

void ListModeFileReader::finish(std::vector<Damage>& damage) {
    done_ = true;
    loaded_.records.clear();
    loaded_.header = {};
    if (!trailer_ || damaged_ || selected_) return;
    if (trailer_->blocks == blocks_ && trailer_->records == records_ && trailer_->payload_crc == payload_crc_)
        return;
    note(damage, {blocks_end_, 0, expected_block_,
                  "trailer counts " + std::to_string(trailer_->blocks) + " blocks and " +
                      std::to_string(trailer_->records) + " records, found " + std::to_string(blocks_) +
                      " and " + std::to_string(records_)});
}

}  // namespace petacq::daemon
