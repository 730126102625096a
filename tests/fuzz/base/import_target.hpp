// What targets of petlm import share: a small scanner, and what must hold of the records of any file.
#pragma once

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "config/base/error.hpp"
#include "tests/fuzz/base/fuzz.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/import/foreign_file.hpp"

namespace petacq::fuzz {

/// The scanner of tests/fuzz/seeds.py: three modules of two by two crystals.
inline const config::Scanner& tiny_scanner() {
    static const config::Scanner scanner = [] {
        config::Scanner s;
        s.name = "tiny";
        s.geometry = {3, {1, 1, 1}, {1, 1, 1}, {1, 2, 2}, 3, 1, 4};
        s.tick_ps = 15.625;
        s.dimensions = {10, 8, 8, 12, 0, 0, 0};
        return s;
    }();
    return scanner;
}

inline void check_record(const gpu::Single& s) {
    require(s.crystal < 12 && std::isfinite(s.energy) && s.energy >= 0, "a single of the scanner");
}
inline void check_record(const gpu::Coincidence& c) {
    require(c.crystal_a < 12 && c.crystal_b < 12 && c.kind <= gpu::Kind::delayed, "a pair of the scanner");
    require(std::isfinite(c.energy_a) && std::isfinite(c.energy_b) && c.energy_a >= 0 && c.energy_b >= 0,
            "energies");
}
inline void check_record(const gpu::Triple& t) {
    check_record(t.pair);
    require(t.gamma_crystal < 12 && t.third <= gpu::ThirdPhoton::delayed && std::isfinite(t.gamma_energy),
            "a triple");
}
inline void check_record(const gpu::Tag& t) {
    require(t.channel < 16, "a channel of tags");
}

/// Opens the file, and takes all of its records.
template <class Open>
void import_all(Open open, const petlm::ImportOptions& options, const std::filesystem::path& file,
                std::size_t size) {
    const MemoryBound bound((std::size_t{64} << 20) + 200 * size);
    try {
        petlm::ForeignFile foreign = open({options, file, gpu::Kind::prompt, tiny_scanner()});
        std::size_t records = 0;
        std::visit(
            [&]<class Record>(const petlm::TakeRecords<Record>& take) {
                gpu::RecordVector<Record> some;
                while (take(some)) {
                    for (const Record& record : some)
                        check_record(record);
                    records += some.size();
                    some.clear();
                    require(foreign.bytes_done() <= foreign.bytes, "no more is read than there is");
                }
            },
            foreign.records);
        if (records != 0) accept();
    } catch (const petlm::BadInput& error) {
        require(says_what_was_expected(error.what()), "an error says what was expected");
    } catch (const petlm::UsageError& error) {
        require(says_what_was_expected(error.what()), "an error says what was expected");
    } catch (const config::IoError&) {
        return;  // a header may name a file that is not there
    }
}

}  // namespace petacq::fuzz
