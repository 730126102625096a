#include "daemon/preflight/port_holder.hpp"

#include <fmt/core.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "daemon/control/access.hpp"

namespace petacq::daemon {

namespace {

struct BoundSocket {
    unsigned user = 0;
    std::string inode;
};

/// A line of /proc/net/udp and the like: "sl local_address rem_address st queues timer retransmits uid
/// timeout inode ...", with the address and the port in hexadecimal.
std::optional<BoundSocket> bound_socket(const std::string& line, std::uint16_t port, bool listening) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, timeout;
    BoundSocket found;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> found.user >>
          timeout >> found.inode)) {
        return std::nullopt;
    }
    const std::size_t colon = local.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    unsigned here = 0;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), here, 16);
    constexpr const char* listen_state = "0A";
    if (here != port || (listening && state != listen_state)) return std::nullopt;
    return found;
}

std::vector<BoundSocket> bound_sockets(Transport transport, std::uint16_t port) {
    std::vector<BoundSocket> all;
    const bool tcp = transport == Transport::tcp;
    for (const char* file :
         {tcp ? "/proc/net/tcp" : "/proc/net/udp", tcp ? "/proc/net/tcp6" : "/proc/net/udp6"}) {
        std::ifstream in(file);
        for (std::string line; std::getline(in, line);) {
            if (auto found = bound_socket(line, port, tcp)) all.push_back(std::move(*found));
        }
    }
    return all;
}

/// The process with a descriptor of that socket; 0 if none can be seen.
std::int64_t process_with(const std::string& inode) {
    namespace fs = std::filesystem;
    const std::string wanted = "socket:[" + inode + "]";
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename();
        std::int64_t process = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), process).ptr != name.data() + name.size())
            continue;
        std::error_code forbidden;
        for (fs::directory_iterator it(entry.path() / "fd", forbidden), end; !forbidden && it != end;
             it.increment(forbidden)) {
            std::error_code gone;
            if (fs::read_symlink(it->path(), gone) == wanted) return process;
        }
    }
    return 0;
}

}  // namespace

std::string PortHolder::text() const {
    if (process == 0) return "a process of " + user;
    return fmt::format("{} (process {} of {})", program, process, user);
}

std::optional<PortHolder> port_holder(Transport transport, std::uint16_t port) {
    std::optional<PortHolder> first;
    for (const BoundSocket& socket : bound_sockets(transport, port)) {
        PortHolder holder{user_name(socket.user), process_with(socket.inode), ""};
        if (holder.process != 0) {
            std::ifstream in("/proc/" + std::to_string(holder.process) + "/comm");
            std::getline(in, holder.program);
        }
        if (holder.program.starts_with("petacqd")) return holder;
        if (!first) first = std::move(holder);
    }
    return first;
}

}  // namespace petacq::daemon
