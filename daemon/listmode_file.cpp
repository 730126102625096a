#include "daemon/listmode_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "daemon/crc32c.hpp"
#include "daemon/run_directory.hpp"

namespace petacq::daemon {

ListModeFile::ListModeFile(std::filesystem::path path, RecordKind kind, std::uint32_t block_bytes,
                           const nlohmann::json& description, FileCalls calls)
    : path_(std::move(path)), calls_(std::move(calls)), record_bytes_(record_bytes_of(kind)) {
    if (!calls_.write) calls_.write = ::write;
    if (!calls_.sync) calls_.sync = ::fdatasync;
    const auto header = make_file_header(kind, block_bytes, description);
    index_.reserve(1024);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file_ < 0) fail("cannot make it", errno);
    try {
        write_all(header);
        sync();
        sync_directory_of(path_);
    } catch (...) {
        ::close(file_);
        ::unlink(path_.c_str());
        throw;
    }
}

ListModeFile::~ListModeFile() {
    if (file_ >= 0) ::close(file_);
}

void ListModeFile::fail(const char* what, int error) const {
    throw std::system_error(error, std::generic_category(), path_.string() + ": " + what);
}

// All of it, or the file is as long as before.
void ListModeFile::write_all(std::span<const std::byte> data) {
    std::size_t done = 0;
    while (done < data.size()) {
        const ssize_t wrote = calls_.write(file_, data.data() + done, data.size() - done);
        if (wrote > 0) {
            done += static_cast<std::size_t>(wrote);
            continue;
        }
        const int error = wrote < 0 ? errno : EIO;
        if (error == EINTR) continue;
        // Both may fail on a broken disk; the reader copes with what is left.
        if (::ftruncate(file_, static_cast<off_t>(end_)) == 0) {
            static_cast<void>(::lseek(file_, static_cast<off_t>(end_), SEEK_SET));
        }
        fail("write failed", error);
    }
    end_ += data.size();
}

void ListModeFile::write_block(std::span<std::byte> block) {
    const auto payload = block.subspan(sizeof(BlockHeader));
    BlockHeader header;
    header.number = index_.size();
    header.records = static_cast<std::uint32_t>(payload.size() / record_bytes_);
    header.record_bytes = record_bytes_;
    header.first_time = time_of(payload.data());
    header.last_time = time_of(payload.data() + payload.size() - record_bytes_);
    header.first_record = records_;
    header.payload_crc = crc32c(payload);
    seal(header);
    std::memcpy(block.data(), &header, sizeof header);

    const std::uint64_t offset = end_;
    write_all(block);
    index_.push_back({offset, header.records, header.payload_crc, header.first_time, header.last_time});
    records_ += header.records;
    payload_crc_ = crc32c_combine(payload_crc_, header.payload_crc, payload.size());
    // Begin writing back now, so that the next sync is short. Only a hint: errors show in the sync.
    static_cast<void>(::sync_file_range(file_, static_cast<off_t>(offset), static_cast<off_t>(block.size()),
                                        SYNC_FILE_RANGE_WRITE));
}

void ListModeFile::sync() {
    if (calls_.sync(file_) != 0) fail("sync failed", errno);
}

void ListModeFile::close() {
    Trailer trailer;
    trailer.index_offset = end_;
    trailer.blocks = index_.size();
    trailer.records = records_;
    trailer.payload_crc = payload_crc_;
    const auto entries = std::as_bytes(std::span(index_));
    trailer.index_crc = crc32c(entries);
    seal(trailer);
    std::vector<std::byte> tail(entries.begin(), entries.end());
    const auto trailer_bytes = std::as_bytes(std::span(&trailer, 1));
    tail.insert(tail.end(), trailer_bytes.begin(), trailer_bytes.end());

    const int file = file_;
    try {
        write_all(tail);
        sync();
    } catch (...) {
        file_ = -1;
        ::close(file);
        throw;
    }
    file_ = -1;
    if (::close(file) != 0) fail("close failed", errno);
}

}  // namespace petacq::daemon
