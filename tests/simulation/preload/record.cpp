#include "tests/simulation/preload/record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <stdexcept>

#include "tests/simulation/preload/real.hpp"

namespace petacq::simulation {

namespace {

int open_to_append(const std::string& file) {
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0) throw std::runtime_error(file + ": cannot be written");
    return descriptor;
}

}  // namespace

Record::Record(const std::string& directory, std::uint32_t life)
    : life_(life),
      events_{open_to_append(directory + "/events"), {}},
      arrived_{open_to_append(directory + "/arrived"), {}} {}

void Record::Output::add(const void* data, std::size_t size) {
    waiting.append(static_cast<const char*>(data), size);
    if (waiting.size() > 1U << 16U) flush();
}

void Record::Output::flush() {
    PETACQ_REAL(write);
    if (real_write(descriptor, waiting.data(), waiting.size()) != static_cast<ssize_t>(waiting.size()))
        __builtin_trap();
    waiting.clear();
}

void Record::event(std::int64_t at_ns, std::string_view what, std::string_view text) {
    std::string line = std::to_string(life_) + " " + std::to_string(at_ns) + " ";
    line.append(what).append(" ").append(text).append("\n");
    events_.add(line.data(), line.size());
}

void Record::arrived(std::int64_t at_ns, std::span<const std::byte> datagram) {
    const auto bytes = static_cast<std::uint32_t>(datagram.size());
    arrived_.add(&life_, sizeof life_);
    arrived_.add(&bytes, sizeof bytes);
    arrived_.add(&at_ns, sizeof at_ns);
    arrived_.add(datagram.data(), datagram.size());
}

void Record::flush() {
    events_.flush();
    arrived_.flush();
}

}  // namespace petacq::simulation
