// Reads the seconds of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "daemon/listmode/reader.hpp"
#include "daemon/seconds/record.hpp"

namespace petacq::daemon {

/// The numbers of one field in one record. Valid as long as the record.
class FieldValues {
  public:
    FieldValues(const SecondField& field, const std::byte* record)
        : type_(field.type), count_(field.count), at_(record + field.offset) {}

    [[nodiscard]] std::size_t size() const { return count_; }
    /// In shortest form that reads back to the same number; "nan".
    [[nodiscard]] std::string text(std::size_t i) const;
    /// Rounded to a double.
    [[nodiscard]] double number(std::size_t i = 0) const;
    /// REQUIRES: the type is u64.
    [[nodiscard]] std::uint64_t whole(std::size_t i = 0) const;
    /// Sum of number(i).
    [[nodiscard]] double sum() const;

  private:
    FieldType type_;
    std::size_t count_;
    const std::byte* at_;
};

/// One pass from the first second to the last. One thread at a time.
class SecondsReader {
  public:
    /// Throws as ListModeReader does, and NotListMode for a file of another kind, or with a description that
    /// cannot be used.
    explicit SecondsReader(const std::filesystem::path& path);

    [[nodiscard]] const std::vector<SecondField>& fields() const { return fields_; }
    /// nullptr: the file has no such field.
    [[nodiscard]] const SecondField* find(const std::string& name) const;

    /// Goes to the next second. False at the end; condition() of reader() tells what is missing.
    bool next();
    /// A field of the current second. The values are valid until the next call of next().
    [[nodiscard]] FieldValues values(const SecondField& field) const { return {field, record_.data()}; }
    [[nodiscard]] std::uint64_t start() const { return values(fields_[0]).whole(); }
    [[nodiscard]] std::uint64_t length() const { return values(fields_[1]).whole(); }
    [[nodiscard]] std::span<const std::byte> record() const { return record_; }

    [[nodiscard]] ListModeReader& reader() { return reader_; }
    [[nodiscard]] const ListModeReader& reader() const { return reader_; }

  private:
    ListModeReader reader_;
    std::vector<SecondField> fields_;
    std::span<const std::byte> left_;    ///< of the block, after the current record
    std::span<const std::byte> record_;  ///< the current one
};

}  // namespace petacq::daemon
