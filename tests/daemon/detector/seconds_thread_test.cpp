// Seconds are measured in a thread of their own.
#include "daemon/detector/seconds_thread.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "daemon/seconds/reader.hpp"
#include "tests/daemon/seconds/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/faulty_disk.hpp"
#include "tests/support/files.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace petacq;
using namespace petacq::daemon;
using namespace petacq::test;

namespace {

SecondsThread::Options small_options() {
    SecondsThread::Options options;
    options.geometry = small_scanner();
    options.rules.window = 10;
    options.ticks_per_s = 1000;
    return options;
}

/// Hands over the i-th second. `sums`: memory that is used again.
void add(SecondsThread& thread, std::uint64_t i, gpu::IntervalSums& sums,
         std::shared_ptr<const SynchronyReport> synchrony = nullptr) {
    const Second given = second_number(i);
    const auto assign = [](auto& to, const auto& from) { to.assign(from.begin(), from.end()); };
    assign(sums.unpaired, given.sums.unpaired);
    assign(sums.grouped, given.sums.grouped);
    assign(sums.prompts, given.sums.prompts);
    assign(sums.delayeds, given.sums.delayeds);
    assign(sums.modules, given.sums.modules);
    assign(sums.module_pairs, given.sums.module_pairs);
    assign(sums.refused_pairs, given.sums.refused_pairs);
    assign(sums.energies, given.sums.energies);
    sums.counts = given.sums.counts;
    thread.add(given.range, sums, static_cast<BoardReport>(given), std::move(synchrony));
}

void add(SecondsThread& thread, std::uint64_t i) {
    gpu::IntervalSums sums;
    add(thread, i, sums);
}

std::unique_ptr<SecondsFile> make_file(const std::filesystem::path& path) {
    return std::make_unique<SecondsFile>(path, small_scanner(), nlohmann::json::object(),
                                         config::Compression::none, std::chrono::seconds(1));
}

std::vector<std::uint64_t> starts_in(const std::filesystem::path& path) {
    std::vector<std::uint64_t> starts;
    for (SecondsReader reader(path); reader.next();)
        starts.push_back(reader.start());
    return starts;
}

std::vector<std::uint64_t> starts_of(std::uint64_t from, std::uint64_t to) {
    std::vector<std::uint64_t> starts;
    for (std::uint64_t i = from; i < to; ++i)
        starts.push_back(second_number(i).range.start);
    return starts;
}

/// A module that lacks partners.
std::shared_ptr<const SynchronyReport> one_without_partners() {
    auto report = std::make_shared<SynchronyReport>();
    report->modules.resize(3);
    report->modules[1].state = ModuleSynchrony::SynchronyState::no_partners;
    return report;
}

}  // namespace

TEST_CASE("seconds thread: the same bytes and sums as without a thread", "[seconds]") {
    const TemporaryDirectory directory;
    constexpr std::uint64_t before = 3;
    constexpr std::uint64_t count = 30;
    const SecondsThread::Options options = small_options();
    const auto report = one_without_partners();

    // The same, in this thread.
    SecondsMeter meter(options.geometry, options.rules, options.ticks_per_s);
    DetectorWatch watch(options.geometry, options.ticks_per_s);
    LiveSums live;
    SecondsTotal total;
    std::vector<DetectorFault> faults;
    {
        const auto file = make_file(directory / "here.plm");
        for (std::uint64_t i = 0; i < count; ++i) {
            Second given = second_number(i);
            const auto measured = meter.measure(given.range, given.sums, static_cast<BoardReport>(given));
            if (i == before) watch.start_run(given.range.start);
            watch.observe(*measured, i % 7 == 1 ? report.get() : nullptr);
            if (i < before) continue;
            note_faults(faults, *watch.faults());
            total.add(*measured);
            live.add(*measured, options.geometry);
            file->append(*measured);
        }
    }

    SecondsView view;
    SecondsThread thread(options, [&](const SecondsView& seen) { view = seen; });
    const auto file = make_file(directory / "there.plm");
    gpu::IntervalSums sums;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (i == before) thread.start_run(*file, second_number(i).range.start);
        add(thread, i, sums, i % 7 == 1 ? report : nullptr);
    }
    thread.wait();
    CHECK(view.second->range.start == second_number(count - 1).range.start);
    CHECK(view.seconds.randoms == meter.total().randoms);
    REQUIRE_FALSE(watch.faults()->empty());
    CHECK(view.detector_faults->size() == watch.faults()->size());
    const SecondsOfRun of_run = thread.end_run();
    CHECK(view.detector_faults->empty());
    CHECK(of_run.total.length_s == count - before);
    CHECK(of_run.total.singles == total.singles);
    CHECK(of_run.total.randoms == total.randoms);
    CHECK(of_run.total.weighted_delayeds == total.weighted_delayeds);
    CHECK(of_run.live == live.mean());
    REQUIRE(of_run.faults.size() == faults.size());
    CHECK(std::any_of(faults.begin(), faults.end(), [](const DetectorFault& f) {
        return f.kind == DetectorFault::FaultKind::no_partners;
    }));
    for (std::size_t i = 0; i < faults.size(); ++i)
        CHECK(of_run.faults[i].text() == faults[i].text());
    file->finish();
    CHECK(thread.failure().empty());
    CHECK(read_file(directory / "there.plm") == read_file(directory / "here.plm"));
}

