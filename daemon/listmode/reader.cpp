#include "daemon/listmode/reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "daemon/listmode/crc32c.hpp"
#include "daemon/listmode/set.hpp"

namespace petacq::daemon {
namespace {

constexpr std::size_t max_damage_kept = 100;

/// The file itself or, if it cannot be read or is not there, another one of its set.
std::unique_ptr<ListModeFileReader> open_any(const std::filesystem::path& path) {
    std::exception_ptr failure;
    try {
        return std::make_unique<ListModeFileReader>(path);
    } catch (...) {
        failure = std::current_exception();
    }
    const std::filesystem::path set = set_of_file(path);
    if (set != path || !std::filesystem::exists(path)) {
        for (std::uint32_t file = 0; file < max_files; ++file) {
            try {
                auto reader = std::make_unique<ListModeFileReader>(file_of_set(set, file));
                if (reader->files() > 1) return reader;
            } catch (const std::exception&) {
                continue;  // the next one may do
            }
        }
    }
    std::rethrow_exception(failure);
}

/// The first of `files` blocks with the number `file` and on, in steps of `files`, whose number is not below
/// `block`.
std::size_t first_entry(std::size_t block, std::size_t file, std::size_t files) {
    return block <= file ? 0 : (block - file + files - 1) / files;
}

}  // namespace

const char* name_of(FileState state) {
    constexpr std::array names{"complete", "truncated", "damaged"};
    return names.at(static_cast<std::size_t>(state));
}

std::string Condition::summary() const {
    std::string text = name_of(state);
    text += ": " + std::to_string(blocks) + " whole blocks, " + std::to_string(records) + " records";
    if (files > 1) text += " in " + std::to_string(files) + " files";
    if (state == FileState::complete) return text;
    if (damage_count != 0) {
        text += "; " + std::to_string(damage_count) + (damage_count == 1 ? " fault" : " faults");
        if (!damage.empty()) {
            const Damage& first = damage.front();
            text += ", the first " + (first.file.empty() ? "" : "in " + first.file + " ") + "at offset " +
                    std::to_string(first.offset) + " (" + first.what + ")";
        }
    }
    if (missing_records != 0) text += "; " + std::to_string(missing_records) + " records missing";
    if (!has_index) {
        text += "; no index, " + std::to_string(tail_bytes) + " bytes after the last whole block";
    }
    return text;
}

ListModeReader::ListModeReader(std::filesystem::path path) : path_(std::move(path)) {
    open_set(open_any(path_));
    const auto readable = std::find_if(members_.begin(), members_.end(),
                                       [](const FileOfSet& m) { return m.reader != nullptr; });
    current_ = &*readable;
    condition_.files = static_cast<std::uint32_t>(members_.size());
    condition_.has_index = std::all_of(members_.begin(), members_.end(),
                                       [](const FileOfSet& m) { return m.reader && m.reader->trailer(); });
    if (condition_.has_index) join_indexes();
}

ListModeReader::~ListModeReader() = default;

void ListModeReader::open_set(std::unique_ptr<ListModeFileReader> first) {
    const std::uint32_t files = first->files();
    path_ = first->path();
    if (files > 1) {
        path_ = set_of_file(first->path());
        if (first->path() != file_of_set(path_, first->file())) {
            throw NotListMode(first->path().string() + ": one of a set of " + std::to_string(files) +
                              " files; expected a name that ends in ." + std::to_string(first->file() + 1) +
                              ".plm");
        }
    }
    const std::uint32_t place = first->file();
    members_.resize(files);
    members_[place].reader = std::move(first);
    current_ = &members_[place];
    for (std::uint32_t file = 0; file < files; ++file) {
        if (file != place) members_[file] = open_member(file);
    }
}

ListModeReader::FileOfSet ListModeReader::open_member(std::uint32_t file) const {
    FileOfSet member;
    const std::filesystem::path path = file_of_set(path_, file);
    try {
        member.reader = std::make_unique<ListModeFileReader>(path);
        const ListModeFileReader& r = *member.reader;
        const bool fits = r.files() == members_.size() && r.file() == file && r.header().kind == kind() &&
                          r.header().block_bytes == header().block_bytes &&
                          r.header_description() == current_->reader->header_description();
        if (fits) return member;
        member.why = "the file belongs to another set";
    } catch (const NotListMode& error) {
        member.why = error.what();
    } catch (const std::system_error& error) {
        member.why = error.code().value() == ENOENT ? "the file is missing" : error.what();
    }
    member.reader.reset();
    return member;
}

// REQUIRES: every file has an index.
void ListModeReader::join_indexes() {
    const std::size_t files = members_.size();
    Trailer sum;
    for (const FileOfSet& member : members_) {
        sum.blocks += member.reader->trailer()->blocks;
        sum.records += member.reader->trailer()->records;
    }
    records_end_ = sum.records;
    for (std::size_t file = 0; file < files; ++file) {
        // After a failure the files may end with any block.
        if (members_[file].reader->index().size() != first_entry(sum.blocks, file, files)) return;
    }
    index_.reserve(sum.blocks);
    for (std::size_t block = 0; block < sum.blocks; ++block) {
        // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a set has files
        const IndexEntry& entry = members_[block % files].reader->index()[block / files];
        index_.push_back(entry);
        sum.payload_crc = crc32c_combine(sum.payload_crc, entry.payload_crc,
                                         std::uint64_t{entry.records} * header().record_bytes);
    }
    trailer_ = files == 1 ? members_.front().reader->trailer() : sum;
}

const nlohmann::json& ListModeReader::description() const {
    return current_->reader->description();
}

const FileHeader& ListModeReader::header() const {
    return current_->reader->header();
}

std::uint64_t ListModeReader::file_bytes() const {
    std::uint64_t bytes = 0;
    for (const FileOfSet& member : members_)
        bytes += member.reader ? member.reader->bytes() : 0;
    return bytes;
}

std::uint64_t ListModeReader::bytes_done() const {
    std::uint64_t bytes = 0;
    for (const FileOfSet& member : members_)
        bytes += member.reader ? member.reader->position() : 0;
    return bytes;
}

void ListModeReader::select(std::uint64_t from, std::uint64_t to) {
    if (!trailer_) return;
    const auto first = std::partition_point(index_.begin(), index_.end(),
                                            [from](const IndexEntry& e) { return e.last_time < from; });
    const auto end =
        std::partition_point(first, index_.end(), [to](const IndexEntry& e) { return e.first_time < to; });
    const auto first_block = static_cast<std::size_t>(first - index_.begin());
    const auto end_block = static_cast<std::size_t>(end - index_.begin());
    const std::size_t files = members_.size();
    const auto entry = [&](std::size_t block, std::size_t file) { return first_entry(block, file, files); };
    for (std::size_t file = 0; file < files; ++file) {
        // The index contradicts itself. Reading everything will find the fault.
        if (!members_[file].reader->can_select(entry(first_block, file), entry(end_block, file))) return;
    }
    for (std::size_t file = 0; file < files; ++file)
        members_[file].reader->select(entry(first_block, file), entry(end_block, file));
    const auto records_in = [](auto from_entry, auto to_entry) {
        return std::accumulate(from_entry, to_entry, std::uint64_t{0},
                               [](std::uint64_t sum, const IndexEntry& e) { return sum + e.records; });
    };
    expected_block_ = first_block;
    expected_record_ = records_in(index_.begin(), first);
    records_end_ = expected_record_ + records_in(first, end);
}

bool ListModeReader::next() {
    if (done_) return false;
    if (std::exchange(started_, true)) {
        advance(*current_);
    } else {
        for (FileOfSet& member : members_)
            if (member.reader) advance(member);
    }
    FileOfSet* earliest = nullptr;
    for (FileOfSet& member : members_) {
        if (!member.at_block) continue;
        if (earliest == nullptr || member.reader->block().number < earliest->reader->block().number)
            earliest = &member;
    }
    if (earliest == nullptr) {
        finish();
        return false;
    }
    current_ = earliest;
    current_->at_block = false;
    accept_block();
    return true;
}

void ListModeReader::advance(FileOfSet& member) {
    found_.clear();
    member.at_block = member.reader->next(found_);
    for (Damage& damage : found_)
        note(std::move(damage));
}

void ListModeReader::note(Damage damage) {
    ++condition_.damage_count;
    condition_.damaged_bytes += damage.bytes;
    if (condition_.damage.size() < max_damage_kept) condition_.damage.push_back(std::move(damage));
}

// Later blocks are there, this one is not.
void ListModeReader::note_missing(std::uint64_t block) {
    const std::size_t file = block % members_.size();
    FileOfSet& member = members_[file];
    if (member.at_block || &member == current_ || std::exchange(member.missed, true)) return;
    Damage damage{0, 0, block, member.why, file_of_set(path_, static_cast<std::uint32_t>(file)).filename()};
    if (member.reader) {
        damage.offset = member.reader->position();
        damage.what =
            (member.reader->trailer() ? "the file was closed before block " : "the file ends before block ") +
            std::to_string(block);
        if (!member.reader->trailer()) ++condition_.cut_off_count;
    }
    note(std::move(damage));
}

void ListModeReader::accept_block() {
    const BlockHeader& found = block();
    const bool follows = found.number == expected_block_;
    // The file itself tells of blocks missing in its middle; one look at each other file is enough.
    for (std::uint64_t i = 0; i < members_.size() && expected_block_ + i < found.number; ++i)
        note_missing(expected_block_ + i);
    if (found.first_record > expected_record_) {
        condition_.missing_records += found.first_record - expected_record_;
    }
    if (found.first_record < expected_record_ || (follows && found.first_record != expected_record_)) {
        Damage damage{block_offset(), 0, found.number,
                      "block " + std::to_string(found.number) + " counts " +
                          std::to_string(found.first_record) + " records before it, found " +
                          std::to_string(expected_record_)};
        if (members_.size() > 1) damage.file = current_->reader->path().filename();
        note(std::move(damage));
    }
    ++condition_.blocks;
    condition_.records += found.records;
    condition_.payload_crc = crc32c_combine(condition_.payload_crc, found.payload_crc, payload().size());
    expected_block_ = found.number + 1;
    expected_record_ = found.first_record + found.records;
}

void ListModeReader::finish() {
    done_ = true;
    const bool closed = std::any_of(members_.begin(), members_.end(),
                                    [](const FileOfSet& m) { return m.reader && m.reader->trailer(); });
    for (std::uint32_t file = 0; file < members_.size(); ++file) {
        const FileOfSet& member = members_[file];
        if (member.reader) {
            condition_.tail_bytes += member.reader->tail_bytes();
        } else if (closed && !member.missed) {
            note({0, 0, expected_block_, member.why, file_of_set(path_, file).filename()});
        }
    }
    if (records_end_ && *records_end_ > expected_record_)
        condition_.missing_records += *records_end_ - expected_record_;
    if (condition_.damage_count != condition_.cut_off_count) {
        condition_.state = FileState::damaged;
    } else if (!condition_.has_index) {
        condition_.state = FileState::truncated;
    }
}

template <class Record>
std::span<const Record> ListModeReader::records_of(RecordKind kind) const {
    if (this->kind() != kind) throw std::logic_error(path_.string() + " holds " + name_of(this->kind()));
    return {reinterpret_cast<const Record*>(payload().data()), payload().size() / sizeof(Record)};
}

std::span<const gpu::Coincidence> ListModeReader::coincidences() const {
    return records_of<gpu::Coincidence>(RecordKind::coincidences);
}

std::span<const gpu::Single> ListModeReader::singles() const {
    return records_of<gpu::Single>(RecordKind::singles);
}

std::span<const gpu::Tag> ListModeReader::tags() const {
    return records_of<gpu::Tag>(RecordKind::tags);
}

std::span<const gpu::Triple> ListModeReader::triples() const {
    return records_of<gpu::Triple>(RecordKind::triples);
}

}  // namespace petacq::daemon
