// The thread that writes a file: order, room, syncs and failures.
#include "daemon/system/disk_thread.hpp"

#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/eventually.hpp"

using namespace petacq;
using namespace petacq::daemon;
using petacq::test::eventually;

namespace {

/// Notes what its disk thread does. Only after finish() may others read it.
struct Notes {
    std::vector<int> written;
    std::vector<int> dropped;
    std::atomic<int> syncs{0};
    int closes = 0;
    std::vector<std::string> failures;
    int bad = -1;  ///< cannot be written

    DiskWork<int> work() {
        return {.write =
                    [this](const int& item) {
                        if (item == bad) throw std::runtime_error("a bad item");
                        written.push_back(item);
                    },
                .drop = [this](const int& item) { dropped.push_back(item); },
                .sync = [this] { ++syncs; },
                .close = [this] { ++closes; },
                .fail =
                    [this](const std::string& why) {
                        failures.push_back(why);
                        return "failed: " + why;
                    }};
    }
};

std::vector<int> numbers(int first, int end) {
    std::vector<int> all;
    for (int i = first; i < end; ++i)
        all.push_back(i);
    return all;
}

}  // namespace

TEST_CASE("a disk thread writes in order what waits when another thread finishes it", "[disk_thread]") {
    Notes notes;
    DiskThread<int> thread("test", notes.work());
    for (int i = 0; i < 1000; ++i)
        thread.put_at_once(i);
    std::thread([&] { thread.finish(); }).join();
    thread.finish();
    CHECK(notes.written == numbers(0, 1000));
    CHECK(notes.dropped.empty());
    CHECK(notes.closes == 1);
    CHECK(thread.failure().empty());
    CHECK(thread.waiting() == 0);
    CHECK_FALSE(thread.counts().waiting);
    CHECK(thread.counts().calls == static_cast<std::uint64_t>(1000 + notes.syncs + 1));
    CHECK_THROWS_AS(thread.put_at_once(0), std::logic_error);
    CHECK_THROWS_AS(thread.put(0), std::logic_error);
}

TEST_CASE("after a failure a disk thread drops the rest, and calls the file no more", "[disk_thread]") {
    Notes notes;
    notes.bad = 3;
    DiskThread<int> thread("test", notes.work(), 2);
    for (int i = 0; i < 10; ++i)
        thread.put(i);  // waits for no room of what is dropped
    thread.finish();
    CHECK(notes.written == numbers(0, 3));
    CHECK(notes.dropped == numbers(3, 10));
    CHECK(notes.closes == 0);
    CHECK(notes.failures == std::vector<std::string>{"a bad item"});
    CHECK(thread.failure() == "failed: a bad item");
}

TEST_CASE("putting waits while the disk stands still and no more may wait", "[disk_thread]") {
    std::promise<void> gate;
    std::atomic<int> put{0};
    int put_while_it_stood = 0;
    std::vector<int> written;
    DiskThread<int> thread("test",
                           {.write =
                                [&, open = gate.get_future().share()](const int& item) {
                                    open.wait();
                                    if (written.empty()) put_while_it_stood = put;
                                    written.push_back(item);
                                },
                            .fail = [](const std::string& why) { return why; }},
                           2);
    std::thread producer([&] {
        for (int i = 0; i < 10; ++i) {
            thread.put(i);
            ++put;
        }
    });
    CHECK(eventually([&] { return put == 3; }));  // one is being written
    CHECK(thread.waiting() >= 3);
    CHECK(thread.counts().waiting);
    gate.set_value();
    producer.join();
    thread.finish();
    CHECK(put_while_it_stood == 3);
    CHECK(written == numbers(0, 10));
}

TEST_CASE("what was written is synced without a later item", "[disk_thread]") {
    Notes notes;
    DiskThread<int> thread("test", notes.work(), 0, std::chrono::milliseconds(1));
    for (int i = 0; i < 3; ++i) {
        const int before = notes.syncs;
        thread.put_at_once(i);
        CHECK(eventually([&] { return notes.syncs > before; }));
    }
    thread.finish();
    CHECK(notes.syncs == 3);
}

TEST_CASE("a sync or a close that fails is a failure of the file", "[disk_thread]") {
    Notes notes;
    DiskWork<int> work = notes.work();
    const bool at_close = GENERATE(false, true);
    (at_close ? work.close : work.sync) = [] { throw std::runtime_error("no disk"); };
    DiskThread<int> thread("test", work);
    thread.put_at_once(0);
    thread.finish();
    CHECK(notes.written == numbers(0, 1));
    CHECK(notes.closes == 0);
    CHECK(thread.failure() == "failed: no disk");
}
