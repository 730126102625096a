// All records of a list-mode file.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <vector>

#include "daemon/listmode/reader.hpp"
#include "gpu/base/records.hpp"

namespace petacq::test {

template <class Record, class Get>
gpu::RecordVector<Record> read_all(const std::filesystem::path& path, Get get) {
    daemon::ListModeReader reader(path);
    gpu::RecordVector<Record> all;
    while (reader.next()) {
        const auto records = get(reader);
        all.insert(all.end(), records.begin(), records.end());
    }
    if (reader.condition().state != daemon::FileState::complete)
        throw std::runtime_error(path.string() + ": " + reader.condition().summary());
    return all;
}

/// These throw std::runtime_error when the file is not complete, std::logic_error when it holds the other
/// kind.
inline gpu::RecordVector<gpu::Coincidence> read_coincidences(const std::filesystem::path& path) {
    return read_all<gpu::Coincidence>(path, [](const auto& reader) { return reader.coincidences(); });
}
inline gpu::RecordVector<gpu::Single> read_singles(const std::filesystem::path& path) {
    return read_all<gpu::Single>(path, [](const auto& reader) { return reader.singles(); });
}
inline gpu::RecordVector<gpu::Triple> read_triples(const std::filesystem::path& path) {
    return read_all<gpu::Triple>(path, [](const auto& reader) { return reader.triples(); });
}

}  // namespace petacq::test
