#include "daemon/listmode/reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "config/json_file.hpp"
#include "daemon/listmode/crc32c.hpp"

namespace petacq::daemon {
namespace {

constexpr std::size_t search_window = 1U << 20;
constexpr std::size_t max_damage_kept = 100;

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

const char* name_of(FileState state) {
    constexpr std::array names{"complete", "truncated", "damaged"};
    return names.at(static_cast<std::size_t>(state));
}

std::string Condition::summary() const {
    std::string text = name_of(state);
    text += ": " + std::to_string(blocks) + " whole blocks, " + std::to_string(records) + " records";
    if (state == FileState::complete) return text;
    if (damage_count != 0) {
        text += "; " + std::to_string(damage_count) + (damage_count == 1 ? " fault" : " faults");
        if (!damage.empty()) {
            text += ", the first at offset " + std::to_string(damage.front().offset) + " (" +
                    damage.front().what + ")";
        }
    }
    if (missing_records != 0) text += "; " + std::to_string(missing_records) + " records missing";
    if (!has_index) {
        text += "; no index, " + std::to_string(tail_bytes) + " bytes after the last whole block";
    }
    return text;
}

ListModeReader::ListModeReader(std::filesystem::path path) : path_(std::move(path)) {
    file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);  // NOLINT(cppcoreguidelines-pro-type-vararg)
    if (file_ < 0) throw std::system_error(errno, std::generic_category(), path_.string());
    try {
        struct stat status {};
        if (::fstat(file_, &status) != 0)
            throw std::system_error(errno, std::generic_category(), path_.string());
        if (!S_ISREG(status.st_mode)) throw NotListMode(path_.string() + ": not a regular file");
        file_bytes_ = static_cast<std::uint64_t>(status.st_size);
        ::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);  // makes the kernel read further ahead
        read_header();
        position_ = header_.header_bytes;
        blocks_end_ = file_bytes_;
        read_index();
    } catch (...) {
        ::close(file_);
        throw;
    }
}

ListModeReader::~ListModeReader() {
    ::close(file_);
}

