// The program does not begin: it plays lives of the daemon, as standard input asks for them. Each is a
// process of its own, forked before main, so that loading the program with its libraries is done only once.
//
//   asked for, a line      LIFE FROM_NS DIRECTORY [FAULT]
//                          number of the life, from 0; where in the story it begins; `story`, `petacqd.json`,
//                          `data` and control.sock of the daemon lie in the directory, and the log of the
//                          life comes there; for tests of the simulation, what is planted:
//     forget_writes        the disk says that it has synced a file, and has not
//     forget_names         the same of a directory
//     leak                 the daemon takes memory and does not return it
//   answered, two lines    PID, when it begins; its wait status, when it has ended
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

using Main = int (*)(int, char**, char**);
Main main_of_program = nullptr;

void direct(int descriptor, const std::string& file, int flags) {
    const int opened = ::open(file.c_str(), flags, 0666);
    if (opened < 0 || ::dup2(opened, descriptor) < 0) throw std::runtime_error(file + ": cannot be opened");
    ::close(opened);
}

int live(const char* asked, char* program, char** environment) {
    std::istringstream words(asked);
    World::Options options;
    words >> options.life >> options.from_ns >> options.directory;
    if (!words) throw std::runtime_error(std::string("not understood: ") + asked);
    words >> options.fault;
    direct(STDIN_FILENO, "/dev/null", O_RDONLY);
    direct(STDOUT_FILENO, "/dev/null", O_WRONLY);
    direct(STDERR_FILENO, options.directory + "/log", O_WRONLY | O_CREAT | O_TRUNC);
    if (::chdir(options.directory.c_str()) != 0)
        throw std::runtime_error(options.directory + ": is no directory");
    options.story = Story::read(options.directory + "/story");
    static std::string configuration = options.directory + "/petacqd.json";
    static std::array<char, 9> option{"--config"};
    std::array<char*, 4> arguments{program, option.data(), configuration.data(), nullptr};
    world = new World(options);
    std::atexit([] { world->ended(); });
    return main_of_program(3, arguments.data(), environment);
}

void answer(int number) {
    std::array<char, 16> line{};
    const int size = std::snprintf(line.data(), line.size(), "%d\n", number);
    if (::write(STDOUT_FILENO, line.data(), static_cast<std::size_t>(size)) != size) std::abort();
}

/// In place of main. Nothing in it may take memory: what one life finds must not depend on those before it.
int play_lives(int /*count*/, char** arguments, char** environment) {
    static std::array<char, 4096> line;
    for (std::size_t size = 0;;) {
        const ssize_t n = ::read(STDIN_FILENO, line.data() + size, line.size() - 1 - size);
        if (n <= 0) return 0;
        size += static_cast<std::size_t>(n);
        if (line[size - 1] != '\n') continue;
        line[size - 1] = '\0';
        size = 0;
        const pid_t child = ::fork();
        if (child == 0) return live(line.data(), arguments[0], environment);
        answer(child);
        int status = 0;
        ::waitpid(child, &status, 0);
        answer(status);
    }
}

}  // namespace

}  // namespace petacq::simulation

extern "C" PETACQ_INTERCEPT int __libc_start_main(int (*main)(int, char**, char**), int count,
                                                  char** arguments, void (*initialise)(), void (*finish)(),
                                                  void (*finish_loader)(), void* stack_end) {
    using Start =
        int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
    petacq::simulation::main_of_program = main;
    return reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"))(
        petacq::simulation::play_lives, count, arguments, initialise, finish, finish_loader, stack_end);
}

// std::random_device, of which names of temporary files are made.
extern "C" PETACQ_INTERCEPT unsigned int petacq_random_device(void* /*self*/) asm(
    "_ZNSt13random_device9_M_getvalEv");
unsigned int petacq_random_device(void* /*self*/) {
    using petacq::simulation::world;
    return world != nullptr ? static_cast<unsigned>(world->scheduler.random(std::uint64_t{1} << 32U)) : 4;
}
