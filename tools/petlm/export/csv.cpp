// CSV: the lines of petlm dump. docs/reference/formats/csv.md.
#include <array>

#include "tools/petlm/export/csv_lines.hpp"
#include "tools/petlm/export/export.hpp"
#include "tools/petlm/records/in_order.hpp"
#include "tools/petlm/records/record_source.hpp"

namespace petacq::petlm {
namespace {

template <class Record>
std::string lines_of(const std::vector<Record>& records, CsvTold told) {
    constexpr std::size_t typical_line = 56;
    std::string text;
    text.reserve(records.size() * typical_line);
    std::array<char, longest_csv_line> line{};
    for (const auto& record : records)
        text.append(line.data(), csv_line(line.data(), record, told));
    return text;
}

}  // namespace

Exported export_csv(const ExportSource& source, const ExportOptions& options, Outputs& outputs) {
    outputs.claim(options.output);
    OutputFile out(options.output);
    const CsvTold told = CsvTold::of(source.coverage());
    out.text(csv_header(source.kind(), told));
    // Formatting takes longer than writing: all cores share it.
    InOrder<std::string> texts([&](const std::string& text) { out.text(text); });
    Exported exported;
    source.for_each_block(source.crystals(), [&](const daemon::ListModeReader& reader) {
        with_records(reader, [&](auto records) {
            texts.add(
                [copy = std::vector(records.begin(), records.end()), told] { return lines_of(copy, told); });
        });
        exported.count(reader);
    });
    texts.finish();
    out.close();
    exported.files = {options.output.filename().string() + ": one line of names, then one per record"};
    exported.notes = {"Times are ticks of detector time, energies keV."};
    if (source.kind() == daemon::RecordKind::tags)
        exported.notes = {"Times are ticks of detector time, positions micrometres."};
    if (source.kind() == daemon::RecordKind::triples) {
        exported.notes.push_back(
            "gamma_dt is the time from the earlier single of the pair to the gamma; for a delayed gamma, "
            "minus the delay of the gammas.");
    }
    if (source.kind() == daemon::RecordKind::coincidences && told.dt) {
        exported.notes.push_back(
            "dt is the time from crystal_a to crystal_b; for a delayed, minus the delay.");
    }
    const bool pairs = source.kind() != daemon::RecordKind::singles;
    if (!told.dt) exported.notes.emplace_back("There is no column dt, since it is not known.");
    if (!told.energies) {
        exported.notes.emplace_back(
            pairs ? "There are no columns energy_a and energy_b, since they are not known."
                  : "There is no column energy, since it is not known.");
    }
    return exported;
}

}  // namespace petacq::petlm