TEST_CASE("seconds thread: seconds are shown in order, and in no other thread", "[seconds]") {
    std::vector<std::uint64_t> shown;
    std::vector<double> lengths_s;
    std::set<std::thread::id> threads;
    SecondsThread thread(small_options(), [&](const SecondsView& view) {
        threads.insert(std::this_thread::get_id());
        shown.push_back(view.second->range.start);
        lengths_s.push_back(view.seconds.length_s);
    });
    for (std::uint64_t i = 0; i < 100; ++i)
        add(thread, i);
    thread.wait();
    CHECK(shown == starts_of(0, 100));
    CHECK(lengths_s.front() == 1);
    CHECK(lengths_s.back() == 100);
    CHECK(threads.size() == 1);
    CHECK(threads.count(std::this_thread::get_id()) == 0);
}

TEST_CASE("seconds thread: whoever hands over more than may wait waits, and nothing is dropped",
          "[seconds]") {
    constexpr std::uint64_t count = 40;
    std::promise<void> gate;
    const std::shared_future<void> open = gate.get_future().share();
    std::atomic<std::uint64_t> added{0};
    std::uint64_t shown = 0;
    std::uint64_t most = 0;
    SecondsPace pace;
    SecondsThread thread(small_options(), [&](const SecondsView& view) {
        pace = view.pace;
        open.wait();
        most = std::max(most, added.load() - shown);
        ++shown;
    });
    std::thread acquisition([&] {
        for (std::uint64_t i = 0; i < count; ++i) {
            add(thread, i);
            ++added;
        }
    });
    CHECK(eventually([&] { return added.load() >= SecondsThread::max_waiting; }));
    gate.set_value();
    acquisition.join();
    thread.wait();
    CHECK(shown == count);
    CHECK(most <= SecondsThread::max_waiting);
    CHECK(pace.stalls > 0);
    CHECK(pace.waiting == 0);
    CHECK(pace.busy_s > 0);
}

TEST_CASE("seconds thread: a disk that stands still holds up who hands over, and no second is lost",
          "[seconds]") {
    constexpr std::uint64_t count = 40;
    constexpr std::uint64_t most = SecondsThread::max_waiting + SecondsFile::max_waiting + 1;
    const TemporaryDirectory directory;
    FaultyDisk disk;
    std::promise<void> gate;
    std::atomic<std::uint64_t> added{0};
    std::uint64_t added_while_it_stood = 0;
    const auto file = make_file(directory / "seconds.plm");
    disk->write = [&, open = gate.get_future().share(), write = disk->write](auto&&... arguments) {
        open.wait();
        if (added_while_it_stood == 0) added_while_it_stood = added.load();
        return write(arguments...);
    };
    SecondsThread thread(small_options(), [](const SecondsView&) {});
    thread.start_run(*file, 0);
    std::thread acquisition([&] {
        for (std::uint64_t i = 0; i < count; ++i) {
            add(thread, i);
            ++added;
        }
    });
    CHECK(eventually([&] { return added.load() >= most; }));
    gate.set_value();
    acquisition.join();
    CHECK(thread.end_run().total.length_s == count);
    file->finish();
    CHECK(added_while_it_stood == most);
    CHECK(starts_in(directory / "seconds.plm") == starts_of(0, count));
}

