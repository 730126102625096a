// A run of a scanner that turns, from its position tags.
#pragma once

#include <filesystem>
#include <vector>

#include "config/scanner/rotation.hpp"
#include "daemon/coverage/coverage.hpp"
#include "tests/tools/petlm/tags.hpp"

namespace petacq::test {

inline constexpr std::uint64_t one_second = 64'000'000'000;
inline const config::Rotation by_degrees{1, 360, 0};  // NOLINT(cert-err58-cpp)

/// Of the scanner at `s` seconds.
inline gpu::Tag degrees_tag(double s, std::int32_t degrees, unsigned channel = 1) {
    return tag(static_cast<std::uint64_t>(s * one_second), channel, gpu::TagKind::position,
               static_cast<std::uint32_t>(degrees));
}

inline daemon::Coverage covering(double from_s, double to_s) {
    daemon::Coverage coverage;
    coverage.tick_ps = export_scanner().tick_ps;
    coverage.intervals = daemon::Intervals(gpu::TickRange{static_cast<std::uint64_t>(from_s * one_second),
                                                          static_cast<std::uint64_t>(to_s * one_second)});
    coverage.origin.runs = {{"test-run", {}}};
    return coverage;
}

struct TurningRun {
    TemporaryDirectory directory;

    explicit TurningRun(std::vector<gpu::Tag> tags, double seconds = 10) {
        write_run(directory / "run", {});
        nlohmann::json description = file_description(export_scanner());
        description["coverage"] = daemon::to_json(covering(0, seconds));
        write_tags(directory / "run/tags.plm", std::move(tags), description);
    }
    /// A part of it, as `petlm cut` makes one.
    [[nodiscard]] std::filesystem::path part(double from_s, double to_s) const {
        nlohmann::json description = file_description(export_scanner());
        description["coverage"] = daemon::to_json(covering(from_s, to_s));
        const std::filesystem::path file = directory / "run/part.plm";
        std::filesystem::remove(file);
        write_plm(file, {}, description);
        return file;
    }
};

}  // namespace petacq::test
