#include "tools/petlm/mpi/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "daemon/run/directory.hpp"
#include "tools/petlm/records/status.hpp"
#include "tools/petlm/resort/second_ranges.hpp"

namespace petacq::petlm {
namespace {

constexpr int singles_tag = 2;
constexpr int files_tag = 3;

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class Value>
std::vector<std::byte> bytes_of(std::span<const Value> values) {
    const auto bytes = std::as_bytes(values);
    return {bytes.begin(), bytes.end()};
}

template <class Value>
std::vector<Value> values_of(std::span<const std::byte> bytes) {
    std::vector<Value> values(bytes.size() / sizeof(Value));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
    return values;
}

std::string content_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Exchange::Exchange(Communicator& ranks, std::span<const std::filesystem::path> runs)
    : ranks_(ranks), runs_(runs.begin(), runs.end()) {
    for (const std::filesystem::path& run : runs_) {
        readable_.push_back(ranks_.gather(std::filesystem::exists(run / daemon::run_file) ? 1 : 0));
        if (std::none_of(readable_.back().begin(), readable_.back().end(), [](auto can) { return can != 0; }))
            throw UsageError(fmt::format("{}: no rank can read its {}", run.string(), daemon::run_file));
    }
}

int Exchange::provider(std::size_t run, int for_rank) const {
    std::vector<int> able;
    for (int rank = 0; rank < ranks_.size(); ++rank)
        if (can_read(run, rank)) able.push_back(rank);
    return able[static_cast<std::size_t>(for_rank) % able.size()];
}

Inputs Exchange::open() {
    Inputs inputs;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        const int from = provider(run, 0);
        const bool own = can_read(run, ranks_.rank());
        std::optional<SinglesFiles> files;
        std::vector<std::byte> document;
        std::vector<std::byte> description;
        std::vector<std::byte> blocks;
        std::vector<std::byte> seconds;
        if (own) files.emplace(runs_[run]);
        if (ranks_.rank() == from) {
            document = bytes_of(run_document(runs_[run]).dump());
            const nlohmann::json of_singles = {files->block_bytes(), files->description()};
            description = bytes_of(of_singles.dump());
            blocks = bytes_of(files->blocks());
            seconds = bytes_of(std::span<const gpu::TickRange>(recorded_seconds(runs_[run])));
        }
        for (auto* const bytes : {&document, &description, &blocks, &seconds})
            ranks_.broadcast(*bytes, from);
        if (!own) {
            const auto of_singles = nlohmann::json::parse(text_of(description));
            files.emplace(values_of<SinglesFiles::Block>(blocks), of_singles[1],
                          of_singles[0].get<std::uint32_t>());
        }
        inputs.runs.push_back(runs_[run]);
        inputs.documents.push_back(nlohmann::json::parse(text_of(document)));
        inputs.singles.push_back(std::move(*files));
        const auto recorded = values_of<gpu::TickRange>(seconds);
        inputs.recorded.insert(inputs.recorded.end(), recorded.begin(), recorded.end());
    }
    return inputs;
}

// All ranks go through the same pairs of sender and receiver in the same order, so that none waits in a
// circle.
void Exchange::singles(Inputs& inputs, std::span<const gpu::TickRange> wanted) {
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        for (int to = 0; to < ranks_.size(); ++to) {
            const gpu::TickRange range = wanted[static_cast<std::size_t>(to)];
            if (can_read(run, to) || range.start >= range.end) continue;
            SinglesFiles& files = inputs.singles[run];
            const auto blocks = files.blocks_in(range);
            const int from = provider(run, to);
            if (ranks_.rank() == from) {
                daemon::LoadedBlock memory;
                for (const SinglesFiles::Block& block : blocks)
                    ranks_.send(std::as_bytes(files.read(block, memory)), to, singles_tag);
            }
            if (ranks_.rank() == to) {
                std::vector<gpu::Single> received;
                for (const SinglesFiles::Block& block : blocks) {
                    const std::vector<std::byte> bytes = ranks_.receive(from, singles_tag);
                    received.resize(received.size() + block.records);
                    std::memcpy(received.data() + received.size() - block.records, bytes.data(),
                                bytes.size());
                }
                files.receive(blocks, std::move(received));
            }
        }
    }
}

std::vector<std::filesystem::path> Exchange::files(std::span<const char* const> names,
                                                   const std::filesystem::path& directory) {
    std::vector<std::filesystem::path> places;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        places.push_back(runs_[run]);
        if (can_read(run, 0)) continue;
        const int from = provider(run, 0);
        if (ranks_.rank() == 0) {
            places.back() = directory / fmt::format("{:04}", run);
            std::filesystem::create_directories(places.back());
        }
        for (const char* name : names) {
            if (ranks_.rank() == from) ranks_.send(bytes_of(content_of(runs_[run] / name)), 0, files_tag);
            if (ranks_.rank() != 0) continue;
            const std::vector<std::byte> bytes = ranks_.receive(from, files_tag);
            if (bytes.empty()) continue;  // the run has none
            std::ofstream(places.back() / name, std::ios::binary)
                .write(reinterpret_cast<const char*>(bytes.data()),
                       static_cast<std::streamsize>(bytes.size()));
        }
    }
    return places;
}

}  // namespace petacq::petlm
