#include "net/base/cores.hpp"

#include <cerrno>

namespace petacq::net {

std::string to_text(std::span<const int> cores) {
    std::string text;
    for (std::size_t i = 0; i < cores.size();) {
        std::size_t last = i;
        while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1)
            ++last;
        if (!text.empty()) text += ',';
        text += std::to_string(cores[i]);
        if (last != i) text += '-' + std::to_string(cores[last]);
        i = last + 1;
    }
    return text;
}

int run_on(pthread_t thread, std::span<const int> cores) {
    if (cores.empty()) return 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) {
        if (core < 0 || core >= CPU_SETSIZE) return EINVAL;
        CPU_SET(static_cast<unsigned>(core), &set);
    }
    return pthread_setaffinity_np(thread, sizeof set, &set);
}

OnCores::OnCores(std::span<const int> cores) {
    if (cores.empty() || pthread_getaffinity_np(pthread_self(), sizeof before_, &before_) != 0) return;
    moved_ = run_on(pthread_self(), cores) == 0;
}

OnCores::~OnCores() {
    if (moved_) pthread_setaffinity_np(pthread_self(), sizeof before_, &before_);
}

}  // namespace petacq::net
