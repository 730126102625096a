#include "tools/petlm/resort/parts/part.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "daemon/listmode/crc32c.hpp"
#include "daemon/system/file.hpp"
#include "tools/petlm/records/record_file.hpp"
#include "tools/petlm/resort/result/resorted_run.hpp"

namespace petacq::petlm {
namespace {

constexpr std::uint64_t magic = 0x3244524853544550;  // "PETSHRD2"

class Encoder {
  public:
    template <class Value>
    void put(const Value& value) {
        static_assert(std::is_trivially_copyable_v<Value>);
        const auto bytes = std::as_bytes(std::span(&value, 1));
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    template <class Value>
    void put(const std::vector<Value>& values) {
        put(std::uint64_t{values.size()});
        const auto bytes = std::as_bytes(std::span(values));
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    }
    std::vector<std::byte> finish() {
        put(daemon::crc32c(bytes_));
        return std::move(bytes_);
    }

  private:
    std::vector<std::byte> bytes_;
};

class Decoder {
  public:
    explicit Decoder(std::span<const std::byte> bytes) : left_(bytes) {}

    template <class Value>
    bool get(Value& value) {
        static_assert(std::is_trivially_copyable_v<Value>);
        if (left_.size() < sizeof value) return false;
        std::memcpy(&value, left_.data(), sizeof value);
        left_ = left_.subspan(sizeof value);
        return true;
    }
    /// Into a vector that has the right size already.
    template <class Value>
    bool get(std::vector<Value>& values) {
        std::uint64_t size = 0;
        if (!get(size) || size != values.size() || left_.size() < size * sizeof(Value)) return false;
        std::memcpy(values.data(), left_.data(), size * sizeof(Value));
        left_ = left_.subspan(size * sizeof(Value));
        return true;
    }
    /// Into a vector of any size.
    template <class Value>
    bool get_all(std::vector<Value>& values) {
        std::uint64_t size = 0;
        if (left_.size() < sizeof size) return false;
        std::memcpy(&size, left_.data(), sizeof size);
        if (size > left_.size() / sizeof(Value)) return false;
        values.resize(size);
        return get(values);
    }
    [[nodiscard]] bool ended() const { return left_.empty(); }

  private:
    std::span<const std::byte> left_;
};

/// All members of the sums but the counts, in one order for both ways.
template <class Sums, class Do>
bool each_array(Sums& sums, Do what) {
    return what(sums.unpaired) && what(sums.grouped) && what(sums.prompts) && what(sums.delayeds) &&
           what(sums.modules) && what(sums.module_pairs) && what(sums.refused_pairs) && what(sums.energies);
}

/// The members of fixed size.
template <class State, class Do>
bool each_number(State& s, Do what) {
    return what(s.begin) && what(s.end) && what(s.coincidences) && what(s.triples) && what(s.taken) &&
           what(s.counts);
}

void put_border(const std::optional<GammaBorder>& border, Encoder& out) {
    out.put(std::uint64_t{border ? 1U : 0U});
    if (!border) return;
    out.put(border->first);
    out.put(border->last);
    out.put(border->last_from);
}

bool get_border(Decoder& in, std::optional<GammaBorder>& border) {
    std::uint64_t present = 0;
    if (!in.get(present)) return false;
    if (present == 0) return true;
    border.emplace();
    return in.get_all(border->first) && in.get_all(border->last) && in.get(border->last_from);
}

/// Writes the records under a name of this process, and gives the file its name.
template <class Lists>
PartFile write_records(const std::filesystem::path& file, daemon::RecordKind kind, const Lists& lists,
                       std::uint32_t block_bytes, const nlohmann::json& description) {
    const std::filesystem::path partial = own_partial(file);
    std::filesystem::remove(partial);  // of a process with the same number that was killed
    RecordFile out(partial, kind, block_bytes, description);
    PartFile written;
    for (const auto& records : lists) {
        if (records.empty()) continue;
        if (written.first_time == 0) written.first_time = daemon::time_of(records.front());
        written.last_time = daemon::time_of(records.back());
        written.records += records.size();
        out.append(std::span(records.data(), records.size()));
    }
    out.close();
    written.bytes = std::filesystem::file_size(partial);
    std::filesystem::rename(partial, file);
    return written;
}

bool is_of_parts(const std::string& name) {
    return name.starts_with("coincidences-") || name.starts_with("triples-");
}

}  // namespace

std::string part_name(std::size_t shard, daemon::RecordKind kind) {
    return fmt::format("{}-{:04}.plm", daemon::name_of(kind), shard + 1);
}

std::string state_name(std::size_t shard) {
    return fmt::format("coincidences-{:04}.state", shard + 1);
}

std::vector<std::byte> encode(const PartState& state) {
    Encoder out;
    const auto put = [&](const auto& value) {
        out.put(value);
        return true;
    };
    put(magic);
    each_number(state, put);
    put(std::uint64_t{state.sums.size()});
    for (const auto& [time, sums] : state.sums) {
        put(time);
        put(sums.counts);
        put(sums.gammas);
        each_array(sums, put);
    }
    put_border(state.border, out);
    return out.finish();
}

std::optional<PartState> decode(std::span<const std::byte> bytes, const config::Geometry& geometry) {
    std::uint32_t crc = 0;
    if (bytes.size() < sizeof crc) return std::nullopt;
    std::memcpy(&crc, bytes.data() + bytes.size() - sizeof crc, sizeof crc);
    bytes = bytes.first(bytes.size() - sizeof crc);
    if (daemon::crc32c(bytes) != crc) return std::nullopt;
    Decoder in(bytes);
    const auto get = [&](auto& value) { return in.get(value); };
    PartState state;
    std::uint64_t found = 0;
    std::uint64_t count = 0;
    if (!get(found) || found != magic || !each_number(state, get) || !get(count)) return std::nullopt;
    for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t time = 0;
        gpu::IntervalSums sums = gpu::IntervalSums::none(geometry);
        if (!get(time) || !get(sums.counts) || !get(sums.gammas) || !each_array(sums, get))
            return std::nullopt;
        state.sums.emplace_back(time, std::move(sums));
    }
    if (!get_border(in, state.border) || !in.ended()) return std::nullopt;
    return state;
}

std::filesystem::path own_partial(const std::filesystem::path& file) {
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size() - 1);
    return fmt::format("{}.{}-{}.partial", file.string(), host.data(), ::getpid());
}

