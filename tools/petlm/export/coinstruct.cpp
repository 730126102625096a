// CoinStruct: pairs of {crystal, energy, time}. docs/reference/formats/coinstruct.md.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "daemon/coverage/unknown.hpp"
#include "tools/petlm/export/coinstruct.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/export/recorded_time.hpp"

namespace petacq::petlm {
namespace {

/// "pairs.delayeds.bin" of "pairs.bin".
std::filesystem::path delayeds_beside(const std::filesystem::path& pairs) {
    return pairs.parent_path() / (pairs.stem().string() + ".delayeds" + pairs.extension().string());
}

class CoinStructFile {
  public:
    CoinStructFile(const std::filesystem::path& file, std::uint64_t origin) : out_(file), origin_(origin) {}
    void write(const gpu::Coincidence& c) {
        // Added as integers, which is exact, unless the sum overflows.
        const std::uint64_t first = c.time - std::min(c.time, origin_);
        const double later =
            first > UINT64_MAX - c.dt ? static_cast<double>(first) + c.dt : static_cast<double>(first + c.dt);
        out_.put(CoinStructPair{{c.crystal_a, c.energy_a, static_cast<double>(first)},
                                {c.crystal_b, c.energy_b, later}});
        ++pairs_;
        if (first + c.dt > exact || first > exact) ++rounded_;
    }
    void close() { out_.close(); }
    [[nodiscard]] std::uint64_t pairs() const { return pairs_; }
    [[nodiscard]] std::uint64_t rounded() const { return rounded_; }

  private:
    static constexpr std::uint64_t exact = std::uint64_t{1} << 53U;  // largest exact whole number in an f64
    OutputFile out_;
    std::uint64_t origin_;
    std::uint64_t pairs_ = 0;
    std::uint64_t rounded_ = 0;
};

}  // namespace

Exported export_coinstruct(const ExportSource& source, const ExportOptions& options, Outputs& outputs) {
    const auto beside = delayeds_beside(options.output);
    outputs.claim(options.output);
    outputs.claim(beside);
    const std::uint64_t origin = options.time_from_start ? completed_coverage(source).reference_ticks() : 0;
    CoinStructFile prompts(options.output, origin);
    std::unique_ptr<CoinStructFile> delayeds;
    source.for_each_block(source.crystals(), [&](const daemon::ListModeReader& reader) {
        for (const auto& c : reader.coincidences()) {
            if (c.kind == gpu::Kind::prompt) {
                prompts.write(c);
            } else {
                if (!delayeds) delayeds = std::make_unique<CoinStructFile>(beside, origin);
                delayeds->write(c);
            }
        }
    });
    prompts.close();
    if (delayeds) delayeds->close();

    const bool tells_dt = daemon::tells(source.coverage(), daemon::unknown_dt);
    Exported exported;
    exported.prompts = prompts.pairs();
    exported.delayeds = delayeds ? delayeds->pairs() : 0;
    exported.files = {options.output.filename().string() +
                      ": prompts, 32 bytes each: twice u32 crystal, f32 energy (keV), f64 time (ticks)"};
    if (delayeds) {
        exported.files.push_back(beside.filename().string() + ": delayeds, the same");
        exported.notes.push_back("The delay is already subtracted from the times of a delayed pair.");
    }
    if (tells_dt) exported.notes.push_back("The earlier photon of a pair comes first.");
    exported.notes.push_back(options.time_from_start ? "Times are ticks from " + std::to_string(origin) +
                                                           ", the start of the run."
                                                     : "Times are ticks of detector time, as recorded.");
    const std::uint64_t rounded = prompts.rounded() + (delayeds ? delayeds->rounded() : 0);
    if (rounded != 0) {
        exported.lost.push_back(fmt::format(
            "coinstruct: {} pairs have times above 2^53 ticks, which an f64 holds only rounded{}", rounded,
            options.time_from_start ? "." : "; --time-from-start counts from the start of the run."));
    }
    if (!tells_dt) {
        exported.lost.emplace_back(
            "coinstruct: both photons of a pair have its time, since the time between them is not known; the "
            "format cannot leave it out. Its readers must not use it.");
    }
    if (!daemon::tells(source.coverage(), daemon::unknown_energies)) {
        exported.lost.emplace_back(
            "coinstruct: the energies are 0, since they are not known; the format cannot leave them out. "
            "Its readers must take pairs of any energy.");
    }
    exported.lost.push_back(
        "coinstruct: the format does not hold the length of a tick, the scanner, or the run; this text "
        "names them.");
    return exported;
}

}  // namespace petacq::petlm
