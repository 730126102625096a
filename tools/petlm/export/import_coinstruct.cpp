// petlm import. docs/reference/formats/coinstruct.md has the format.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "config/base/error.hpp"
#include "config/base/file.hpp"
#include "config/scanner/scanner.hpp"
#include "daemon/listmode/writer.hpp"
#include "daemon/system/progress_line.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/coinstruct.hpp"
#include "tools/petlm/records/output.hpp"

namespace petacq::petlm {
namespace {

/// Pairs of one file in the order of list-mode. Pairs in the file may be up to `disorder` places away from
/// their place in that order.
class PairFile {
  public:
    PairFile(const std::filesystem::path& path, gpu::Kind kind, std::uint64_t crystals)
        : path_(path), kind_(kind), crystals_(crystals), file_(config::open_for_reading(path)) {
        const std::uint64_t bytes = std::filesystem::file_size(path);
        if (bytes % sizeof(CoinStructPair) != 0) {
            refuse(
                fmt::format("{} bytes; expected a multiple of 32, the size of a pair: truncated, or not a "
                            "CoinStruct file",
                            bytes));
        }
        pairs_ = bytes / sizeof(CoinStructPair);
        read_on();
    }
    /// Null after the last one.
    [[nodiscard]] const gpu::Coincidence* front() const {
        return next_ < sorted_.size() ? &sorted_[next_] : nullptr;
    }
    void pop() {
        if (++next_ == ready_) read_on();
    }
    [[nodiscard]] std::uint64_t read() const { return read_; }
    [[nodiscard]] std::uint64_t pairs() const { return pairs_; }
    [[nodiscard]] std::uint64_t fractional() const { return fractional_; }

  private:
    static constexpr std::size_t disorder = std::size_t{1} << 20U;

    [[noreturn]] void refuse(const std::string& what) const { throw BadInput(path_.string() + ": " + what); }

    std::uint64_t ticks(double time) {
        if (!(time >= 0 && time < 0x1p64)) {
            refuse(fmt::format("pair {}: a time of {} ticks; expected 0 or more: not a CoinStruct file?",
                               read_, time));
        }
        if (time != std::floor(time)) ++fractional_;
        return static_cast<std::uint64_t>(time);
    }

    gpu::Single single(const CoinStructSingle& s) {
        if (s.crystal >= crystals_) {
            refuse(
                fmt::format("pair {}: crystal {}; the scanner has {}: not a CoinStruct file of this scanner?",
                            read_, s.crystal, crystals_));
        }
        if (!(std::isfinite(s.energy) && s.energy >= 0)) {
            refuse(fmt::format("pair {}: an energy of {} keV: not a CoinStruct file?", read_, s.energy));
        }
        return {ticks(s.time), s.crystal, s.energy};
    }

    gpu::Coincidence coincidence(const CoinStructPair& pair) {
        gpu::Single a = single(pair.first);
        gpu::Single b = single(pair.second);
        if (!daemon::in_order(a, b)) std::swap(a, b);
        if (b.time - a.time > UINT32_MAX) {
            refuse(fmt::format("pair {}: {} ticks apart: not a CoinStruct file?", read_, b.time - a.time));
        }
        return {a.time, static_cast<std::uint32_t>(b.time - a.time), a.crystal, b.crystal, a.energy, b.energy,
                kind_};
    }

    void read_on() {
        const auto before = [](const gpu::Coincidence& x, const gpu::Coincidence& y) {
            return !daemon::in_order(y, x);
        };
        const bool first = next_ == 0;
        const gpu::Coincidence last = first ? gpu::Coincidence{} : sorted_[next_ - 1];
        sorted_.erase(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(next_));
        next_ = 0;
        while (sorted_.size() < 2 * disorder && read_ < pairs_)
            read_piece();
        if (!std::is_sorted(sorted_.begin(), sorted_.end(), before)) {
            std::sort(sorted_.begin(), sorted_.end(), before);
        }
        ready_ = read_ < pairs_ ? disorder : sorted_.size();
        if (!first && !sorted_.empty() && before(sorted_.front(), last)) {
            refuse(fmt::format("pairs are out of time order by more than {} places (before pair {})",
                               disorder, read_));
        }
    }