void write_part(const std::filesystem::path& directory, std::size_t shard, const ShardResult& result,
                const Inputs& inputs, const Engines& engines, const daemon::Coverage& covered) {
    check_taken(result.taken, inputs);
    PartState state{result, result.range.start, result.range.end, {}, {}};
    const auto write = [&](daemon::RecordKind kind, const auto& lists) {
        nlohmann::json description =
            engines.description(kind, inputs, daemon::part_of(covered, result.range));
        description["part"] = shard + 1;
        return write_records(directory / part_name(shard, kind), kind, lists,
                             inputs.singles.front().block_bytes(), description);
    };
    state.coincidences = write(daemon::RecordKind::coincidences, result.coincidences);
    if (engines.rules.gammas)
        state.triples = write(daemon::RecordKind::triples, std::span(&result.triples, 1));
    const std::vector<std::byte> bytes = encode(state);
    const std::filesystem::path state_file = directory / state_name(shard);
    daemon::File state_out(own_partial(state_file), daemon::IfExists::discard);
    state_out.append(bytes);
    state_out.sync();
    state_out.close();
    daemon::rename_file(state_out.path(), state_file);
    daemon::sync_directory_of(state_file);
}

void remove_parts_after(const std::filesystem::path& directory, std::size_t keep) {
    std::set<std::string> kept;
    for (std::size_t shard = 0; shard < keep; ++shard)
        kept.insert({part_name(shard), part_name(shard, daemon::RecordKind::triples), state_name(shard)});
    std::vector<std::filesystem::path> others;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        if (is_of_parts(name) && !kept.contains(name)) others.push_back(entry.path());
    }
    std::error_code gone;
    for (const std::filesystem::path& file : others)
        std::filesystem::remove(file, gone);
}

void remove_partial_parts(const std::filesystem::path& directory) {
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        if (is_of_parts(name) && name.ends_with(".partial")) std::filesystem::remove(entry.path());
    }
}

std::optional<PartState> read_part(const std::filesystem::path& directory, std::size_t shard,
                                   const config::Geometry& geometry) {
    std::ifstream in(directory / state_name(shard), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    auto state = decode(std::as_bytes(std::span(text)), geometry);
    const auto is_there = [&](daemon::RecordKind kind, const PartFile& file) {
        std::error_code error;
        const auto bytes = std::filesystem::file_size(directory / part_name(shard, kind), error);
        return file.bytes == (error ? 0 : bytes);
    };
    if (!state || !is_there(daemon::RecordKind::coincidences, state->coincidences) ||
        !is_there(daemon::RecordKind::triples, state->triples))
        return std::nullopt;
    return state;
}

}  // namespace petacq::petlm