TEST_CASE("seconds thread: a run has all its seconds when it ends, and none of another time", "[seconds]") {
    const TemporaryDirectory directory;
    SecondsThread thread(small_options(), [](const SecondsView&) {});
    for (std::uint64_t run = 0; run < 3; ++run) {
        const auto path = directory / ("run" + std::to_string(run) + ".plm");
        const std::uint64_t first = 10 * run;
        add(thread, first);
        const auto file = make_file(path);
        thread.start_run(*file, second_number(first + 1).range.start);
        for (std::uint64_t i = first + 1; i < first + 6; ++i)
            add(thread, i);
        CHECK(thread.end_run().total.length_s == 5);
        file->finish();
        add(thread, first + 6);  // after the end of the file
        CHECK(starts_in(path) == starts_of(first + 1, first + 6));
    }
    CHECK(thread.failure().empty());
}

TEST_CASE("seconds thread: a run whose time starts again keeps nothing of the time before", "[seconds]") {
    const TemporaryDirectory directory;
    const auto path = directory / "seconds.plm";
    const auto file = make_file(path);
    SecondsThread thread(small_options(), [](const SecondsView&) {});
    gpu::IntervalSums sums;
    thread.start_run(*file, second_number(20).range.start);
    for (std::uint64_t i = 20; i < 26; ++i)
        add(thread, i, sums, one_without_partners());
    thread.start_run_again(second_number(2).range.start);
    for (std::uint64_t i = 2; i < 5; ++i)
        add(thread, i);
    const SecondsOfRun of_run = thread.end_run();
    CHECK(of_run.total.length_s == 3);
    CHECK(std::none_of(of_run.faults.begin(), of_run.faults.end(), [](const DetectorFault& f) {
        return f.kind == DetectorFault::FaultKind::no_partners;
    }));
    file->finish();
    CHECK(starts_in(path) == starts_of(2, 5));
}

TEST_CASE("seconds thread: a file that fails stops no second from being shown", "[seconds]") {
    const TemporaryDirectory directory;
    FaultyDisk disk;
    std::uint64_t shown = 0;
    SecondsThread thread(small_options(), [&](const SecondsView&) { ++shown; });
    const auto file = make_file(directory / "seconds.plm");
    disk.take(1000);
    thread.start_run(*file, 0);
    for (std::uint64_t i = 0; i < 50; ++i)
        add(thread, i);
    CHECK(thread.end_run().total.length_s == 50);
    CHECK(shown >= 50);
    const SecondsCounts counts = file->finish();
    CHECK(counts.write_failed > 0);
    CHECK(counts.appended == counts.written + counts.write_failed);
    CHECK_FALSE(file->failure().empty());
    CHECK(thread.failure().empty());
}

TEST_CASE("seconds thread: what goes wrong is told, and holds nobody up", "[seconds]") {
    SecondsThread thread(small_options(), [](const SecondsView& view) {
        if (view.seconds.length_s == 2) throw std::runtime_error("no memory");
    });
    for (std::uint64_t i = 0; i < 4 * SecondsThread::max_waiting; ++i)
        add(thread, i);
    thread.wait();
    CHECK(thread.failure() == "no memory");
    thread.end_run();
}

TEST_CASE("seconds thread: the memory of seconds that nobody reads any more is used again", "[seconds]") {
    std::shared_ptr<const Second> kept;
    {
        SecondsThread thread(small_options(), [&](const SecondsView& view) {
            if (!kept) kept = view.second;
        });
        gpu::IntervalSums sums;
        for (std::uint64_t i = 0; i < 20; ++i) {
            add(thread, i, sums);
            thread.wait();
            // The first second is kept, the second one has been the latest until the third.
            if (i > 2) CHECK(sums.unpaired.capacity() == small_scanner().crystal_count());
        }
    }
    CHECK(kept->sums.unpaired == second_number(0).sums.unpaired);  // also after the thread
}
