// Lives of the daemon, as standard input asks for them. The program has begun, read its configuration and the
// calibration, and stops before it makes its first thread. Each life is a process that is forked from it
// there and goes on.
//
//   PETACQ_SIMULATION      the directory of all lives: petacqd.json, `data`, control.sock and `story` lie
//                          there
//   asked for, a line      LIFE FROM_NS [FAULT]
//                          number of the life, from 0; where in the story it begins; for tests of the
//                          simulation, what is planted:
//     forget_writes        the disk says that it has synced a file, and has not
//     forget_names         the same of a directory
//     leak                 the daemon takes memory and does not return it
//   answered, two lines    PID, when it begins; its wait status, when it has ended
#include "tests/simulation/preload/lives.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>

#include "tests/simulation/preload/intercept.hpp"

namespace petacq::simulation {

namespace {

void direct_to_nothing(int descriptor) {
    const int nothing = ::open("/dev/null", O_RDWR);
    if (nothing < 0 || ::dup2(nothing, descriptor) < 0)
        throw std::runtime_error("/dev/null cannot be opened");
    ::close(nothing);
}

void begin(const char* directory, const char* asked) {
    World::Options options;
    options.directory = directory;
    std::istringstream words(asked);
    words >> options.life >> options.from_ns;
    if (!words) throw std::runtime_error(std::string("not understood: ") + asked);
    words >> options.fault;
    direct_to_nothing(STDIN_FILENO);
    direct_to_nothing(STDOUT_FILENO);
    if (::chdir(directory) != 0) throw std::runtime_error(options.directory + ": is no directory");
    options.story = Story::read(options.directory + "/story");
    world = new World(options);
    std::atexit([] { world->ended(); });
}

void answer(int number) {
    std::array<char, 16> line{};
    const int size = std::snprintf(line.data(), line.size(), "%d\n", number);
    if (::write(STDOUT_FILENO, line.data(), static_cast<std::size_t>(size)) != size) std::abort();
}

}  // namespace

/// Takes no memory but in the child: what one life finds must not depend on those before it.
void play_lives() {
    const char* const directory = std::getenv("PETACQ_SIMULATION");
    if (world != nullptr || directory == nullptr) return;
    static std::array<char, 256> line;
    for (std::size_t size = 0;;) {
        const ssize_t n = ::read(STDIN_FILENO, line.data() + size, line.size() - 1 - size);
        if (n <= 0) ::_exit(0);
        size += static_cast<std::size_t>(n);
        if (line[size - 1] != '\n') continue;
        line[size - 1] = '\0';
        size = 0;
        const pid_t child = ::fork();
        if (child == 0) return begin(directory, line.data());
        answer(child);
        int status = 0;
        ::waitpid(child, &status, 0);
        answer(status);
    }
}

}  // namespace petacq::simulation

// std::random_device, of which names of temporary files are made.
extern "C" PETACQ_INTERCEPT unsigned int petacq_random_device(void* /*self*/) asm(
    "_ZNSt13random_device9_M_getvalEv");
unsigned int petacq_random_device(void* /*self*/) {
    using petacq::simulation::world;
    return world != nullptr ? static_cast<unsigned>(world->scheduler.random(std::uint64_t{1} << 32U)) : 4;
}