// Returns fewer bytes than requested only at the end of the file.
std::size_t ListModeReader::read_at(std::uint64_t offset, std::byte* into, std::size_t bytes) const {
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t got = ::pread(file_, into + done, bytes - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) throw std::system_error(errno, std::generic_category(), path_.string());
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

void ListModeReader::read_header() {
    const auto refuse = [&](const std::string& why) { throw NotListMode(path_.string() + ": " + why); };
    const std::size_t got = read_at(0, bytes_of(header_).data(), sizeof header_);
    if (got == 0) refuse("empty, not a list-mode file");
    if (std::memcmp(&header_, file_magic.data(), std::min(got, file_magic.size())) != 0) {
        refuse("not a list-mode file: it does not begin with \"PETACQLM\"");
    }
    if (got < sizeof header_) refuse("list-mode file cut off inside its header");
    if (header_.version != format_version) {
        refuse("list-mode version " + std::to_string(header_.version) + ", expected version " +
               std::to_string(format_version));
    }
    if (!is_sealed(header_)) refuse("list-mode file with a damaged header: its CRC is wrong");
    const bool known_kind = header_.kind == RecordKind::coincidences || header_.kind == RecordKind::singles;
    if (!known_kind || header_.record_bytes != record_bytes_of(header_.kind) ||
        header_.header_bytes % header_alignment != 0 || header_.header_bytes < header_alignment ||
        header_.header_bytes > max_header_bytes || header_.block_bytes < min_block_bytes ||
        header_.block_bytes > max_block_bytes ||
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
    try {
        description_ = std::make_unique<const nlohmann::json>(parse_description(
            std::string(reinterpret_cast<const char*>(rest.data()), header_.description_bytes)));
    } catch (const std::exception& error) {
        refuse(std::string("the description in the list-mode header is not a JSON object: ") + error.what());
    }
}

void ListModeReader::read_index() {
    Trailer trailer;
    if (file_bytes_ < header_.header_bytes + sizeof trailer) return;
    const std::uint64_t trailer_offset = file_bytes_ - sizeof trailer;
    if (read_at(trailer_offset, bytes_of(trailer).data(), sizeof trailer) != sizeof trailer) return;
    if (!is_sealed(trailer) || trailer.index_offset < header_.header_bytes ||
        trailer.index_offset > trailer_offset) {
        return;
    }
    const std::uint64_t index_bytes = trailer_offset - trailer.index_offset;
    if (index_bytes % sizeof(IndexEntry) != 0 || index_bytes / sizeof(IndexEntry) != trailer.blocks) return;
    index_.resize(trailer.blocks);
    const auto bytes = std::as_writable_bytes(std::span(index_));
    if (read_at(trailer.index_offset, bytes.data(), bytes.size()) != bytes.size() ||
        crc32c(bytes) != trailer.index_crc) {
        index_.clear();
        return;
    }
    trailer_ = trailer;
    blocks_end_ = trailer.index_offset;
    condition_.has_index = true;
}

void ListModeReader::select(std::uint64_t from, std::uint64_t to) {
    if (!trailer_) return;
    const auto first = std::partition_point(index_.begin(), index_.end(),
                                            [from](const IndexEntry& e) { return e.last_time < from; });
    const auto end =
        std::partition_point(first, index_.end(), [to](const IndexEntry& e) { return e.first_time < to; });
    const std::uint64_t position = first == index_.end() ? trailer_->index_offset : first->offset;
    const std::uint64_t blocks_end = end == index_.end() ? trailer_->index_offset : end->offset;
    // The index contradicts itself. Reading everything will find the fault.
    if (position < header_.header_bytes || position > blocks_end || blocks_end > trailer_->index_offset)
        return;
    const auto records_in = [](auto from_entry, auto to_entry) {
        return std::accumulate(from_entry, to_entry, std::uint64_t{0},
                               [](std::uint64_t sum, const IndexEntry& e) { return sum + e.records; });
    };
    selected_ = true;
    position_ = position;
    blocks_end_ = blocks_end;
    expected_block_ = static_cast<std::uint64_t>(first - index_.begin());
    expected_record_ = records_in(index_.begin(), first);
    selected_end_ = expected_record_ + records_in(first, end);
}

bool ListModeReader::plausible(const BlockHeader& header, std::uint64_t offset, std::string& why) const {
    if (header.magic != block_magic) {
        why = "no block header";
    } else if (!is_sealed(header)) {
        why = "block header with a wrong CRC";
    } else if (header.record_bytes != header_.record_bytes || header.records == 0 ||
               header.records > (header_.block_bytes - sizeof header) / header.record_bytes) {
        why = "block header with invalid values";
    } else if (header.number < expected_block_) {
        why = block_text(header.number) + " again";
    } else if (std::uint64_t{header.records} * header.record_bytes > blocks_end_ - offset - sizeof header) {
        why = block_text(header.number) + " is cut off";
    } else {
        return true;
    }
    return false;
}

// Reads and checks the block at `offset` into block_ and buffer_.
bool ListModeReader::load_block(std::uint64_t offset, std::string& why) {
    if (blocks_end_ - offset < sizeof block_ ||
        read_at(offset, bytes_of(block_).data(), sizeof block_) != sizeof block_) {
        why = "block header cut off";
        return false;
    }
    if (!plausible(block_, offset, why)) return false;
    buffer_.resize(std::size_t{block_.records} * block_.record_bytes);
    if (read_at(offset + sizeof block_, buffer_.data(), buffer_.size()) != buffer_.size()) {
        why = block_text(block_.number) + " is cut off";
        return false;
    }
    if (crc32c(buffer_) != block_.payload_crc) {
        why = block_text(block_.number) + " with a wrong CRC";
        return false;
    }
    return true;
}

// The first offset from `from` on at which a block header may start.
std::optional<std::uint64_t> ListModeReader::find_magic(std::uint64_t from) {
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

bool ListModeReader::next() {
    if (done_) return false;
    if (position_ >= blocks_end_) {
        finish();
        return false;
    }
    std::string why;
    if (load_block(position_, why)) {
        block_offset_ = position_;
        accept_block();
        return true;
    }
    std::string ignored;
    for (auto place = find_magic(position_ + 1); place; place = find_magic(*place + 1)) {
        if (!load_block(*place, ignored)) continue;
        note_damage({position_, *place - position_, expected_block_, why});
        // accept_block counts the records missing here, from the numbers in the block that was found.
        block_offset_ = *place;
        accept_block();
        return true;
    }
    if (trailer_) {
        note_damage({position_, blocks_end_ - position_, expected_block_, why});
    } else {
        condition_.tail_bytes = blocks_end_ - position_;
    }
    finish();
    return false;
}

void ListModeReader::accept_block() {
    const bool follows = block_.number == expected_block_;
    if (!follows && block_offset_ == position_) {
        note_damage({position_, 0, expected_block_,
                     block_text(block_.number) + " where " + block_text(expected_block_) + " was expected"});
    }
    if (block_.first_record > expected_record_) {
        condition_.missing_records += block_.first_record - expected_record_;
    }
    if (block_.first_record < expected_record_ || (follows && block_.first_record != expected_record_)) {
        note_damage({block_offset_, 0, block_.number,
                     block_text(block_.number) + " counts " + std::to_string(block_.first_record) +
                         " records before it, found " + std::to_string(expected_record_)});
    }
    const IndexEntry found{block_offset_, block_.records, block_.payload_crc, block_.first_time,
                           block_.last_time};
    if (trailer_ && (block_.number >= index_.size() || index_[block_.number] != found)) {
        note_damage(
            {block_offset_, 0, block_.number, "index and " + block_text(block_.number) + " disagree"});
    }
    if (block_.first_time != time_of(buffer_.data()) ||
        block_.last_time != time_of(buffer_.data() + buffer_.size() - header_.record_bytes)) {
        note_damage(
            {block_offset_, 0, block_.number,
             "times in the header of " + block_text(block_.number) + " are not those of its records"});
    }
    ++condition_.blocks;
    condition_.records += block_.records;
    condition_.payload_crc = crc32c_combine(condition_.payload_crc, block_.payload_crc, buffer_.size());
    expected_block_ = block_.number + 1;
    expected_record_ = block_.first_record + block_.records;
    position_ = block_offset_ + sizeof block_ + buffer_.size();
}

void ListModeReader::note_damage(Damage damage) {
    ++condition_.damage_count;
    condition_.damaged_bytes += damage.bytes;
    if (condition_.damage.size() < max_damage_kept) condition_.damage.push_back(std::move(damage));
}

void ListModeReader::finish() {
    done_ = true;
    buffer_.clear();
    block_ = {};
    if (trailer_) {
        const std::uint64_t records_end = selected_ ? selected_end_ : trailer_->records;
        if (records_end > expected_record_) condition_.missing_records += records_end - expected_record_;
        if (condition_.damage_count == 0 && !selected_ &&
            (trailer_->blocks != condition_.blocks || trailer_->records != condition_.records ||
             trailer_->payload_crc != condition_.payload_crc)) {
            note_damage({blocks_end_, 0, expected_block_,
                         "trailer counts " + std::to_string(trailer_->blocks) + " blocks and " +
                             std::to_string(trailer_->records) + " records, found " +
                             std::to_string(condition_.blocks) + " and " +
                             std::to_string(condition_.records)});
        }
    }
    if (condition_.damage_count != 0) {
        condition_.state = FileState::damaged;
    } else if (!trailer_) {
        condition_.state = FileState::truncated;
    }
}

std::span<const gpu::Coincidence> ListModeReader::coincidences() const {
    if (kind() != RecordKind::coincidences) throw std::logic_error(path_.string() + " holds singles");
    return {reinterpret_cast<const gpu::Coincidence*>(buffer_.data()),
            buffer_.size() / sizeof(gpu::Coincidence)};
}

std::span<const gpu::Single> ListModeReader::singles() const {
    if (kind() != RecordKind::singles) throw std::logic_error(path_.string() + " holds coincidences");
    return {reinterpret_cast<const gpu::Single*>(buffer_.data()), buffer_.size() / sizeof(gpu::Single)};
}

}  // namespace petacq::daemon
