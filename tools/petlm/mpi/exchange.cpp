#include "tools/petlm/mpi/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "daemon/run/directory.hpp"
#include "daemon/space/reserve.hpp"
#include "tools/petlm/base/status.hpp"

namespace petacq::petlm {
namespace {

constexpr int singles_tag = 2;
constexpr int files_tag = 3;
constexpr std::chrono::milliseconds poll_interval(50);
/// What one host has written, others see on a shared file system by now.
constexpr std::chrono::seconds max_late(300);

using nlohmann::json;

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
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(Value));
    return values;
}

/// Whether nobody writes the run any more: everything is in its files by now. `document`: its run.json, read
/// again if it has changed meanwhile.
bool has_ended(const std::filesystem::path& run, json& document) {
    if (document.value("state", json()) != "running") return true;
    if (daemon::is_being_written(run)) return false;
    document = run_document(run);  // it may have ended between the two looks
    return true;
}

constexpr std::size_t piece_bytes = std::size_t{16} << 20U;

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
    throw std::system_error(std::make_error_code(std::errc::io_error), file.string() + ": " + what);
}

/// Of the seconds, and of the tags, which may be in several files.
std::vector<std::string> names_beside_singles(const std::filesystem::path& run) {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(run)) {
        const std::string name = entry.path().filename().string();
        const bool wanted = name.starts_with("tags") || name == daemon::seconds_file;
        if (wanted && name.ends_with(".plm")) names.push_back(name);
    }
    return names;
}

/// In pieces; the last one is shorter than the others.
void send_file(const Communicator& ranks, const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) fail(file, "cannot be read");
    std::vector<std::byte> piece(piece_bytes);
    for (std::size_t sent = piece_bytes; sent == piece_bytes;) {
        in.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
        if (in.bad()) fail(file, "cannot be read");
        sent = static_cast<std::size_t>(in.gcount());
        ranks.send(std::span(piece).first(sent), 0, files_tag);
    }
}

void receive_file(const Communicator& ranks, int from, const std::filesystem::path& file) {
    std::ofstream out(file, std::ios::binary);
    for (;;) {
        const std::vector<std::byte> piece = ranks.receive(from, files_tag);
        out.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
        if (piece.size() < piece_bytes) break;
    }
    if (!out.flush()) fail(file, "cannot be written");
}

}  // namespace

Exchange::Exchange(Communicator& ranks, std::span<const std::filesystem::path> runs, bool follow)
    : ranks_(ranks), follow_(follow), runs_(runs.begin(), runs.end()), told_(runs.size()) {
    if (find_runs()) return;
    while (!find_runs())
        std::this_thread::sleep_for(poll_interval);
    // A shared file system shows a run to some ranks first. Those that do not see it cannot read it later.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    find_runs();
}

/// False: no rank can read one of them yet.
bool Exchange::find_runs() {
    const bool first = std::exchange(readable_, {}).empty();
    bool all = true;
    for (const std::filesystem::path& run : runs_) {
        readable_.push_back(ranks_.gather(std::filesystem::exists(run / daemon::run_file) ? 1 : 0));
        if (std::any_of(readable_.back().begin(), readable_.back().end(), [](auto can) { return can != 0; }))
            continue;
        if (!follow_)
            throw UsageError(fmt::format("{}: no rank can read its {}", run.string(), daemon::run_file));
        if (first && ranks_.rank() == 0)
            std::cerr << fmt::format("petlm-mpi: waiting for {}: no rank sees its {}\n", run.string(),
                                     daemon::run_file);
        all = false;
    }
    return all;
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
        std::optional<SinglesFiles> files;
        std::vector<std::byte> bytes;
        if (can_read(run, ranks_.rank()))
            files.emplace(follow_ ? SinglesFiles::followed(runs_[run]) : SinglesFiles(runs_[run]));
        if (ranks_.rank() == from) {
            const json opened = {run_document(runs_[run]), files->description(), files->block_bytes()};
            bytes = bytes_of(opened.dump());
        }
        ranks_.broadcast(bytes, from);
        const auto opened = json::parse(text_of(bytes));
        if (!files) files.emplace(SinglesFiles(opened[1], opened[2].get<std::uint32_t>()));
        inputs.runs.push_back(runs_[run]);
        inputs.files_at.push_back(runs_[run]);
        inputs.documents.push_back(opened[0]);
        inputs.singles.push_back(std::move(*files));
        inputs.ended.push_back(false);
        inputs.coverages.push_back(daemon::coverage_of_run(opened[0]));
    }
    inputs.whole_blocks = follow_;
    return inputs;
}

void Exchange::extend(Inputs& inputs) {
    for (std::size_t run = 0; run < runs_.size(); ++run)
        if (!inputs.ended[run]) extend(inputs, run);
}

