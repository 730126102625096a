#include "tools/petbench/pipeline/processes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <system_error>

namespace petacq::bench {

namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

[[noreturn]] void serve(int orders, int results, const std::function<std::function<double()>()>& prepare) {
    int status = 0;
    try {
        const std::function<double()> measure = prepare();
        char order = 0;
        while (read(orders, &order, 1) == 1) {
            const double result = measure();
            if (write(results, &result, sizeof result) != sizeof result) break;
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "petbench: %s\n", e.what());
        status = 1;
    }
    _exit(status);
}

}  // namespace

Processes::Processes(std::size_t count, const std::function<std::function<double()>(std::size_t)>& prepare) {
    for (std::size_t i = 0; i < count; ++i) {
        std::array<int, 2> orders{};
        std::array<int, 2> results{};
        if (pipe(orders.data()) != 0 || pipe(results.data()) != 0) fail("pipe");
        const pid_t pid = fork();
        if (pid < 0) fail("fork");
        if (pid == 0) {
            close(orders[1]);
            close(results[0]);
            for (const Process& other : processes_) {
                close(other.orders);
                close(other.results);
            }
            serve(orders[0], results[1], [&] { return prepare(i); });
        }
        close(orders[0]);
        close(results[1]);
        processes_.push_back({pid, orders[1], results[0]});
    }
}

Processes::~Processes() {
    for (const Process& p : processes_) {
        close(p.orders);
        close(p.results);
        waitpid(p.pid, nullptr, 0);
    }
}

double Processes::measure(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (write(processes_[i].orders, "m", 1) != 1) fail("write to a process");
    }
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        double result = 0;
        if (read(processes_[i].results, &result, sizeof result) != sizeof result) {
            throw std::runtime_error("a process of the comparison has failed");
        }
        sum += result;
    }
    return sum;
}

}  // namespace petacq::bench
