// Starts the simulation when the library is loaded, before main.
//
//   PETACQ_SIMULATION          directory with the story; `data` and control.sock of the daemon lie there
//   PETACQ_SIMULATION_LIFE     number of this life of the daemon, from 0
//   PETACQ_SIMULATION_FROM_NS  where in the story it begins
//   PETACQ_SIMULATION_FAULT    for tests of the simulation; empty: none
//     forget_writes            the disk says that it has synced a file, and has not
//     forget_names             the same of a directory
//     leak                     the daemon takes memory and does not return it
#include <cstdlib>
#include <string>

#include "tests/simulation/preload/intercept.hpp"

namespace petacq::simulation {

namespace {

std::string text(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::int64_t number(const char* name) {
    return std::atoll(text(name).c_str());
}

struct Load {
    Load() {
        const char* const directory = std::getenv("PETACQ_SIMULATION");
        if (directory == nullptr) return;
        world = new World({.story = Story::read(std::string(directory) + "/story"),
                           .life = static_cast<std::uint32_t>(number("PETACQ_SIMULATION_LIFE")),
                           .from_ns = number("PETACQ_SIMULATION_FROM_NS"),
                           .directory = directory,
                           .fault = text("PETACQ_SIMULATION_FAULT")});
        std::atexit([] { world->ended(); });
    }
} load;

}  // namespace

}  // namespace petacq::simulation

// std::random_device, of which names of temporary files are made.
extern "C" PETACQ_INTERCEPT unsigned int petacq_random_device(void* /*self*/) asm(
    "_ZNSt13random_device9_M_getvalEv");
unsigned int petacq_random_device(void* /*self*/) {
    using petacq::simulation::world;
    return world != nullptr ? static_cast<unsigned>(world->scheduler.random(std::uint64_t{1} << 32U)) : 4;
}