    void read_piece() {
        buffer_.resize(std::min<std::uint64_t>(std::uint64_t{1} << 15U, pairs_ - read_));
        if (std::fread(buffer_.data(), sizeof(CoinStructPair), buffer_.size(), file_.get()) !=
            buffer_.size()) {
            throw std::system_error(EIO, std::generic_category(), path_.string() + ": cannot be read");
        }
        for (const auto& pair : buffer_) {
            sorted_.push_back(coincidence(pair));
            ++read_;
        }
    }

    std::filesystem::path path_;
    gpu::Kind kind_;
    std::uint64_t crystals_;
    config::FilePointer file_;
    std::uint64_t pairs_ = 0;
    std::uint64_t read_ = 0;
    std::uint64_t fractional_ = 0;
    std::vector<CoinStructPair> buffer_;
    gpu::RecordVector<gpu::Coincidence> sorted_;
    std::size_t next_ = 0;
    std::size_t ready_ = 0;  ///< pairs of sorted_ that precede everything still to be read
};

nlohmann::json description(const ImportOptions& options, const config::Scanner& scanner) {
    nlohmann::json from = {options.pairs.filename().string()};
    if (options.delayeds) from.push_back(options.delayeds->filename().string());
    nlohmann::json json = {{"scanner", scanner.name},
                           {"tick_ps", scanner.tick_ps},
                           {"crystals", scanner.geometry.crystal_count()},
                           {"crystals_in_ring", scanner.geometry.crystals_in_ring()},
                           {"imported", {{"format", options.format}, {"from", from}}}};
    if (!options.delayeds) json["delay_ticks"] = nullptr;
    return json;
}

/// Prompts and delayeds as one sequence.
void merge(PairFile& prompts, PairFile* delayeds, daemon::ListModeWriter& writer) {
    constexpr std::size_t piece = 4096;
    gpu::RecordVector<gpu::Coincidence> out;
    out.reserve(piece);
    const std::uint64_t all = prompts.pairs() + (delayeds != nullptr ? delayeds->pairs() : 0);
    daemon::ProgressLine progress("importing", all * sizeof(CoinStructPair));
    while (true) {
        const auto* prompt = prompts.front();
        const auto* delayed = delayeds != nullptr ? delayeds->front() : nullptr;
        if (prompt == nullptr && delayed == nullptr) break;
        const bool take_delayed =
            prompt == nullptr || (delayed != nullptr && !daemon::in_order(*prompt, *delayed));
        out.push_back(take_delayed ? *delayed : *prompt);
        (take_delayed ? *delayeds : prompts).pop();
        if (out.size() == piece) {
            writer.append(std::move(out));
            out.clear();
            progress.show((prompts.read() + (delayeds != nullptr ? delayeds->read() : 0)) *
                          sizeof(CoinStructPair));
        }
    }
    writer.append(std::move(out));
}

}  // namespace

int import_pairs(const ImportOptions& options) {
    if (options.format != "coinstruct") {
        throw UsageError("format '" + options.format + "': expected coinstruct");
    }
    const config::Scanner scanner = config::load_scanner(options.scanner);
    const std::uint64_t crystals = scanner.geometry.crystal_count();
    Outputs outputs(options.force);
    outputs.claim(options.output);
    PairFile prompts(options.pairs, gpu::Kind::prompt, crystals);
    std::unique_ptr<PairFile> delayeds;
    if (options.delayeds) {
        delayeds = std::make_unique<PairFile>(*options.delayeds, gpu::Kind::delayed, crystals);
    }
    const auto partial = Outputs::partial(options.output);
    std::filesystem::remove(partial);  // of an import that was killed
    daemon::ListModeWriter writer(partial, {}, description(options, scanner));
    merge(prompts, delayeds.get(), writer);
    const auto counts = writer.finish();
    if (!writer.failure().empty()) throw config::IoError(writer.failure());
    outputs.commit();

    const std::uint64_t fractional = prompts.fractional() + (delayeds ? delayeds->fractional() : 0);
    if (fractional != 0) {
        std::cerr << fmt::format("petlm: {} times were not whole ticks and were rounded down\n", fractional);
    }
    std::cout << fmt::format("{}: {} pairs imported\n", options.output.string(), counts.written);
    return ok;
}

}  // namespace petacq::petlm
