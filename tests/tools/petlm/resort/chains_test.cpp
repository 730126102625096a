// Random chains of cut, gate, merge, recover and resort: each file covers exactly what a slow reference says,
// and has exactly the records of those times.
#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include "tests/tools/petlm/covered.hpp"
#include "tests/tools/petlm/resort/support.hpp"
#include "tests/tools/petlm/tags.hpp"
#include "tools/petlm/base/status.hpp"
#include "tools/petlm/records/gating/gate.hpp"
#include "tools/petlm/records/rearrange.hpp"
#include "tools/petlm/records/recovery/recover.hpp"

using namespace petacq;
using namespace petacq::test;
using daemon::RecordKind;

namespace {

constexpr std::uint64_t start = 5000;
constexpr std::size_t length = 3000;  ///< ticks of the run
constexpr unsigned trigger_channel = 1;
constexpr unsigned gate_channel = 2;

using Ticks = std::vector<bool>;  ///< [tick - start]

/// A file, and what it should cover.
struct File {
    std::filesystem::path path;
    RecordKind kind = RecordKind::coincidences;
    Ticks ticks;
};

std::uint64_t count(const Ticks& ticks) {
    return static_cast<std::uint64_t>(std::count(ticks.begin(), ticks.end(), true));
}

Ticks both(Ticks a, const Ticks& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = a[i] && b[i];
    return a;
}

template <class Record>
gpu::RecordVector<Record> within(const gpu::RecordVector<Record>& all, const Ticks& ticks) {
    gpu::RecordVector<Record> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                 [&](const Record& r) { return ticks[r.time - start]; });
    return some;
}

template <class Record>
std::vector<std::uint64_t> times_of(const gpu::RecordVector<Record>& records) {
    std::vector<std::uint64_t> times;
    for (const Record& r : records)
        times.push_back(r.time);
    return times;
}

/// A run of pairs, singles and tags, and the files that are made of it.
class Chain {
  public:
    explicit Chain(unsigned seed) : random_(seed), run_(directory_ / "run") {
        for (std::uint64_t t = start; t < start + length; t += random_() % 5) {
            gpu::Coincidence pair;
            pair.time = t;
            pair.crystal_b = 300;
            pair.kind = random_() % 3 == 0 ? gpu::Kind::delayed : gpu::Kind::prompt;
            if (!pairs_.empty() && pairs_.back().time == t) pair.kind = pairs_.back().kind;
            pairs_.push_back(pair);
            singles_.push_back({t, static_cast<std::uint32_t>(random_() % 960), 511});
        }
        sort_singles(singles_);
        make_tags();
        write_singles_run(run_, singles_, {{"window_ticks", 20}}, start, start + length);
        const daemon::Coverage whole =
            covered_by_run(run_, gpu::TickRange{start, start + length}, resort_scanner().tick_ps);
        write_covered(run_ / "coincidences.plm", RecordKind::coincidences, pairs_, whole);
        write_covered(run_ / "singles.plm", RecordKind::singles, singles_, whole);
        write_covered(run_ / "tags.plm", RecordKind::tags, tags_, whole);
        const Ticks all(length, true);
        files_ = {{run_ / "coincidences.plm", RecordKind::coincidences, all},
                  {run_ / "singles.plm", RecordKind::singles, all}};
    }

    void step() {
        const File from = files_[random_() % files_.size()];
        switch (random_() % 6) {
            case 0:
                return cut(from);
            case 1:
                return cut_open(from);
            case 2:
                return gate(from);
            case 3:
                return merge(from, files_[random_() % files_.size()]);
            case 4:
                return divide(from);
            default:
                return from.kind == RecordKind::singles ? resort(from) : recover(from);
        }
    }

