// Writes records to a list-mode file in full blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "daemon/listmode/file.hpp"

namespace petacq::petlm {

/// Not thread-safe. Throws as ListModeFile does.
class RecordFile {
  public:
    /// `has_closing`: close() gets a description that replaces members of this one.
    RecordFile(const std::filesystem::path& path, daemon::RecordKind kind, std::uint32_t block_bytes,
               const nlohmann::json& description, bool has_closing = false)
        : file_(path, kind, block_bytes, description, config::Compression::none, 0, has_closing),
          block_(block_bytes - sizeof(daemon::BlockHeader)) {}

    /// Appends records of the kind of the file, which continue the order.
    template <class Record>
    void append(std::span<const Record> records) {
        while (!records.empty()) {
            const std::size_t room = (block_.size() - used_) / sizeof(Record);
            const auto taken = records.first(std::min(room, records.size()));
            std::memcpy(block_.data() + used_, taken.data(), taken.size_bytes());
            used_ += taken.size_bytes();
            records = records.subspan(taken.size());
            if (taken.size() == room) write();
        }
    }
    void close() {
        if (used_ != 0) write();
        file_.close();
    }
    void close(const nlohmann::json& closing) {
        if (used_ != 0) write();
        file_.close(closing);
    }
    [[nodiscard]] std::uint64_t records() const { return file_.records(); }

  private:
    void write() {
        file_.write_block(std::span(block_).first(used_));
        used_ = 0;
    }

    daemon::ListModeFile file_;
    std::vector<std::byte> block_;  ///< its records
    std::size_t used_ = 0;
};

}  // namespace petacq::petlm
