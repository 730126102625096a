#include "daemon/system/sockets/inherited_sockets.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "config/base/error.hpp"
#include "daemon/system/logging.hpp"
#include "daemon/system/quantity_text.hpp"

#ifdef PETACQ_HAVE_LIBSYSTEMD
#include <systemd/sd-daemon.h>
#endif

namespace petacq::daemon {

namespace {

struct Inherited {
    int descriptor = -1;
    std::string name;
};

#ifdef PETACQ_HAVE_LIBSYSTEMD
std::vector<Inherited> inherited() {
    char** names = nullptr;
    const int count = sd_listen_fds_with_names(1, &names);
    if (count < 0) {
        throw config::Error("sockets of the service manager ($LISTEN_FDS): " +
                            std::generic_category().message(-count));
    }
    std::vector<Inherited> all;
    for (int i = 0; i < count; ++i) {
        all.push_back({SD_LISTEN_FDS_START + i, names[i]});
        std::free(names[i]);
    }
    std::free(names);
    return all;
}
#else
std::vector<Inherited> inherited() {
    const char* const text = std::getenv("LISTEN_PID");
    if (text == nullptr) return {};
    pid_t pid = 0;
    std::from_chars(text, text + std::strlen(text), pid);
    if (pid != ::getpid()) return {};  // meant for another process
    throw config::Error(
        "the service manager passes sockets, but petacqd was built without libsystemd: disable "
        "petacqd.socket");
}
#endif

}  // namespace

void take_inherited_sockets(std::vector<net::ReceiverOptions>& receivers) {
    const std::vector<Inherited> all = inherited();
    if (all.empty()) return;
    for (const Inherited& socket : all) {
        if (socket.name == "frames") continue;
        throw config::Error("the service manager passes a socket named \"" + socket.name +
                            "\"; expected FileDescriptorName=frames in the socket unit");
    }
    if (all.size() != receivers.size()) {
        throw config::Error("the service manager passes " + counted_text(all.size(), "socket") +
                            ", but /receive/sockets of the configuration has " +
                            std::to_string(receivers.size()) +
                            ": expected one ListenDatagram= for each, in the same order");
    }
    for (std::size_t i = 0; i < all.size(); ++i)
        receivers[i].descriptor = all[i].descriptor;
    log_info("using {} of the service manager", counted_text(all.size(), "socket"));
}

}  // namespace petacq::daemon