  private:
    void make_tags() {
        std::uint64_t at = start;
        std::uint32_t number = 0;
        std::optional<std::uint64_t> before;
        bool open = true;  // the first tag of the gate closes it
        open_ = Ticks(length, true);
        while ((at += 1 + random_() % 200) < start + length) {
            if (random_() % 2 == 0) {
                open = !open;
                tags_.push_back(tag(at, gate_channel, gpu::TagKind::gate, open ? 1 : 0));
                std::fill(open_.begin() + static_cast<std::ptrdiff_t>(at - start), open_.end(), open);
            } else {
                number += random_() % 8 == 0 ? 2 : 1;  // one is missing now and then
                if (before && tags_number_ + 1 == number) cycles_.push_back({*before, at});
                tags_.push_back(tag(at, trigger_channel, gpu::TagKind::trigger, number));
                tags_number_ = number;
                before = at;
            }
        }
    }

    std::filesystem::path next_path() { return run_ / ("file" + std::to_string(made_++) + ".plm"); }

    void check(const File& file) {
        const daemon::Coverage coverage = coverage_in(file.path, file.kind);
        CAPTURE(file.path.string());
        REQUIRE(coverage.intervals);
        CHECK(ticks_in(*coverage.intervals, start, length) == file.ticks);
        CHECK(coverage.ticks() == count(file.ticks));
        CHECK(coverage.reference_ticks() == start);
        if (file.kind == RecordKind::singles) {
            CHECK(times_of(read_singles(file.path)) == times_of(within(singles_, file.ticks)));
        } else {
            CHECK(times_of(read_coincidences(file.path)) == times_of(within(pairs_, file.ticks)));
        }
    }
    void add(File file) {
        check(file);
        files_.push_back(std::move(file));
    }

    File cut(const File& from, std::uint64_t begin, std::uint64_t end, bool gated = false) {
        File made{next_path(), from.kind, from.ticks};
        petlm::CutOptions options;
        options.target = from.path;
        options.output = made.path;
        options.from = begin;
        options.to = end;
        if (gated) options.gate = gate_channel;
        REQUIRE(quietly([&] { return petlm::cut(options); }) == petlm::ok);
        for (std::size_t i = 0; i < length; ++i)
            if (start + i < begin || start + i >= end) made.ticks[i] = false;
        if (gated) made.ticks = both(made.ticks, open_);
        return made;
    }
    void cut(const File& from) {
        const std::uint64_t begin = start - 500 + random_() % (length + 500);
        add(cut(from, begin, begin + random_() % length));
    }
    void cut_open(const File& from) {
        const std::uint64_t begin = random_() % 2 == 0 ? 0 : start + random_() % length;
        add(cut(from, begin, random_() % 2 == 0 ? UINT64_MAX : begin + random_() % length, true));
    }

    void gate(const File& from) {
        if (from.kind != RecordKind::coincidences) return;
        const auto bins = static_cast<std::uint32_t>(2 + random_() % 6);
        const auto out = directory_ / ("gate" + std::to_string(made_++));
        petlm::GateOptions options;
        options.target = from.path;
        options.channel = trigger_channel;
        options.bins = bins;
        options.output = out;
        REQUIRE(quietly([&] { return petlm::gate(options); }) == petlm::ok);
        Ticks in_cycles(length);
        std::uint64_t sum = 0;
        for (std::uint32_t bin = 0; bin < bins; ++bin) {
            Ticks in_bin(length);
            for (const auto& [begin, end] : cycles_) {
                for (std::uint64_t t = begin; t < end; ++t) {
                    in_cycles[t - start] = true;
                    if ((t - begin) * bins / (end - begin) == bin) in_bin[t - start] = true;
                }
            }
            File phase{out / ("phase-0" + std::to_string(bin + 1) + ".plm"), from.kind,
                       both(from.ticks, in_bin)};
            sum += count(phase.ticks);
            add(phase);
        }
        CHECK(sum == count(both(from.ticks, in_cycles)));
    }

    /// Parts of one run must not overlap.
    void merge(const File& a, const File& b) {
        if (a.kind != b.kind) return;
        File made{next_path(), a.kind, a.ticks};
        petlm::MergeOptions options;
        options.targets = {a.path, b.path};
        options.output = made.path;
        const auto merge = [&] { return quietly([&] { return petlm::merge(options); }); };
        if (count(both(a.ticks, b.ticks)) != 0) {
            CHECK_THROWS_WITH(merge(), contains("they overlap"));
            return;
        }
        REQUIRE(merge() == petlm::ok);
        for (std::size_t i = 0; i < length; ++i)
            made.ticks[i] = a.ticks[i] || b.ticks[i];
        add(made);
    }