void Exchange::extend(Inputs& inputs, std::size_t run) {
    const int from = provider(run, 0);
    SinglesFiles& files = inputs.singles[run];
    std::vector<std::byte> news;
    std::vector<std::byte> blocks;
    if (ranks_.rank() == from) {
        json document = run_document(runs_[run]);
        const bool ended = !follow_ || has_ended(runs_[run], document);
        const bool complete = !follow_ || files.extend();
        if (ended && !complete && document.value("state", json()) == "complete") {
            throw BadInput(runs_[run].string() +
                           ": its singles are incomplete; 'petlm recover' copies their whole blocks");
        }
        blocks = bytes_of(files.blocks().subspan(told_[run]));
        // A run that has ended says at last what its singles cover.
        const daemon::Coverage coverage =
            ended ? coverage_of_singles(runs_[run], document) : daemon::coverage_of_run(document);
        if (document == inputs.documents[run]) document = nullptr;
        news = bytes_of(json{ended, document, to_json(coverage)}.dump());
    }
    for (auto* const bytes : {&news, &blocks})
        ranks_.broadcast(*bytes, from);
    const auto told = json::parse(text_of(news));
    inputs.ended[run] = told[0].get<bool>();
    if (!told[1].is_null()) inputs.documents[run] = told[1];
    inputs.coverages[run] = daemon::coverage_from_json(told[2]);
    const auto added = values_of<SinglesFiles::SinglesBlock>(blocks);
    told_[run] += added.size();
    if (!can_read(run, ranks_.rank())) files.append(added);
    const auto late = std::chrono::steady_clock::now() + max_late;
    // Not more than all ranks know, lest this rank plan other shards than they.
    while (files.blocks().size() < told_[run]) {
        files.extend(told_[run]);
        if (files.blocks().size() >= told_[run]) break;
        if (std::chrono::steady_clock::now() > late) {
            throw BadInput(fmt::format("{}: this rank does not see what rank {} has seen {} s ago",
                                       runs_[run].string(), from, max_late.count()));
        }
        std::this_thread::sleep_for(poll_interval);
    }
}

std::vector<Exchange::Shipped> Exchange::shipped(const Inputs& inputs, gpu::TickRange range, int from,
                                                 int to) const {
    std::vector<Shipped> all;
    if (range.start >= range.end) return all;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        if (can_read(run, to) || provider(run, to) != from) continue;
        for (const SinglesFiles::SinglesBlock& block : inputs.singles[run].blocks_in(range))
            all.push_back({run, &block});
    }
    return all;
}

// In step s a rank sends to the one s places after it, and receives from the one s places before it:
// all links are busy at once, and no ranks wait for each other in a circle.
void Exchange::singles(Inputs& inputs, std::span<const gpu::TickRange> wanted) {
    const int ranks = ranks_.size();
    const int own = ranks_.rank();
    const gpu::TickRange own_range = wanted[static_cast<std::size_t>(own)];
    std::vector<std::vector<gpu::Single>> received(runs_.size());
    daemon::LoadedBlock memory;
    for (int step = 1; step < ranks; ++step) {
        const int to = (own + step) % ranks;
        const int from = (own + ranks - step) % ranks;
        const auto out = shipped(inputs, wanted[static_cast<std::size_t>(to)], own, to);
        const auto in = shipped(inputs, own_range, from, own);
        for (std::size_t i = 0; i < std::max(out.size(), in.size()); ++i) {
            std::span<const gpu::Single> sent;
            if (i < out.size()) sent = inputs.singles[out[i].run].read(*out[i].block, memory);
            std::span<gpu::Single> place;
            if (i < in.size()) {
                std::vector<gpu::Single>& singles = received[in[i].run];
                singles.resize(singles.size() + in[i].block->records);
                place = std::span(singles).last(in[i].block->records);
            }
            ranks_.swap(std::as_bytes(sent), to, std::as_writable_bytes(place), from, singles_tag);
        }
    }
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        if (own_range.start >= own_range.end || can_read(run, own)) continue;
        inputs.singles[run].receive(inputs.singles[run].blocks_in(own_range), std::move(received[run]));
    }
}

std::vector<std::filesystem::path> Exchange::files(const std::filesystem::path& directory) {
    std::vector<std::filesystem::path> places;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
        places.push_back(runs_[run]);
        if (can_read(run, 0)) continue;
        const int from = provider(run, 0);
        if (ranks_.rank() == 0) {
            places.back() = directory / fmt::format("{:04}", run);
            std::filesystem::create_directories(places.back());
        }
        if (ranks_.rank() == from) {
            const std::vector<std::string> names = names_beside_singles(runs_[run]);
            ranks_.send(bytes_of(json(names).dump()), 0, files_tag);
            for (const std::string& name : names)
                send_file(ranks_, runs_[run] / name);
        }
        if (ranks_.rank() == 0) {
            const json names = json::parse(text_of(ranks_.receive(from, files_tag)));
            for (const std::string name : names)
                receive_file(ranks_, from, places.back() / name);
        }
    }
    return places;
}

}  // namespace petacq::petlm
