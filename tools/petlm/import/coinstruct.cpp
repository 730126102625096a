// CoinStruct. docs/reference/formats/coinstruct.md.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/petlm/base/status.hpp"
#include "tools/petlm/export/coinstruct.hpp"
#include "tools/petlm/import/byte_reader.hpp"
#include "tools/petlm/import/export_readme.hpp"
#include "tools/petlm/import/foreign_file.hpp"

namespace petacq::petlm {
namespace {

class CoinStructInput {
  public:
    CoinStructInput(const std::filesystem::path& path, gpu::Kind kind, std::uint64_t crystals)
        : bytes_(path), kind_(kind), crystals_(crystals) {
        if (bytes_.size() % sizeof(CoinStructPair) != 0) {
            throw BadInput(
                fmt::format("{}: {} bytes; expected a multiple of 32, the size of a pair: truncated, or "
                            "not a CoinStruct file",
                            path.string(), bytes_.size()));
        }
    }
    bool take(gpu::RecordVector<gpu::Coincidence>& out) {
        if (bytes_.at_end()) return false;
        const auto pair = bytes_.take<CoinStructPair>();
        const auto found = pair_of(single(pair.first), single(pair.second), kind_);
        if (!found) refuse(std::string(too_far_apart) + ": not a CoinStruct file?");
        out.push_back(*found);
        ++read_;
        return true;
    }
    [[nodiscard]] const ByteReader& bytes() const { return bytes_; }
    [[nodiscard]] std::vector<std::string> remarks() const {
        if (fractional_ == 0) return {};
        return {fmt::format("{} times were not whole ticks and were rounded down", fractional_)};
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const {
        throw BadInput(fmt::format("{}: pair {}: {}", bytes_.path().string(), read_, what));
    }

    gpu::Single single(const CoinStructSingle& s) {
        if (s.crystal >= crystals_) {
            refuse(fmt::format("crystal {}; the scanner has {}: not a CoinStruct file of this scanner?",
                               s.crystal, crystals_));
        }
        if (!(std::isfinite(s.energy) && s.energy >= 0))
            refuse(fmt::format("an energy of {} keV: not a CoinStruct file?", s.energy));
        if (!(s.time >= 0 && s.time < 0x1p64))
            refuse(fmt::format("a time of {} ticks; expected 0 or more: not a CoinStruct file?", s.time));
        if (s.time != std::floor(s.time)) ++fractional_;
        return {static_cast<std::uint64_t>(s.time), s.crystal, s.energy};
    }

    ByteReader bytes_;
    gpu::Kind kind_;
    std::uint64_t crystals_;
    std::uint64_t read_ = 0;
    std::uint64_t fractional_ = 0;
};

}  // namespace

ForeignFile open_coinstruct(const ForeignInput& input) {
    const auto pairs =
        std::make_shared<CoinStructInput>(input.file, input.kind, input.scanner.geometry.crystal_count());
    ForeignFile file;
    file.records = TakeRecords<gpu::Coincidence>([pairs](auto& out) { return pairs->take(out); });
    file.bytes = pairs->bytes().size();
    file.bytes_done = [pairs] { return pairs->bytes().done(); };
    file.remarks = [pairs, ticks = remark_of_ticks(input)] {
        std::vector<std::string> remarks = pairs->remarks();
        if (ticks) remarks.push_back(*ticks);
        return remarks;
    };
    file.coverage.unknown = {unknown_times, unknown_clock, unknown_rules};
    for (std::string& what : unknown_by_readme(input.file))
        file.coverage.unknown.push_back(std::move(what));
    file.coverage.loss.seconds_complete = false;
    if (!input.options.delayeds)
        file.description = std::make_shared<nlohmann::json>(nlohmann::json{{"delay_ticks", nullptr}});
    return file;
}

}  // namespace petacq::petlm