    /// All parts together are the whole.
    void divide(const File& from) {
        std::vector<std::uint64_t> ends = {start, start + length};
        for (int i = 0; i < 3; ++i)
            ends.push_back(start + random_() % length);
        std::sort(ends.begin(), ends.end());
        petlm::MergeOptions options;
        options.output = next_path();
        std::uint64_t ticks = 0;
        for (std::size_t i = 1; i < ends.size(); ++i) {
            const File part = cut(from, ends[i - 1], ends[i]);
            check(part);
            ticks += count(part.ticks);
            options.targets.insert(options.targets.begin(), part.path);
        }
        CHECK(ticks == count(from.ticks));
        REQUIRE(quietly([&] { return petlm::merge(options); }) == petlm::ok);
        add({options.output, from.kind, from.ticks});
        CHECK(coverage_in(options.output, from.kind).intervals ==
              coverage_in(from.path, from.kind).intervals);
    }

    void recover(const File& from) {
        const auto cut_off = directory_ / "cut-off.plm";
        std::filesystem::copy_file(from.path, cut_off, std::filesystem::copy_options::overwrite_existing);
        const auto bytes = std::filesystem::file_size(cut_off);
        const std::uint64_t header = daemon::ListModeReader(cut_off).header().header_bytes;
        std::filesystem::resize_file(cut_off, header + random_() % (bytes - header));
        File made{next_path(), from.kind, from.ticks};
        REQUIRE(quietly([&] { return petlm::recover({cut_off, made.path}); }) == petlm::ok);
        const auto kept = read_coincidences(made.path);
        const std::uint64_t end = kept.empty() ? start : kept.back().time + 1;
        std::fill(made.ticks.begin() + static_cast<std::ptrdiff_t>(end - start), made.ticks.end(), false);
        // Of records of the same time, some may be lost.
        const daemon::Coverage coverage = coverage_in(made.path, made.kind);
        REQUIRE(coverage.intervals);
        CHECK(ticks_in(*coverage.intervals, start, length) == made.ticks);
        CHECK(coverage.loss.seconds_complete == coverage.intervals->empty());  // there are none
        CHECK(kept.size() <= within(pairs_, made.ticks).size());
    }

    /// Coincidences of what the singles cover, by rules of their own.
    void resort(const File& from) {
        petlm::ResortOptions options;
        options.input.runs = {from.path};
        options.output = next_path();
        options.backend = "cpu";
        options.threads = 1;
        options.window_ticks = 7;
        if (count(from.ticks) == 0) return;
        REQUIRE(quietly([&] { return petlm::resort(options); }) == petlm::ok);
        const daemon::Coverage coverage = coverage_in(options.output, RecordKind::coincidences);
        REQUIRE(coverage.intervals);
        CHECK(ticks_in(*coverage.intervals, start, length) == from.ticks);
        REQUIRE(coverage.rules.coincidence);
        CHECK(coverage.rules.coincidence->window_ticks == 7);
        gpu::CoincidenceRules rules;
        rules.window = 7;
        CHECK(same_bytes(read_coincidences(options.output),
                         found_at_once(within(singles_, from.ticks), rules).coincidences));
    }

    std::mt19937_64 random_;
    TemporaryDirectory directory_;
    const std::filesystem::path run_;
    gpu::RecordVector<gpu::Coincidence> pairs_;
    Singles singles_;
    std::vector<gpu::Tag> tags_;
    std::uint32_t tags_number_ = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> cycles_;
    Ticks open_;
    std::vector<File> files_;
    unsigned made_ = 0;
};

}  // namespace

TEST_CASE("any chain of cut, gate, merge, recover and resort covers what it should", "[resort][coverage]") {
    for (unsigned seed = 1; seed <= 12; ++seed) {
        INFO("seed " << seed);
        Chain chain(seed);
        for (int i = 0; i < 25; ++i)
            chain.step();
    }
}
