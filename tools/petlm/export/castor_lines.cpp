#include "tools/petlm/export/castor_lines.hpp"

#include <fmt/format.h>

#include <atomic>

#include "tools/petlm/export/ordered_output.hpp"

namespace petacq::petlm {

CastorIds::CastorIds(const CrystalKinds& kinds) : crystals_(kinds.in_order()), ids_(crystals_.size()) {
    for (std::uint32_t id = 0; id < crystals_.size(); ++id)
        ids_[crystals_[id]] = id;
}

void check_castor_lines(const ExportSource& source, const config::Scanner& scanner,
                        const ExportOptions& options) {
    const std::uint64_t lines = good_pairs(scanner.geometry, pair_rule(source, scanner.geometry));
    check_size_of_lines(options, lines, lines * (options.lines.attenuation.empty() ? 12 : 16));
}

std::uint64_t write_castor_lines(const std::filesystem::path& directory, const config::Scanner& scanner,
                                 const CastorIds& ids, const LineModel& model, net::WorkerPool& pool) {
    OutputFile out(directory / "lines.cdf");
    const std::uint32_t crystals = scanner.geometry.crystal_count();
    std::atomic<std::uint64_t> lines{0};
    write_in_order(out, pool, crystals, "lines for castor", [&](std::size_t i, std::string& bytes) {
        const auto id = static_cast<std::uint32_t>(i);
        const std::uint32_t a = ids.crystals()[id];
        std::uint64_t found = 0;
        for (std::uint32_t other = id + 1; other < crystals; ++other) {
            const std::uint32_t b = ids.crystals()[other];
            const float factor = normalisation_factor(model, a, b);
            if (factor == 0) continue;
            if (model.attenuates()) append(bytes, static_cast<float>(1 / model.attenuation(a, b)));
            append(bytes, factor);
            append(bytes, id);
            append(bytes, other);
            ++found;
        }
        lines += found;
    });
    out.close();
    std::string text = fmt::format(
        "Data filename: lines.cdf\nNumber of events: {}\nData mode: normalization\nData type: PET\n"
        "Scanner name: {}\nNormalization correction flag: 1\n",
        lines.load(), file_name_of(scanner));
    if (model.attenuates()) text += "Attenuation correction flag: 1\n";
    for (const auto& sentence : model.sentences())
        text += "# " + sentence + '\n';
    write_text(directory / "lines.cdh", text);
    return lines;
}

}  // namespace petacq::petlm
