#include "net/base/cores.hpp"

#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/thread_cores.hpp"

using petacq::net::Cores;
using petacq::net::OnCores;
using petacq::net::to_text;
using petacq::test::own_cores;

namespace {

Cores cores_of_new_thread() {
    Cores cores;
    std::thread([&] { cores = own_cores(); }).join();
    return cores;
}

}  // namespace

TEST_CASE("a thread and those that it makes stay on cores for a while") {
    const Cores before = own_cores();
    REQUIRE_FALSE(before.empty());
    const Cores last{before.back()};
    {
        const OnCores placed(last);
        CHECK(own_cores() == last);
        CHECK(cores_of_new_thread() == last);
    }
    CHECK(own_cores() == before);
    CHECK(cores_of_new_thread() == before);
}

TEST_CASE("without cores, and with cores that do not exist, a thread runs where it did") {
    const Cores before = own_cores();
    for (const Cores& cores : {Cores{}, Cores{100'000}, Cores{-1}, Cores{CPU_SETSIZE - 1}}) {
        const OnCores placed(cores);
        CHECK(own_cores() == before);
    }
    CHECK(petacq::net::run_on(pthread_self(), Cores{}) == 0);
    CHECK(petacq::net::run_on(pthread_self(), Cores{100'000}) != 0);
}

TEST_CASE("the text of cores") {
    CHECK(to_text(Cores{}).empty());
    CHECK(to_text(Cores{3}) == "3");
    CHECK(to_text(Cores{0, 1, 2, 5, 7, 8}) == "0-2,5,7-8");
}
