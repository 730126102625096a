#include "tools/petsim/simulation/base/truth.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "config/base/json_file.hpp"

namespace petacq::sim {

namespace {

static_assert(std::endian::native == std::endian::little, "records are written as they stand in memory");

constexpr std::array<char, 8> magic{'P', 'E', 'T', 'T', 'R', 'U', 'T', 'H'};
constexpr std::size_t header_alignment = 64;
constexpr std::size_t records_per_write = 1U << 17;

struct TruthHeader {
    std::array<char, 8> magic;
    std::uint32_t version;
    std::uint32_t record_bytes;
    std::uint32_t header_bytes;  ///< offset of the first record
    std::uint32_t description_bytes;
};
static_assert(sizeof(TruthHeader) == 24);

}  // namespace

TruthWriter::TruthWriter(const std::filesystem::path& file, const nlohmann::json& description, bool with_hits)
    : file_(file, daemon::IfExists::overwrite), with_hits_(with_hits) {
    const std::string text = description.dump();
    std::string header(
        (sizeof(TruthHeader) + text.size() + header_alignment - 1) / header_alignment * header_alignment,
        '\0');
    const TruthHeader fields{
        magic, with_hits ? 2U : 1U, static_cast<std::uint32_t>(with_hits ? truth_bytes_2 : truth_bytes_1),
        static_cast<std::uint32_t>(header.size()), static_cast<std::uint32_t>(text.size())};
    std::memcpy(header.data(), &fields, sizeof fields);
    std::memcpy(header.data() + sizeof fields, text.data(), text.size());
    file_.append(std::string_view(header));
    filling_.reserve(2 * records_per_write);
    thread_ = std::thread([this] { write_loop(); });
}

TruthWriter::~TruthWriter() {
    try {
        close();
    } catch (const std::system_error&) {
        // Callers that need to know call close() themselves.
    }
}

void TruthWriter::add(std::span<const TruthRecord> records) {
    records_ += records.size();
    filling_.insert(filling_.end(), records.begin(), records.end());
    if (filling_.size() < records_per_write) return;
    net::MutexLock lock(mutex_);
    while (busy_)
        changed_.wait(lock.native());
    rethrow_failure();
    std::swap(filling_, writing_);
    filling_.clear();
    busy_ = true;
    changed_.notify_all();
}

void TruthWriter::close() {
    if (!thread_.joinable()) return;
    {
        net::MutexLock lock(mutex_);
        while (busy_)
            changed_.wait(lock.native());
        std::swap(filling_, writing_);
        busy_ = true;
        closing_ = true;
        changed_.notify_all();
    }
    thread_.join();
    const net::MutexLock lock(mutex_);
    rethrow_failure();
    file_.close();
}

void TruthWriter::rethrow_failure() {
    if (failure_) std::rethrow_exception(failure_);
}

void TruthWriter::write_loop() {
    net::MutexLock lock(mutex_);
    for (;;) {
        while (!busy_)
            changed_.wait(lock.native());
        lock.unlock();
        std::exception_ptr failure;
        try {
            if (with_hits_) {
                file_.append(std::as_bytes(std::span(writing_)));
            } else {
                packed_.resize(writing_.size() * truth_bytes_1);
                for (std::size_t i = 0; i < writing_.size(); ++i)
                    std::memcpy(&packed_[i * truth_bytes_1], &writing_[i], truth_bytes_1);
                file_.append(std::span<const std::byte>(packed_));
            }
        } catch (const std::system_error&) {
            failure = std::current_exception();
        }
        lock.lock();
        if (!failure_) failure_ = failure;
        busy_ = false;
        changed_.notify_all();
        if (closing_) return;
    }
}

std::vector<TruthRecord> read_truth(const std::filesystem::path& file, nlohmann::json* description) {
    const auto wrong = [&](const std::string& what) {
        return std::runtime_error("truth file " + file.string() + ": " + what);
    };
    std::ifstream in(file, std::ios::binary);
    if (!in) throw wrong(std::strerror(errno));
    TruthHeader header{};
    if (!in.read(reinterpret_cast<char*>(&header), sizeof header) || header.magic != magic) {
        throw wrong("does not begin with \"PETTRUTH\"");
    }
    const std::size_t bytes = header.version == 1 ? truth_bytes_1 : truth_bytes_2;
    if (header.version < 1 || header.version > 2 || header.record_bytes != bytes) {
        throw wrong("version " + std::to_string(header.version) + " with records of " +
                    std::to_string(header.record_bytes) +
                    " bytes; expected version 1 with 40 or version 2 with 64");
    }
    const std::uintmax_t size = std::filesystem::file_size(file);
    if (header.header_bytes > size || sizeof header + header.description_bytes > header.header_bytes ||
        (size - header.header_bytes) % bytes != 0) {
        throw wrong("truncated or damaged");
    }
    std::string text(header.description_bytes, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (config::json_nested_deeper(text)) throw wrong("the description is nested too deeply");
    nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
    if (parsed.is_discarded()) throw wrong("the description is not JSON");
    if (description != nullptr) *description = std::move(parsed);
    std::vector<TruthRecord> records((size - header.header_bytes) / bytes);
    in.seekg(header.header_bytes);
    std::vector<char> packed;
    for (std::size_t done = 0; done < records.size();) {
        const std::size_t count = std::min(records_per_write, records.size() - done);
        packed.resize(count * bytes);
        in.read(packed.data(), static_cast<std::streamsize>(packed.size()));
        if (!in) throw wrong("cannot be read to the end");
        for (std::size_t i = 0; i < count; ++i)
            std::memcpy(&records[done + i], &packed[i * bytes], bytes);
        done += count;
    }
    return records;
}

}  // namespace petacq::sim
